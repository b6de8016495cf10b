"""Policies: documents that grant the holder of a token access to paths, and the decision over several of them."""

from .builtin import (
    BUILT_IN,
    DEFAULT,
    RESPONSE_WRAPPING,
    ROOT,
    UNCHANGEABLE,
    UNDELETABLE,
    needs_sudo,
    normalised,
    without_default,
)
from .document import DENY, Policy, parse
from .matching import Acl
from .store import load_acl, load_policy
