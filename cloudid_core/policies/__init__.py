"""Policies: documents that grant the holder of a token access to paths, and the decision over several of them."""
