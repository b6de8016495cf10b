"""The settings file of an operator, the master key, and ways to run a server that are unsafe."""

from . import master_key
from .safety import OTHERS, doubts, refuse_doubts, refuse_exposed_dev, weak_sslmode
from .settings import (
    MASTER_KEY_VARIABLE,
    RELOADED,
    ServerSettings,
    SettingsError,
    SettingsFile,
    clouds_at,
    http_address,
    parse_address,
    read_file,
    read_settings,
)
