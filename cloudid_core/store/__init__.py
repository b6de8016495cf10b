"""The store: an ordered map of versioned, encrypted entries, read one by one and written by atomic commits."""

from . import keys
from .changes import NO_CHANGES, Changes
from .conflicts import Retries, retry_on_conflict
from .memory import MemoryStore
from .records import PAGE, Found, Records, decode, encode, expected, version_of
from .sealing import (
    KEY_SIZE,
    MASTER_TERM,
    NONCE_SIZE,
    RESERVE,
    BlockCipher,
    DataKey,
    KeyedHash,
    Keyring,
    SealBroken,
    Sealer,
    TokenKeys,
    master_cipher,
    open_with,
    seal_with,
    term_of,
)
