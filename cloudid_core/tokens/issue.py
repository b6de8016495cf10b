"""Make a token: its text for the caller, its record for the store."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ..context import Context
from ..due import Due
from ..effects import ABSENT, Instant, RandomBytes
from ..errors import Code, Refused
from ..lifetime import grant
from ..messages import AuthBlock
from ..mounts import Mount
from . import batch, text
from .record import Token
from .settings import BATCH, SERVICE, TokenSettings


@frozen(kw_only=True)
class Issue:
    """A token that exists once `puts` are committed; there are none for a batch token."""

    token: Token
    text: str = field(repr=False)
    accessor: str
    expects: Mapping[str, int]
    puts: Mapping[str, object]
    warnings: tuple[str, ...]

    @property
    def block(self) -> AuthBlock:
        """The `auth` member of the answer."""
        return auth_block(self.token, self.text, self.accessor, self.token.ttl)


def auth_block(token: Token, shown: str, accessor: str, ttl: int) -> AuthBlock:
    return AuthBlock(
        client_token=shown,
        accessor=accessor,
        policies=token.policies,
        metadata=token.metadata,
        lease_duration=ttl,
        renewable=token.renewable,
        token_type=token.type,
        orphan=token.orphan,
        num_uses=token.num_uses,
    )


def accessor_of(context: Context, token: Token) -> str:
    """The accessor of a token; a batch token has none."""
    return "" if token.is_batch else text.accessor_of(token.id, context.records.sealer.ring)


async def mint(context: Context, draft: Token, warnings: tuple[str, ...], chosen: str = "") -> Issue:
    """Give a token that has none an id and a text; `chosen` is the text that somebody wished for."""
    ring = context.records.sealer.ring
    if draft.is_batch:
        random = await RandomBytes(text.ID_RANDOM_SIZE + batch.RANDOM_SIZE)
        token_id = text.time_ordered_id(draft.created_at, random[: text.ID_RANDOM_SIZE])
        token = evolve(draft, id=token_id, renewable=False)
        shown = batch.seal(token, ring, random[text.ID_RANDOM_SIZE :])
        return Issue(token=token, text=shown, accessor="", expects={}, puts={}, warnings=warnings)
    if chosen:
        fresh = text.custom_token(chosen, ring)
    else:
        fresh = await text.new_token(draft.created_at)
    token = evolve(draft, id=fresh.id, mac=text.mac_of(fresh.text, ring))
    puts: dict[str, object] = {key: Due() for key in token.own_keys}
    return Issue(
        token=token,
        text=fresh.text,
        accessor=accessor_of(context, token),
        expects={token.key: ABSENT},
        puts={**puts, token.key: token},
        warnings=warnings,
    )


def type_at(mount: Mount, role: TokenSettings) -> str:
    """Which type a login gives: the mount may force one, else the role chooses, else the mount's default."""
    if mount.token_type in (SERVICE, BATCH):
        return mount.token_type
    if role.token_type in (SERVICE, BATCH):
        return role.token_type
    return mount.token_type.removeprefix("default-")


async def issue_for_role(
    context: Context,
    mount: Mount,
    role: TokenSettings,
    role_name: str,
    *,
    now: Instant,
    path: str,
    display_name: str,
    metadata: Mapping[str, str],
) -> Issue:
    """A fresh orphan token with the settings of a role."""
    token_type = type_at(mount, role)
    if token_type == BATCH and (role.token_period or role.token_num_uses):
        raise Refused(Code.BATCH_TOKEN_UNSUPPORTED, "the role limits uses or is periodic")
    granted = grant(role.terms(mount, context.settings), start=now, now=now)
    draft = Token(
        path=path,
        mount_id=mount.id,
        policies=role.policies,
        display_name=display_name,
        created_at=now,
        ttl=granted.ttl,
        expires_at=now + granted.ttl,
        role=role_name,
        metadata=metadata,
        type=token_type,
        explicit_max_ttl=role.token_explicit_max_ttl,
        period=role.token_period,
        num_uses=role.token_num_uses,
        bound_cidrs=role.token_bound_cidrs,
    )
    return await mint(context, draft, granted.warnings)
