"""Rotation of secrets: a persisted state machine that never leaves their holder without a working one.

The *holder* is a mount's configuration, which has its root secret, or a static role. The mount's client does the work
for both; a secret is proven as the application that it belongs to.

- *Add*: the record names the new password before it is made; one commit stores its secret.
- *Prove*: the provider accepts it, several times in a row. Until then the holder's secret is untouched.
- *Switch*: the holder gets it, if it still has the secret that is replaced.
- *Overlap*: both stay valid for a while, for access tokens, nodes and clients that still use the old one.
- *Remove*: after one more proof, exactly the keys that were made here, and the configured one that was replaced. A new
  secret that no longer works by then gives its place back to the old one.

A *plan* says when the next rotation is due, by the holder's period or schedule. The background takes that one through
the same steps.

Each step ends with one commit and can be done again. At every instant a secret is stored that the provider accepts.
"""

from . import routes
from .advance import follow_plan, forgotten, keep_plans, release_former
from .configure import (
    MADE_HERE,
    OTHER,
    SAME,
    AppliedForm,
    commit_config,
    credential_risks,
    prove_if_asked,
    read_warnings,
    refused_access,
    root_password_expiration,
    secret_risks,
    with_applied,
)
from .identities import keep_identities, roles_by_target, roles_pointing_at, self_targets
from .plan import find_undamaged_plan, replanned
from .proving import prove_credentials
from .record import Rotation, find_undamaged_rotation
from .root import HINT_LENGTH, find_root
from .routes import STATE, RotateForm, rotate, shown_time, state_of
from .signing_keys import begin_key, issuer_of, keep_signing_keys, make_first, publication_key, replacing, roll_over
