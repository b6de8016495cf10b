"""Entries: a request and its response, as existing tools for audit logs parse them, and a login's decision besides.

Secrets do not get into an entry: tokens, accessors, every text and number of a body and the names of members that no
form knows are keyed hashes there. Paths, other names, policies, display names and metadata are clear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from ..audit import ADMITTED, LEAF_LIMIT, AuditContext, Decision, Device, Entries, Hasher
from ..errors import Problem
from ..forms import without_names
from ..messages import Answer, AuthBlock, Operation, WrapInfo
from ..mounts import Mount
from ..routing import Exchange, Proven
from ..values import json_text, rfc3339

NO_TOKEN: Final = msgspec.Raw(b'{"token_type":"default"}')
LISTS: Final[Mapping[str, type | UnionType]] = {"keys": list | tuple, "key_info": Mapping}
"""The members of a list's answer that a device may count instead, and their usual types. Others are kept."""

_encode: Final = msgspec.json.Encoder().encode


class _Members(msgspec.Struct, kw_only=True, gc=False):
    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class _Namespace(msgspec.Struct, frozen=True):
    id: str = "root"


NAMESPACE: Final = _Namespace()


class _Token(_Members, kw_only=True, gc=False):
    """The caller's token, or the token that a response gives."""

    client_token: str
    accessor: str
    display_name: str | UnsetType = UNSET
    policies: tuple[str, ...]
    token_policies: tuple[str, ...]
    metadata: Mapping[str, str] | None
    token_type: str
    token_ttl: int
    token_issue_time: str | UnsetType = UNSET


class _Request(_Members, kw_only=True, gc=False):
    id: str
    operation: str
    mount_type: str | UnsetType = UNSET
    mount_accessor: str | UnsetType = UNSET
    mount_point: str | UnsetType = UNSET
    client_token: str | UnsetType = UNSET
    client_token_accessor: str | UnsetType = UNSET
    namespace: _Namespace = NAMESPACE
    path: str
    data: dict[str, Any] | UnsetType = UNSET
    remote_address: str | UnsetType = UNSET
    remote_port: int | UnsetType = UNSET
    wrap_ttl: float | UnsetType = UNSET
    headers: dict[str, list[str]] | UnsetType = UNSET


class _Response(_Members, kw_only=True, gc=False):
    mount_type: str | UnsetType = UNSET
    mount_accessor: str | UnsetType = UNSET
    mount_point: str | UnsetType = UNSET
    auth: _Token | UnsetType = UNSET
    secret: dict[str, str] | UnsetType = UNSET
    data: dict[str, Any] | UnsetType = UNSET
    wrap_info: dict[str, Any] | UnsetType = UNSET
    warnings: tuple[str, ...] | UnsetType = UNSET


class _Decision(_Members, kw_only=True, gc=False):
    """A login's decision. `checks` is rendered."""

    verdict: str
    jwt_type: str
    principal_id: str
    resource_id: str | UnsetType = UNSET
    checks: msgspec.Raw


class _Entry(_Members, kw_only=True, gc=False):
    """One entry. `auth` and `request` are rendered: the entries of a request and of its response share them."""

    type: str
    auth: msgspec.Raw
    request: msgspec.Raw
    response: _Response | UnsetType = UNSET
    decision: _Decision | UnsetType = UNSET
    error: str | UnsetType = UNSET
    error_codes: list[str] | UnsetType = UNSET


def request_entries(exchange: Exchange) -> Entries | None:
    """Return the entries of a request, which are written before it is executed. `None`: it is not audited."""
    trail = exchange.trail
    if trail is None:
        return None
    texts = [_encode(_Entry(type="request", auth=auth, request=request)) for auth, request in _common(exchange, trail)]
    return Entries(trail.devices, tuple(texts))


def response_entries(exchange: Exchange, problems: tuple[Problem, ...] = ()) -> Entries | None:
    """Return the entries of the response, which are written before it is sent. `None`: it is not audited.

    `problems` are those of a refusal.
    """
    trail = exchange.trail
    if trail is None:
        return None
    decision = trail.decision
    texts = []
    for device, (auth, request) in zip(trail.entry_devices, _common(exchange, trail), strict=True):
        entry = _Entry(type="response", auth=auth, request=request)
        if exchange.answer is not None and not problems:
            entry.response = _response(exchange, device, exchange.answer)
        if decision is not None:
            entry.decision = _decision(device.hasher, decision, exchange.proven)
        if problems:
            entry.error = "; ".join([problem.text for problem in problems])
            entry.error_codes = [problem.code.wire for problem in problems]
        texts.append(_encode(entry))
    return Entries(trail.devices, tuple(texts))


def _common(exchange: Exchange, trail: AuditContext) -> Sequence[tuple[msgspec.Raw, msgspec.Raw]]:
    """Return the rendered members `auth` and `request` for each device."""
    if not trail.common:
        trail.common = [
            (_auth(exchange, device), msgspec.Raw(_encode(_request(exchange, trail, device))))
            for device in trail.entry_devices
        ]
    return trail.common


def _auth(exchange: Exchange, device: Device) -> msgspec.Raw:
    caller = exchange.caller
    if caller is None:
        return NO_TOKEN
    token = caller.token
    members = _Token(
        client_token=device.hasher.text(caller.text),
        accessor=_accessor(device, exchange.caller_accessor),
        display_name=token.display_name,
        policies=token.policies,
        token_policies=token.policies,
        metadata=token.metadata,
        token_type=token.type,
        token_ttl=token.ttl,
        token_issue_time=rfc3339.show(token.created_at),
    )
    return msgspec.Raw(_encode(members))


def _request(exchange: Exchange, trail: AuditContext, device: Device) -> _Request:
    mount, headers = exchange.mount, exchange.request.headers
    members = _Request(
        id=exchange.request_id,
        operation=exchange.capability,
        path=exchange.shown_path,
        remote_address=exchange.request.remote_address,
        remote_port=exchange.request.remote_port or UNSET,
    )
    if mount is not None:
        _name_mount(members, mount)
    if exchange.token:
        members.client_token = device.hasher.text(exchange.token)
        if exchange.caller_accessor:
            members.client_token_accessor = _accessor(device, exchange.caller_accessor)
    if exchange.body:
        clear = mount.audit_non_hmac_request_keys if mount is not None else ()
        members.data = device.hasher.members(exchange.body, clear, exchange.fields)
    if exchange.wrap_ttl:
        members.wrap_ttl = exchange.wrap_ttl
    if not trail.headers.keys().isdisjoint(headers):
        members.headers = {
            name: [device.hasher.text(headers[name]) if is_hashed else headers[name]]
            for name, is_hashed in trail.headers.items()
            if name in headers
        }
    return members


def _response(exchange: Exchange, device: Device, answer: Answer) -> _Response:
    members, mount = _Response(), exchange.mount
    if mount is not None:
        _name_mount(members, mount)
    if answer.auth is not None:
        members.auth = _granted(device, answer.auth)
    if answer.lease_id:
        members.secret = {"lease_id": answer.lease_id}
    if answer.data:
        data, clear = answer.data, mount.audit_non_hmac_response_keys if mount else ()
        if device.elides_lists and exchange.operation is Operation.LIST:
            counts = _counts(data)
            data, clear = {**data, **counts}, (*clear, *counts)
        members.data = device.hasher.members(data, clear)
    if answer.rendered:  # the body of the answer that was wrapped
        members.data = device.hasher.members(json_text.decode_own(answer.rendered))
    if answer.wrap_info is not None:
        members.wrap_info = _wrapping(device, answer.wrap_info)
    if answer.warnings:
        members.warnings = tuple(map(without_names, answer.warnings))
    return members


def _counts(data: Mapping[str, Any]) -> dict[str, int]:
    """Count the values of each member that grows with a list."""
    return {name: len(data[name]) for name, kind in LISTS.items() if isinstance(data.get(name), kind)}


def _name_mount(members: _Request | _Response, mount: Mount) -> None:
    members.mount_type, members.mount_accessor = mount.shown_type, mount.accessor
    members.mount_point = f"{mount.path}/"


def _accessor(device: Device, accessor: str) -> str:
    return accessor if device.shows_accessors or not accessor else device.hasher.text(accessor)


def _granted(device: Device, block: AuthBlock) -> _Token:
    return _Token(
        client_token=device.hasher.text(block.client_token),
        accessor=_accessor(device, block.accessor),
        policies=block.policies,
        token_policies=block.policies,
        metadata=block.metadata,
        token_type=block.token_type,
        token_ttl=block.lease_duration,
    )


def _wrapping(device: Device, info: WrapInfo) -> dict[str, Any]:
    """Return the members about the token of a wrapped answer."""
    return {
        **asdict(info),
        "token": device.hasher.text(info.token),
        "accessor": _accessor(device, info.accessor),
        "wrapped_accessor": _accessor(device, info.wrapped_accessor),
    }


def _decision(hasher: Hasher, decision: Decision, proven: Proven) -> _Decision:
    """Logins that are admitted meet few different lists of checks, so theirs is remembered."""
    is_admitted = decision.verdict == ADMITTED
    return _Decision(
        verdict=decision.verdict,
        jwt_type=decision.jwt_type,
        principal_id=proven.principal_id,
        resource_id=proven.resource_id or UNSET,
        checks=hasher.remembered(_checks, decision) if is_admitted else _checks(hasher, decision),
    )


def _checks(hasher: Hasher, decision: Decision) -> msgspec.Raw:
    """Return the checks of a decision. If lists are together longer than `LEAF_LIMIT`, each is one hash."""
    checks, left = [], LEAF_LIMIT
    for check in decision.checks:
        members: dict[str, Any] = {"check": check.name, "verdict": check.verdict}
        if check.expected:
            is_short = len(check.expected) <= left
            left -= len(check.expected) if is_short else 1
            members["expected"] = hasher.remembered(Hasher.texts if is_short else Hasher.as_one, check.expected)
        if check.found is not None:
            is_short = not isinstance(check.found, list | tuple) or len(check.found) <= left
            left -= len(check.found) if is_short and isinstance(check.found, list | tuple) else 1
            members |= hasher.members({"found": check.found}) if is_short else {"found": hasher.as_one(check.found)}
        checks.append(members)
    return msgspec.Raw(_encode(checks))


def probe(device: Device, request_id: str, others: Iterable[Device]) -> Entries:
    """Return the test entries for a device before it is enabled. `others`: the enabled devices."""
    request = {"id": request_id, "operation": "update", "namespace": NAMESPACE, "path": "sys/audit/test"}
    text = _encode({"type": "request", "auth": {}, "request": request})
    return Entries(
        (device,), (text,), is_trial=True, others=tuple(other for other in others if other.name != device.name)
    )
