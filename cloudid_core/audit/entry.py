"""Entries: a request and its response, as existing tools for audit logs parse them, and a login's decision besides.

Secrets do not get into an entry: tokens, accessors and every text and number of a body are keyed hashes there. Paths,
names of members, policies, display names and metadata are clear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..api.request import ParsedRequest
from ..api.response import Answer, AuthBlock, WrapInfo
from ..errors import Problem
from ..mounts.table import Mount
from ..tokens.record import Caller
from ..values import rfc3339
from .device import ADMITTED, Decision, Device, Entries, Trail
from .hashing import Hasher

NAMESPACE: Final = {"id": "root"}
NO_TOKEN: Final = b'{"token_type":"default"}'
_encode: Final = msgspec.json.Encoder().encode


class Exchange(msgspec.Struct, kw_only=True):
    """One audited request and what is known of it so far."""

    devices: tuple[Device, ...]
    takers: tuple[Device, ...]
    """The devices that take entries."""
    request_id: str
    remote_address: str
    headers: Mapping[str, str]
    """Those of the request."""
    audited_headers: Mapping[str, bool]
    """Which of them go on record, and whether their values are hashed."""
    ask: ParsedRequest | None = None
    """Unknown while the request has not been understood."""
    operation: str = ""
    mount: Mount | None = None
    caller: Caller | None = None
    caller_accessor: str = ""
    answer: Answer | None = None
    """What the program answered, if it did."""
    trail: Trail = msgspec.field(default_factory=Trail)
    _parts: tuple[bytes, ...] = ()
    """For each device the members that both entries have in common."""

    def __repr__(self) -> str:
        return f"<Exchange {self.request_id}>"

    def found(self, ask: ParsedRequest, mount: Mount | None) -> None:
        """The request was understood, and this is where it leads."""
        self.ask, self.mount, self.operation = ask, mount, ask.operation.value

    def called_by(self, caller: Caller, accessor: str) -> None:
        """The request's token is good."""
        self.caller, self.caller_accessor = caller, accessor

    def received(self) -> Entries:
        """The entries of the request, to be written before it is executed."""
        return Entries(self.devices, tuple([b'{"type":"request",%s}' % part for part in self._common()]))

    def answered(self, problems: tuple[Problem, ...]) -> Entries:
        """The entries of the response, to be written before it is sent. `problems` are those of a refusal."""
        texts = [
            b'{"type":"response",%s%s}' % (part, self._outcome(device, problems))
            for device, part in zip(self.takers, self._common(), strict=True)
        ]
        return Entries(self.devices, tuple(texts))

    def _common(self) -> tuple[bytes, ...]:
        if not self._parts:
            self._parts = tuple(
                [
                    b'"auth":%s,"request":%s' % (self._auth(device), _encode(self._request(device)))
                    for device in self.takers
                ]
            )
        return self._parts

    def _auth(self, device: Device) -> bytes:
        caller = self.caller
        if caller is None:
            return NO_TOKEN
        token = caller.token
        members = {
            "client_token": device.hasher.text(caller.text),
            "accessor": _accessor(device, self.caller_accessor),
            "display_name": token.display_name,
            "policies": token.policies,
            "token_policies": token.policies,
            "metadata": token.metadata,
            "token_type": token.type,
            "token_ttl": token.ttl,
            "token_issue_time": rfc3339.show(token.created_at),
        }
        return _encode(members)

    def _request(self, device: Device) -> dict[str, Any]:
        ask, mount = self.ask, self.mount
        members: dict[str, Any] = {"id": self.request_id, "operation": self.operation}
        if mount is not None:
            members |= _mount_members(mount)
        if ask is not None and ask.token:
            members["client_token"] = device.hasher.text(ask.token)
            if self.caller_accessor:
                members["client_token_accessor"] = _accessor(device, self.caller_accessor)
        members["namespace"] = NAMESPACE
        members["path"] = ask.shown_path if ask is not None else ""
        if ask is not None and ask.body:
            members["data"] = device.hasher.members(ask.body, _clear_keys(mount, "request"))
        members["remote_address"] = self.remote_address
        if ask is not None and ask.wrap_ttl:
            members["wrap_ttl"] = ask.wrap_ttl
        if self.audited_headers:
            members["headers"] = {
                name: [device.hasher.text(self.headers[name]) if is_hashed else self.headers[name]]
                for name, is_hashed in self.audited_headers.items()
                if name in self.headers
            }
        return members

    def _outcome(self, device: Device, problems: tuple[Problem, ...]) -> bytes:
        members: dict[str, Any] = {}
        if self.answer is not None and not problems:
            members["response"] = self._response(device, self.answer)
        if (decision := self.trail.decision) is not None:
            members["decision"] = _decision(device.hasher, decision)
        if problems:
            members["error"] = "; ".join(problem.text for problem in problems)
            members["error_codes"] = [problem.code.wire for problem in problems]
        return b"," + _encode(members)[1:-1] if members else b""

    def _response(self, device: Device, answer: Answer) -> dict[str, Any]:
        members: dict[str, Any] = _mount_members(self.mount) if self.mount is not None else {}
        if answer.auth is not None:
            members["auth"] = _granted(device, answer.auth)
        if answer.lease_id:
            members["secret"] = {"lease_id": answer.lease_id}
        if answer.data:
            members["data"] = device.hasher.members(answer.data, _clear_keys(self.mount, "response"))
        if answer.rendered:  # the body of the answer that was wrapped
            members["data"] = device.hasher.members(msgspec.json.decode(answer.rendered))
        if answer.wrap_info is not None:
            members["wrap_info"] = _wrapping(device, answer.wrap_info)
        if answer.warnings:
            members["warnings"] = answer.warnings
        return members


def _mount_members(mount: Mount) -> dict[str, Any]:
    return {"mount_type": mount.shown_type, "mount_accessor": mount.accessor, "mount_point": f"{mount.path}/"}


def _clear_keys(mount: Mount | None, direction: str) -> tuple[str, ...]:
    """The members of a body that a mount's tuning keeps clear."""
    if mount is None:
        return ()
    return mount.audit_non_hmac_request_keys if direction == "request" else mount.audit_non_hmac_response_keys


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
