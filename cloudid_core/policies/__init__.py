"""Policies: documents that say what the holder of a token may do, and the decision that they add up to."""
