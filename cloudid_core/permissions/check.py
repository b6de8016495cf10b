"""Check which Azure permissions the credential of a mount has, and which needed ones are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from ..effects import Program, gather
from ..errors import Code, Refused, reason_of
from ..forms import TEXT, Json, schemas, setting
from ..messages import READ, Answer
from ..provider import (
    PROVIDER_FAILURES,
    Actions,
    Client,
    ProviderFailure,
    actions_at,
    directory_permissions,
    refusal_of,
)
from ..provider import scope as parse_scope
from ..routing import PROVIDER, Call, Route, may_read_config, mount_client, route
from .table import Api, Feature, Need, features_of

MOST_SCOPES: Final = 20
"""Maximum number of scopes that one request checks."""

Scopes = Callable[[Call], Program[set[str]]]
"""The scopes at which a mount works."""


@frozen(kw_only=True)
class PermissionsForm:
    scope: str = setting(TEXT, "", "Azure Resource Manager scope. Empty: the scopes that the mount's roles name.")


@frozen
class Unknown:
    """What was not checked, or not answered, and why."""

    reason: str


NO_SCOPE: Final = Unknown("not checked, because the mount's roles do not name a scope: set the parameter scope")


@frozen(kw_only=True)
class Granted:
    """What Azure returns, or why it does not answer."""

    directory: frozenset[str] | Unknown
    actions: Mapping[str, tuple[Actions, ...] | Unknown]
    """By scope."""
    left_out: int = 0
    """Number of scopes that were not checked."""

    def verdicts(self, need: Need) -> Iterator[tuple[str, bool | Unknown]]:
        """Return whether a permission is granted, once for each scope.

        The empty scope stands for all others.
        """
        if need.api is Api.DIRECTORY:
            known = self.directory
            yield "", known if isinstance(known, Unknown) else not known.isdisjoint(need.any_of)
            return
        for scope, actions in self.actions.items():
            if isinstance(actions, Unknown):
                yield scope, actions
            else:
                yield scope, any(each.grant(name) for each in actions for name in need.any_of)
        if self.left_out:
            yield "", Unknown(_left_out(self.left_out))
        elif not self.actions:
            yield "", NO_SCOPE

    @property
    def warnings(self) -> Iterator[str]:
        """Return why something is unknown, each reason once."""
        if isinstance(self.directory, Unknown):
            yield f"directory: {self.directory.reason}"
        for scope, actions in self.actions.items():
            if isinstance(actions, Unknown):
                yield f"{scope}: {actions.reason}"
        if self.left_out:
            yield _left_out(self.left_out)


def _left_out(count: int) -> str:
    return f"scopes that were not checked: {count}"


NEED: Final = schemas.members(TEXT="api scope reason", LIST="any_of", granted=schemas.nullable(schemas.BOOLEAN))
FEATURE: Final = schemas.members(TEXT="feature", granted=schemas.nullable(schemas.BOOLEAN), needs=schemas.list_of(NEED))
MEMBERS: Final = schemas.members(
    LIST="scopes",
    directory=schemas.nullable(schemas.LIST),
    features=schemas.list_of(FEATURE),
    missing=schemas.list_of(schemas.joined(schemas.members(TEXT="feature"), NEED)),
)


def permissions_route(scopes: Scopes) -> Route:

    @route("permissions", READ, MEMBERS, refusals=PROVIDER, form=PermissionsForm)
    async def read_permissions(call: Call) -> Answer:
        """Returns the Azure permissions that each feature needs, and which of them the credential lacks."""
        client = await mount_client(call.context, call.mount.id, call.deadline)
        scope = call.form(PermissionsForm).scope
        try:
            named = [parse_scope(scope)] if scope else sorted(await scopes(call))
        except ValueError as error:
            raise Refused(Code.FIELD_INVALID, f'"scope" {error}') from None
        granted = await _ask(client, named, names_code=may_read_config(call.caller, call.mount))
        return Answer(data=described(features_of(call.mount.kind), granted), warnings=tuple(granted.warnings))

    return read_permissions


async def _ask(client: Client, scopes: Sequence[str], *, names_code: bool) -> Granted:
    """Query Microsoft Graph and, for each scope, Azure Resource Manager.

    `names_code`: reasons include Azure's codes.
    """

    async def directory() -> frozenset[str] | Unknown:
        try:
            permissions = await directory_permissions(client)
        except (Refused, *PROVIDER_FAILURES) as failure:
            return _unknown(failure, names_code)
        return Unknown("its access tokens do not show their permissions") if permissions is None else permissions

    async def resources(scope: str) -> tuple[Actions, ...] | Unknown:
        try:
            return await actions_at(client, scope)
        except (Refused, *PROVIDER_FAILURES) as failure:
            return _unknown(failure, names_code)

    permissions, asked = await directory(), scopes[:MOST_SCOPES]
    actions = await gather([resources(scope) for scope in asked])
    by_scope = dict(zip(asked, actions, strict=True))
    return Granted(directory=permissions, actions=by_scope, left_out=len(scopes) - len(asked))


def _unknown(failure: Refused | ProviderFailure, names_code: bool) -> Unknown:
    return Unknown(reason_of(refusal_of(failure, names_code=names_code)))


def described(features: Sequence[Feature], granted: Granted) -> dict[str, Json]:
    """Return the members of the response: what is granted, each feature with its needs, and what is missing."""
    rows: list[dict[str, Json]] = []
    for feature in features:
        needs = [_need(need, scope, verdict) for need in feature.needs for scope, verdict in granted.verdicts(need)]
        rows.append({"feature": feature.name, "granted": _all([need["granted"] for need in needs]), "needs": needs})
    missing = [{"feature": row["feature"], **need} for row in rows for need in row["needs"] if need["granted"] is False]
    return {
        "directory": None if isinstance(granted.directory, Unknown) else sorted(granted.directory),
        "scopes": list(granted.actions),
        "features": rows,
        "missing": missing,
    }


def _need(need: Need, scope: str, verdict: bool | Unknown) -> dict[str, Json]:
    granted, reason = (None, verdict.reason) if isinstance(verdict, Unknown) else (verdict, "")
    return {"api": need.api.value, "any_of": list(need.any_of), "scope": scope, "granted": granted, "reason": reason}


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    """Return false if one is missing, and `None` if one is unknown and none is missing."""
    return False if False in verdicts else None if None in verdicts else True
