"""Service and batch tokens: made at login or by another token, checked at every request, renewed and revoked."""

from . import encoding, hierarchy
from .authenticate import DEPTH, find_by_accessor, find_by_text, find_token, is_known, is_valid, lineage, owner_of
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

__all__ = [
    "BATCH",
    "DEFAULT",
    "DEPTH",
    "MOST_POLICIES",
    "POLICIES",
    "RANDOM_SIZE",
    "SERVICE",
    "Caller",
    "Issue",
    "Sweep",
    "Template",
    "Token",
    "TokenLimits",
    "TokenSettings",
    "accessor_of",
    "auth_block",
    "check",
    "check_limits",
    "custom_token",
    "encoding",
    "find_by_accessor",
    "find_by_text",
    "find_token",
    "hierarchy",
    "is_id",
    "is_known",
    "is_valid",
    "lineage",
    "make_own_token",
    "merged",
    "mint",
    "new_id",
    "owner_of",
    "revoke",
    "settle_children",
    "template",
    "tie",
]
