"""Files with roles and cases, in TOML or JSON, and the verdict on a case."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import frozen

from cloudid_core.audit.device import ADMITTED
from cloudid_core.auth_method.explanation import FAILED, REFUSED, UNDECIDED
from cloudid_core.errors import CloudidError

LONGEST_FILE: Final = 1 << 24
"""Bytes."""


class FileError(CloudidError):
    """A file cannot be read, or is not of the shape that is documented."""


class Mount(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What the mount demands of every token. With a server, the server knows."""

    resource: str = "https://management.azure.com/"
    tenant_id: str = "00000000-0000-0000-0000-000000000000"
    issuers: tuple[str, ...] = ()


class WrittenCase(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """One login and what is expected of it: `admitted`, or the codes of all checks that fail."""

    name: str
    role: str
    claims: dict[str, Any]
    facts: dict[str, Any] = {}
    subscription_id: str
    resource_group_name: str
    vm_name: str = ""
    vmss_name: str = ""
    resource_id: str = ""
    remote_address: str = ""
    expect: str | tuple[str, ...]


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    mount: Mount | None = None
    roles: dict[str, dict[str, Any]] = {}
    cases: tuple[WrittenCase, ...] = ()


@frozen
class Case:
    """A case, and the file that it is in."""

    file: str
    written: WrittenCase

    @property
    def expected(self) -> tuple[str, ...]:
        """The codes that are expected, in order; none: the login is admitted."""
        expect = self.written.expect
        codes = (expect,) if isinstance(expect, str) else expect
        return tuple(sorted(set(codes) - {ADMITTED}))

    @property
    def body(self) -> dict[str, Any]:
        """The body of a request to explain the login."""
        members = msgspec.structs.asdict(self.written)
        return {name: value for name, value in members.items() if name not in ("name", "expect") and value != ""}


@frozen
class Suite:
    """Everything that some files hold together."""

    mount: Mount
    roles: Mapping[str, Mapping[str, Any]]
    cases: tuple[Case, ...]


def read_suite(paths: Sequence[Path]) -> Suite:
    """Read files: each role may be in one of them only, and so may `mount`. Raises `FileError`."""
    mounts: list[Mount] = []
    roles: dict[str, Mapping[str, Any]] = {}
    cases: list[Case] = []
    for path in paths:
        file = _read(path)
        mounts += [file.mount] if file.mount else []
        for name, role in file.roles.items():
            if name.lower() in roles:
                raise FileError(f'{path}: role "{name}" is defined twice')
            roles[name.lower()] = role
        cases += [Case(str(path), case) for case in file.cases]
    if len(mounts) > 1:
        raise FileError("[mount] is in more than one file")
    if not cases:
        raise FileError("there are no test cases: add [[cases]] to a file")
    return Suite(mounts[0] if mounts else Mount(), roles, tuple(cases))


def _read(path: Path) -> _File:
    try:
        if path.stat().st_size > LONGEST_FILE:
            raise FileError(f"{path}: longer than {LONGEST_FILE} bytes")
        text = path.read_text("utf-8-sig")
        content = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
        return msgspec.convert(content, _File)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from None


@frozen(kw_only=True)
class Verdict:
    """What was decided. `checks` are those that failed or are undecided, as `explain` returns them."""

    verdict: str
    codes: tuple[str, ...]
    checks: tuple[Mapping[str, Any], ...] = ()
    reason: str = ""
    """Why there are no checks."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Verdict:
        """From the data of an answer of `explain`."""
        checks = tuple(check for check in data["checks"] if check["verdict"] in (FAILED, UNDECIDED))
        return cls(verdict=data["verdict"], codes=tuple(sorted(data["codes"])), checks=checks)

    @classmethod
    def of_refusal(cls, codes: Sequence[str], reason: str) -> Verdict:
        """For a case that cannot be explained, such as one of an unknown role."""
        return cls(verdict=REFUSED, codes=tuple(sorted(set(codes))), reason=reason)

    def meets(self, case: Case) -> bool:
        """Whether all failures are those expected, and nothing is undecided that could refuse an admitted login."""
        return self.codes == case.expected and (bool(self.codes) or self.verdict == ADMITTED)

    @property
    def shown(self) -> str:
        return ", ".join(self.codes) or self.verdict

    @property
    def reasons(self) -> list[str]:
        """A line for each check that failed or is undecided."""
        told = "{check} {verdict}: expected {expected}, found {found}"
        return [*filter(None, [self.reason]), *(told.format_map(check) for check in self.checks)]
