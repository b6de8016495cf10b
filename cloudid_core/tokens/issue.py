"""Create a token: its text for the caller, and its record for the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from ..context import Context, Due
from ..effects import ABSENT, Instant, Now, RandomBytes
from ..errors import Code, Refused
from ..forms import grant
from ..messages import AuthBlock
from ..mounts import TOKEN, Mount
from ..policies import normalised
from ..store import NO_CHANGES, Changes
from ..values import Secret
from . import batch, encoding
from .record import Token
from .settings import BATCH, SERVICE, TokenSettings

RANDOM_SIZE: Final = max(encoding.RANDOM_SIZE, encoding.ID_RANDOM_SIZE + batch.RANDOM_SIZE)


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    """A token that exists once its records are stored. A batch token has no records."""

    token: Token
    text: str
    accessor: str
    warnings: tuple[str, ...]
    stored_id: str = ""
    """The id of the token in the store. Empty for a batch token."""

    def __repr__(self) -> str:
        return f"<Issue of {self.token}>"

    @property
    def puts(self) -> Mapping[str, object]:
        """Return the records of the token, by key."""
        if not self.stored_id:
            return {}
        token = self.token
        key = token.key
        return {**dict.fromkeys(token.own_keys, Due()), key: token} if token.parent else {key: token}

    @property
    def changes(self) -> Changes:
        """Return the change that stores the token under an unused id."""
        return Changes({self.token.key: ABSENT}, puts) if (puts := self.puts) else NO_CHANGES

    @property
    def block(self) -> AuthBlock:
        """Return the `auth` member of the response."""
        return auth_block(self.token, self.text, self.accessor, self.token.ttl)


def auth_block(token: Token, shown: str, accessor: str, ttl: int) -> AuthBlock:
    return AuthBlock(
        client_token=shown,
        accessor=accessor,
        policies=token.policies,
        token_policies=token.policies,
        metadata=token.metadata,
        lease_duration=ttl,
        renewable=token.renewable,
        token_type=token.type,
        orphan=token.orphan,
        num_uses=token.num_uses,
    )


def accessor_of(context: Context, token: Token) -> str:
    """Return the accessor of a token. A batch token has none."""
    keys = None if token.is_batch else context.records.sealer.keyring.token_keys_of(token.key_term)
    return encoding.accessor_of(token.id, keys) if keys else ""


def mint(context: Context, draft: Token, warnings: tuple[str, ...], random: bytes, chosen: str = "") -> Issue:
    """Give a new token its id and text. `chosen` is the text that a request sets.

    Needs `RANDOM_SIZE` random bytes.
    """
    keyring = context.records.sealer.keyring
    if draft.type == BATCH:
        token_id = encoding.time_ordered_id(draft.created_at, random[: encoding.ID_RANDOM_SIZE])
        token = replace(draft, id=token_id, renewable=False)
        shown = batch.seal(token, keyring, random[encoding.ID_RANDOM_SIZE :])
        return Issue(token=token, text=shown, accessor="", warnings=warnings)
    keys = keyring.token_keys_at(draft.created_at)
    fresh = encoding.custom_token(chosen, keys) if chosen else encoding.new_token(draft.created_at, random)
    token = replace(draft, id=fresh.id, mac=encoding.mac_of(fresh.text, keys), key_term=keys.term)
    accessor = encoding.accessor_of(fresh.id, keys)
    return Issue(token=token, text=fresh.text, accessor=accessor, warnings=warnings, stored_id=fresh.id)


async def make_own_token(context: Context, name: str, policies: tuple[str, ...], seconds: int) -> Secret:
    """Create a batch token that no request asked for. Audit entries show `name`."""
    now = await Now()
    draft = Token(
        path=f"{TOKEN.path}/create",
        mount_id=TOKEN.id,
        policies=normalised(policies),
        display_name=name,
        created_at=now,
        ttl=seconds,
        expires_at=now + seconds,
        type=BATCH,
    )
    return Secret(mint(context, draft, (), await RandomBytes(RANDOM_SIZE)).text)


def type_at(mount: Mount, role: TokenSettings) -> str:
    """Return the type of a login's token.

    The mount may force a type, otherwise the role chooses one, otherwise it is the mount's default.
    """
    chosen = mount.token_type
    if chosen not in (SERVICE, BATCH) and role.token_type in (SERVICE, BATCH):
        chosen = role.token_type
    return BATCH if chosen.endswith(BATCH) else SERVICE  # records leave the default out, if it is this very object


class Template(msgspec.Struct, frozen=True):
    """The common part of all tokens of a role, without times, names and metadata."""

    token: Token
    warnings: tuple[str, ...]


def template(context: Context, mount: Mount, role: TokenSettings, role_name: str, *, path: str) -> Template:
    """Return the template for the tokens of a role's logins at `path`, which are orphans."""
    token_type = type_at(mount, role)
    if token_type == BATCH and (role.token_period or role.token_num_uses):
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "the role limits uses or is periodic")
    granted = grant(role.terms(mount, context.settings), start=0, now=0)
    token = Token(
        path=path,
        mount_id=mount.id,
        policies=role.policies,
        display_name="",
        created_at=0,
        ttl=granted.ttl,
        expires_at=granted.ttl,
        role=role_name,
        type=token_type,
        explicit_max_ttl=role.token_explicit_max_ttl,
        period=role.token_period,
        num_uses=role.token_num_uses,
        bound_cidrs=role.token_bound_cidrs,
    )
    return Template(token, granted.warnings)


def issue(
    context: Context, template: Template, random: bytes, *, now: Instant, display_name: str, metadata: Mapping[str, str]
) -> Issue:
    """Return a new token of a role, as of now. Needs `RANDOM_SIZE` random bytes."""
    draft = replace(
        template.token,
        display_name=display_name,
        created_at=now,
        expires_at=now + template.token.ttl,
        metadata=metadata,
    )
    return mint(context, draft, template.warnings, random)
