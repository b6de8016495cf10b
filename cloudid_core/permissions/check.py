"""Which permissions the credential of a mount has, and which of those that its features need are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from attrs import frozen

from ..effects import Program, gather
from ..errors import Code, Refused, reason_of
from ..forms import TEXT, Json, setting
from ..messages import Answer, Operation
from ..provider import PROVIDER_FAILURES, Actions, Client, actions_at, directory_permissions, refusal_of
from ..provider import scope as parse_scope
from ..routing import Call, Route, mount_client
from .table import Api, Feature, Need, features_of

MOST_SCOPES: Final = 20
"""How many scopes one request looks at."""

Scopes = Callable[[Call], Program[set[str]]]
"""The scopes at which a mount works."""


@frozen(kw_only=True)
class PermissionsForm:
    """Where to look."""

    scope: str = setting(TEXT, "", "Scope of the resource manager; empty: those that the mount's roles name.")


@frozen(kw_only=True)
class Granted:
    """What the provider says. `None`: it did not say; `warnings` tell why."""

    directory: frozenset[str] | None
    actions: Mapping[str, tuple[Actions, ...] | None]
    """By scope."""
    warnings: tuple[str, ...]

    def has(self, need: Need, scope: str) -> bool | None:
        """Whether a permission is there; `None` if that is unknown."""
        if need.api is Api.DIRECTORY:
            return None if self.directory is None else not self.directory.isdisjoint(need.any_of)
        actions = self.actions[scope]
        return None if actions is None else any(each.grant(name) for each in actions for name in need.any_of)


def permissions_route(scopes: Scopes) -> Route:
    """The route `permissions` of a component."""

    async def read_permissions(call: Call) -> Answer:
        client = await mount_client(call.context, call.mount.id, call.deadline)
        named = sorted({_parsed(call)} if call.form(PermissionsForm).scope else await scopes(call))
        granted = await _ask(client, named[:MOST_SCOPES])
        left_out = len(named) - MOST_SCOPES
        warnings = (f"{left_out} more scopes were not looked at",) if left_out > 0 else ()
        data = described(features_of(call.mount.kind), granted)
        return Answer(data=data, warnings=(*granted.warnings, *warnings))

    return Route(
        path="permissions",
        operation=Operation.READ,
        program=read_permissions,
        form=PermissionsForm,
        doc="Tells which provider permissions each feature needs, and which of them the credential lacks.",
    )


def _parsed(call: Call) -> str:
    try:
        return parse_scope(call.form(PermissionsForm).scope)
    except ValueError as error:
        raise Refused(Code.FIELD_INVALID, f'"scope" {error}') from None


async def _ask(client: Client, scopes: Sequence[str]) -> Granted:
    """Ask the directory and, for each scope, the resource manager."""
    warnings: list[str] = []

    async def directory() -> frozenset[str] | None:
        try:
            permissions = await directory_permissions(client)
        except (Refused, *PROVIDER_FAILURES) as failure:
            warnings.append(f"directory: {_reason(failure)}")
            return None
        if permissions is None:
            warnings.append("directory: its access tokens do not show their permissions")
        return permissions

    async def resources(scope: str) -> tuple[Actions, ...] | None:
        try:
            return await actions_at(client, scope)
        except (Refused, *PROVIDER_FAILURES) as failure:
            warnings.append(f"{scope}: {_reason(failure)}")
            return None

    permissions = await directory()
    actions = await gather([resources(scope) for scope in scopes])
    by_scope = dict(zip(scopes, actions, strict=True))
    return Granted(directory=permissions, actions=by_scope, warnings=tuple(warnings))


def _reason(failure: Exception) -> str:
    refusal = refusal_of(failure) if isinstance(failure, PROVIDER_FAILURES) else failure
    return reason_of(refusal) if isinstance(refusal, Refused) else ""


def described(features: Sequence[Feature], granted: Granted) -> dict[str, Json]:
    """The members of the answer: what is granted, each feature with its needs, and the names of what is missing."""
    rows = [_feature(feature, granted) for feature in features]
    missing = [{"feature": row["feature"], **need} for row in rows for need in row["needs"] if need["granted"] is False]
    return {
        "directory": None if granted.directory is None else sorted(granted.directory),
        "scopes": list(granted.actions),
        "features": rows,
        "missing": missing,
    }


def _feature(feature: Feature, granted: Granted) -> dict[str, Json]:
    checked = [
        (need, scope, granted.has(need, scope))
        for need in feature.needs
        for scope in (granted.actions if need.api is Api.RESOURCES else ("",))
    ]
    needs = [
        {"api": need.api.value, "any_of": list(need.any_of), "scope": scope, "granted": has}
        for need, scope, has in checked
    ]
    return {"feature": feature.name, "granted": _all([has for _, _, has in checked]), "needs": needs}


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    """False if one is missing, `None` if one is unknown and none is missing."""
    if False in verdicts:
        return False
    return None if None in verdicts else True
