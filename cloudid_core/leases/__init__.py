"""Leases: credentials on loan. They end by expiry, by revocation, or with the token that asked for them."""
