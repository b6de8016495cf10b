"""Entries: a request and its response, as existing tools for audit logs parse them, and a login's decision besides.

Secrets do not get into an entry: tokens, accessors and every text and number of a body are keyed hashes there. Paths,
names of members, policies, display names and metadata are clear.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..api.exchange import Exchange
from ..api.response import Answer, AuthBlock, WrapInfo
from ..errors import Problem
from ..mounts.table import Mount
from ..values import rfc3339
from .device import ADMITTED, Decision, Device, Entries, Trail
from .hashing import Hasher

NAMESPACE: Final = {"id": "root"}
NO_TOKEN: Final = b'{"token_type":"default"}'
_encode: Final = msgspec.json.Encoder().encode


def request_entries(exchange: Exchange) -> Entries | None:
    """The entries of a request, to be written before it is executed; `None` where it is not audited."""
    trail = exchange.trail
    if trail is None:
        return None
    return Entries(trail.devices, tuple([b'{"type":"request",%s}' % part for part in _common(exchange, trail)]))


def response_entries(exchange: Exchange, problems: tuple[Problem, ...] = ()) -> Entries | None:
    """The entries of the response, to be written before it is sent; `None` where the request is not audited.

    `problems` are those of a refusal.
    """
    trail = exchange.trail
    if trail is None:
        return None
    texts = [
        b'{"type":"response",%s%s}' % (part, _outcome(exchange, trail, device, problems))
        for device, part in zip(trail.takers, _common(exchange, trail), strict=True)
    ]
    return Entries(trail.devices, tuple(texts))


def _common(exchange: Exchange, trail: Trail) -> tuple[bytes, ...]:
    if not trail.common:
        trail.common = tuple(
            [
                b'"auth":%s,"request":%s' % (_auth(exchange, device), _encode(_request(exchange, trail, device)))
                for device in trail.takers
            ]
        )
    return trail.common


def _auth(exchange: Exchange, device: Device) -> bytes:
    caller = exchange.caller
    if caller is None:
        return NO_TOKEN
    token = caller.token
    members = {
        "client_token": device.hasher.text(caller.text),
        "accessor": _accessor(device, exchange.caller_accessor),
        "display_name": token.display_name,
        "policies": token.policies,
        "token_policies": token.policies,
        "metadata": token.metadata,
        "token_type": token.type,
        "token_ttl": token.ttl,
        "token_issue_time": rfc3339.show(token.created_at),
    }
    return _encode(members)


def _request(exchange: Exchange, trail: Trail, device: Device) -> dict[str, Any]:
    ask, mount, headers = exchange.ask, exchange.mount, exchange.request.headers
    members: dict[str, Any] = {"id": exchange.request_id, "operation": exchange.operation}
    if mount is not None:
        members |= _mount_members(mount)
    if ask is not None and ask.token:
        members["client_token"] = device.hasher.text(ask.token)
        if exchange.caller_accessor:
            members["client_token_accessor"] = _accessor(device, exchange.caller_accessor)
    members["namespace"] = NAMESPACE
    members["path"] = exchange.path
    if ask is not None and ask.body:
        members["data"] = device.hasher.members(ask.body, mount.audit_non_hmac_request_keys if mount else ())
    members["remote_address"] = exchange.request.remote_address
    if ask is not None and ask.wrap_ttl:
        members["wrap_ttl"] = ask.wrap_ttl
    if trail.headers:
        members["headers"] = {
            name: [device.hasher.text(headers[name]) if is_hashed else headers[name]]
            for name, is_hashed in trail.headers.items()
            if name in headers
        }
    return members


def _outcome(exchange: Exchange, trail: Trail, device: Device, problems: tuple[Problem, ...]) -> bytes:
    members: dict[str, Any] = {}
    if exchange.answer is not None and not problems:
        members["response"] = _response(exchange.mount, device, exchange.answer)
    if (decision := trail.decision) is not None:
        members["decision"] = _decision(device.hasher, decision)
    if problems:
        members["error"] = "; ".join(problem.text for problem in problems)
        members["error_codes"] = [problem.code.wire for problem in problems]
    return b"," + _encode(members)[1:-1] if members else b""


def _response(mount: Mount | None, device: Device, answer: Answer) -> dict[str, Any]:
    members: dict[str, Any] = _mount_members(mount) if mount is not None else {}
    if answer.auth is not None:
        members["auth"] = _granted(device, answer.auth)
    if answer.lease_id:
        members["secret"] = {"lease_id": answer.lease_id}
    if answer.data:
        members["data"] = device.hasher.members(answer.data, mount.audit_non_hmac_response_keys if mount else ())
    if answer.rendered:  # the body of the answer that was wrapped
        members["data"] = device.hasher.members(msgspec.json.decode(answer.rendered))
    if answer.wrap_info is not None:
        members["wrap_info"] = _wrapping(device, answer.wrap_info)
    if answer.warnings:
        members["warnings"] = answer.warnings
    return members


def _mount_members(mount: Mount) -> dict[str, Any]:
    return {"mount_type": mount.shown_type, "mount_accessor": mount.accessor, "mount_point": f"{mount.path}/"}


def _accessor(device: Device, accessor: str) -> str:
    return accessor if device.shows_accessors or not accessor else device.hasher.text(accessor)


def _granted(device: Device, block: AuthBlock) -> dict[str, Any]:
    """The token that a response gives."""
    return {
        "client_token": device.hasher.text(block.client_token),
        "accessor": _accessor(device, block.accessor),
        "policies": block.policies,
        "token_policies": block.policies,
        "metadata": block.metadata,
        "token_type": block.token_type,
        "token_ttl": block.lease_duration,
    }


def _wrapping(device: Device, info: WrapInfo) -> dict[str, Any]:
    """The token that stands for a wrapped answer."""
    return {
        **info.members(),
        "token": device.hasher.text(info.token),
        "accessor": _accessor(device, info.accessor),
        "wrapped_accessor": _accessor(device, info.wrapped_accessor),
    }


def _decision(hasher: Hasher, decision: Decision) -> msgspec.Raw:
    """Logins that are admitted have few different decisions, so theirs is remembered."""
    return hasher.remembered(_checks, decision) if decision.verdict == ADMITTED else _checks(hasher, decision)


def _checks(hasher: Hasher, decision: Decision) -> msgspec.Raw:
    checks = []
    for check in decision.checks:
        members: dict[str, Any] = {"check": check.name, "verdict": check.verdict}
        if check.expected:
            members["expected"] = hasher.remembered(Hasher.texts, check.expected)
        if check.found is not None:
            members |= hasher.members({"found": check.found})
        checks.append(members)
    return msgspec.Raw(_encode({"verdict": decision.verdict, "checks": checks}))


def probe(device: Device, request_id: str) -> Entries:
    """What is written to a device before it is enabled."""
    request = {"id": request_id, "operation": "update", "namespace": NAMESPACE, "path": "sys/audit/test"}
    text = _encode({"type": "request", "auth": {}, "request": request})
    return Entries((device,), (text,), is_trial=True)
