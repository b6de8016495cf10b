"""Audit: record what each request was, who made it and how it was answered, as lines for audit devices."""

from .device import (
    ADMITTED,
    FILE,
    KEY_BYTES,
    NULL,
    SOCKET,
    STDOUT,
    AuditContext,
    Check,
    Decision,
    DeclaredDevice,
    Device,
    Entries,
)
from .hashing import LEAF_LIMIT, SECRETS, Hasher
