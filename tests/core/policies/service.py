"""A context for programs of policies."""

from __future__ import annotations

from cloudid_core.foundation.caches import Caches
from cloudid_core.foundation.components import Catalog
from cloudid_core.foundation.context import Context
from cloudid_core.policies.document import Policy, parse
from cloudid_core.settings import Settings
from cloudid_core.store import keys
from cloudid_core.store.keyring import KEYRING_BYTES, make_keyring
from cloudid_core.store.records import Records
from cloudid_core.store.sealing import Sealer
from cloudid_core.values.secret import Secret


async def write_policy(context: Context, name: str, text: str) -> None:
    await context.records.update(keys.policy(name), Policy, lambda _: parse(name, text))


def new_context() -> Context:
    settings = Settings(master_key=Secret("00" * 32))
    caches = Caches(settings)
    return Context(
        settings, Records(Sealer(make_keyring(0.0, bytes(KEYRING_BYTES))), caches.records), caches, Catalog(())
    )
