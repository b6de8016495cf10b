"""Service and batch tokens: created at login or by another token, checked at every request, renewed and revoked."""

from . import encoding, hierarchy
from .authenticate import (
    DEPTH,
    acl_of,
    find_by_accessor,
    find_by_text,
    find_token,
    is_known,
    is_valid,
    lineage,
    owner_of,
    principal_of,
)
from .encoding import custom_token, is_id, new_id
from .hierarchy import revoke, settle_children, tie
from .issue import RANDOM_SIZE, Issue, Template, accessor_of, auth_block, make_own_token, mint, template
from .record import Caller, Token
from .settings import (
    BATCH,
    DEFAULT,
    MOST_POLICIES,
    POLICIES,
    SERVICE,
    TokenLimits,
    TokenSettings,
    check,
    check_limits,
    merged,
)
from .sweep import Sweep
