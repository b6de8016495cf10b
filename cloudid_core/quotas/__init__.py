"""Quotas: how many requests a source may make, and how many leases a role or mount may have."""
