"""A context for programs that need no service."""

from __future__ import annotations

from typing import Any

from cloudid_core.caches import Caches
from cloudid_core.context.context import Context
from cloudid_core.context.keyring import KEYRING_BYTES, make_keyring
from cloudid_core.routing.components import Catalog
from cloudid_core.settings import Settings
from cloudid_core.store.records import Records
from cloudid_core.store.sealing import Sealer
from cloudid_core.values.secret import Secret


def new_context(**settings: Any) -> Context:
    """A context without components, over an empty store."""
    chosen = Settings(master_key=Secret("00" * 32), **settings)
    caches = Caches(chosen)
    records = Records(Sealer(make_keyring(0.0, bytes(KEYRING_BYTES))), caches.records)
    return Context(settings=chosen, records=records, caches=caches, components=Catalog(()))
