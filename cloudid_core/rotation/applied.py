"""Client secrets out of folders of files that are applied again and again: written once, and never over one of ours.

What was applied last is remembered by its hash, which stands beside the configuration and goes with it. So a secret
that was rotated since is not put back, and whoever applies a folder need not know what is in use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from ..context import Context
from ..credentials import RootCredential
from ..effects import RandomBytes
from ..errors import Code, Refused
from ..forms import BOOLEAN, SECRET, setting
from ..messages import Answer
from ..mounts import Mount
from ..routing import Call
from ..store import KeyedHash
from ..values import Secret
from .record import find_undamaged_rotation
from .root import find_root

KEY_BYTES: Final = 32
SAME: Final = "same"
OTHER: Final = "other"
MADE_HERE: Final = "made_here"


@frozen(kw_only=True, slots=False)  # a form has two bases, of which one may have slots
class AppliedForm:
    """What a write of a configuration says about its client secret."""

    applied: bool = setting(
        BOOLEAN,
        False,
        "`client_secret` comes from files that are applied again and again: its hash is remembered, and it is refused"
        " where the service made the present one itself.",
    )
    replace_root_secret: bool = setting(BOOLEAN, False, "With `applied`: put it over such a one too.")


@frozen(kw_only=True)
class CompareForm:
    """A client secret that is to be applied."""

    client_secret: Secret = setting(SECRET, Secret(), "The client secret.", required=True)


async def compare_secret(call: Call) -> Answer:
    """Say whether a client secret is the one that was applied last; changes nothing."""
    found = await find_root(call.context, call.mount)
    secret = call.form(CompareForm).client_secret
    if found is None or not found.record.client_secret:
        verdict = OTHER
    elif found.record.applied_hash == _hash(Secret(found.record.applied_hash.partition(":")[0]), secret):
        verdict = SAME
    else:
        verdict = MADE_HERE if await _is_made_here(call.context, call.mount, found.record) else OTHER
    return Answer(data={"client_secret": verdict})


async def with_applied(call: Call, stored: RootCredential, given: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a write, with the hash of a secret that is applied; refused over a secret of ours."""
    changes = {name: value for name, value in given.items() if name not in ("applied", "replace_root_secret")}
    if not given.get("applied") or "client_secret" not in given:
        return changes
    if not given.get("replace_root_secret") and await _is_made_here(call.context, call.mount, stored):
        raise Refused(Code.ROOT_SECRET_MADE_HERE)
    key = Secret((await RandomBytes(KEY_BYTES)).hex())
    return {**changes, "applied_hash": _hash(key, given["client_secret"])}


async def _is_made_here(context: Context, mount: Mount, config: RootCredential) -> bool:
    rotation = await find_undamaged_rotation(context, mount.id)
    key = rotation.record.key_of(config.client_secret) if rotation else None
    return key is not None and key.made_at is not None


def _hash(key: Secret, secret: Secret) -> str:
    """The key of the hash, and the hash."""
    return f"{key.reveal()}:{KeyedHash(key).hexadecimal(secret.reveal())}"
