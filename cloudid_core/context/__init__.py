"""The context that every program receives."""

from . import queue
from .context import Context, LeaseSubject, LeaseTerms, Mountable, Recheck
from .keyring import (
    KEYRING_BYTES,
    begin_data_key,
    begin_token_keys,
    drop_keys,
    keep_reserve,
    make_keyring,
    open_keyring,
    read_keyring,
    seal_keyring,
)
from .queue import NO_FENCE, Due, Job
