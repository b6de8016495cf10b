"""Login: discovery, keys, the token endpoint, below `/login`; and the metadata services of machines."""
