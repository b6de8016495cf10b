"""Response wrapping: an answer is kept under a token that can be used once."""
