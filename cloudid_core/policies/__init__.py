"""Policies: documents that grant a token access to paths, and the decision that combines several of them."""

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
