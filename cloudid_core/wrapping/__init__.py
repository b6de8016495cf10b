"""Response wrapping: an answer is kept under a token that is good for one look at it."""
