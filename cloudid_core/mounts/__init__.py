"""Mounts: the table that says which component answers below which path."""

from .table import (
    AUTH,
    BUILT_IN,
    ID_BYTES,
    IDENTITY,
    MOUNT_BYTES,
    SECRET,
    SYSTEM,
    TOKEN,
    TYPE_ALIASES,
    Mount,
    MountTable,
    change_mounts,
    changing,
    default_mounts,
    last_mount_table,
    mount_table,
    new_mount,
    require_live,
    unchanged_mounts,
)
