"""Leases: credentials for a limited time. They end by expiry, by revocation, or with the token that asked for them."""
