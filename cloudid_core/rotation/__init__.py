"""Rotation of a mount's root secret: a persisted state machine that never leaves the service without a working one.

- *Add*: the record names the new password before it is made; one commit stores its secret.
- *Prove*: the provider accepts it, several times in a row. Until then the configured secret is untouched.
- *Switch*: the configuration gets it, if it still has the secret that is replaced.
- *Overlap*: both live on for a while, for access tokens and nodes that still use the old one.
- *Remove*: after one more proof, exactly the keys that this mount made, and the configured one that was replaced. A new
  secret that no longer works by then gives its place back to the old one.

A *plan* says when the next rotation is due, by the configuration's period or schedule. The background takes that one
through the same steps.

Each step ends with one commit and can be done again. At every instant a secret is stored that the provider accepts.
"""
