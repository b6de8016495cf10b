"""The identity provider: discovery, signing keys, the token endpoint, and the metadata services of machines."""
