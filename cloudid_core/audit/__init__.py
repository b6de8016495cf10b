"""Audit: what every request was, who made it and how it was answered, as lines for audit devices."""
