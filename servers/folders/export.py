"""A running service as a folder: this one, or an existing one whose mounts are to be answered here.

What is read, and what of it can be written here, follows from the tables of routes and fields. Whatever cannot be is
reported, and never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from cloudid_core.catalog import CATALOG
from cloudid_core.errors import Refused
from cloudid_core.forms import NOT_OFFERED, Field
from cloudid_core.messages import Operation
from cloudid_core.mounts import BUILT_IN, TYPE_ALIASES
from cloudid_core.policies import BUILT_IN as BUILT_IN_POLICIES
from cloudid_core.policies import UNCHANGEABLE
from cloudid_core.policies import parse as parse_policy
from cloudid_core.provider import Source
from cloudid_core.routing import Component

from ..client import Service, ServiceRefused
from ..paths import MOUNTABLE, fields_at, is_secret, route_at
from .change import NOT_FOUND, TUNE
from .files import AUDIT, CONFIG, ENV, HCL, MOUNTS, POLICIES, POLICY, TOML, FolderRefused, below, is_kept

ELSEWHERE: Final = frozenset({"token", "system", "identity", "cubbyhole", "cloud-issuer"})
"""Types of mounts that every service has by itself."""
_NAME: Final = re.compile(r"(?!\.)[\w.@:+ -]+(?:/(?!\.)[\w.@:+ -]+)*")
"""What can be the path of a file: a server that is not ours chose it."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


@define
class Exported:
    """The files by their paths below the folder, and what they lack: rows of `path`, `field` and `why`."""

    files: dict[str, Mapping[str, Any]] = field(factory=dict, repr=False)
    told: list[dict[str, str]] = field(factory=list)

    def tell(self, path: str, name: str, why: str) -> None:
        self.told.append({"path": path, "field": name, "why": why})


def export(service: Service) -> Exported:
    """Everything that a folder can have, as the service has it."""
    out = Exported()
    for parent, kind in zip(MOUNTS, MOUNTABLE, strict=True):
        for key, about in _data(service, parent, out).items():
            path, type_name = f"{parent}/{key.rstrip('/')}", str(about.get("type"))
            known = CATALOG.is_mountable(kind, TYPE_ALIASES.get(type_name, type_name))
            if known and _is_name(path, out):
                fields = _fields(path, {name: about.get(name) for name in ("type", "description", "options")}, out)
                if tuned := _fields(f"{path}/{TUNE}", about.get(CONFIG) or {}, out, shown_as=path):
                    fields[CONFIG] = tuned
                out.files[path] = fields
                for pattern in _patterns(MOUNTABLE[kind]):
                    _export_all(service, below(path).rstrip("/"), pattern, out)
            elif not known and type_name not in ELSEWHERE and not type_name.startswith("ns_"):
                out.tell(path, "type", f"{type_name} cannot be mounted here")
    for mount in BUILT_IN:
        for pattern in _patterns(CATALOG.of(mount)):
            if f"{mount.path}/{pattern}".rpartition("/")[0] not in MOUNTS:
                _export_all(service, mount.path, pattern, out)
    return out


def write_files(folder: Path, out: Exported) -> None:
    """Write the files into an empty folder, or one that is not there yet. Raises `FolderRefused`."""
    if folder.exists() and any(folder.iterdir()):
        raise FolderRefused(f"{folder} is not empty")
    for path, fields in out.files.items():
        text = fields[POLICY].strip() if path.startswith(f"{POLICIES}/") else ""  # an empty file would be refused
        file = folder / f"{path}{HCL if text else TOML}"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = (f"{_key(name)} = {_toml(value)}\n" for name, value in fields.items())
        file.write_text(fields[POLICY] if text else "".join(lines), encoding="utf-8")


def _patterns(component: Component) -> Iterable[str]:
    """The paths below a mount at which something is kept that can be listed or read."""
    return dict.fromkeys(route.path for route in component.routes.routes if route.operation is Operation.WRITE)


def _export_all(service: Service, root: str, pattern: str, out: Exported) -> None:
    """What is kept at a pattern of paths: one thing, or all that a list names."""
    parent, _, last = f"{root}/{pattern}".rpartition("/")
    if not last.startswith((":", "*")):
        if is_kept(f"{parent}/{last}"):
            _export_one(service, f"{parent}/{last}", _data(service, f"{parent}/{last}", out), out)
        return
    if not is_kept(f"{parent}/x"):
        return
    if route_at(parent, Operation.LIST) is not None:
        for key in _data(service, parent, out, is_list=True).get("keys") or ():
            if _is_name(path := f"{parent}/{key}", out) and path not in _BUILT_IN_POLICIES:
                data = _data(service, path, out)
                _export_one(service, path, data, out)
    elif route_at(parent, Operation.READ) is not None:
        data = _data(service, parent, out)
        for key, about in (data.get("headers", data) if parent != AUDIT else data).items():
            if _is_name(path := f"{parent}/{key.rstrip('/')}", out):
                _export_one(service, path, about, out)


_BUILT_IN_POLICIES: Final = frozenset(f"{POLICIES}/{name}" for name in UNCHANGEABLE)


def _export_one(service: Service, path: str, data: Mapping[str, Any], out: Exported) -> None:
    if path.startswith(f"{POLICIES}/"):
        _export_policy(path, str(data.get(POLICY) or ""), out)
        return
    if not any(data.values()):
        return
    fields = _fields(path, data, out)
    if path.rpartition("/")[2] == CONFIG and _has_secret(service, path, data, out):
        variable = re.sub(r"\W", "_", path.removesuffix(f"/{CONFIG}")).upper() + "_CLIENT_SECRET"
        fields["client_secret"] = {ENV: variable}
        out.tell(path, "client_secret", f"not exported: set {variable}, or name a file")
    out.files[path] = fields


def _export_policy(path: str, text: str, out: Exported) -> None:
    name = path.removeprefix(f"{POLICIES}/")
    if name in BUILT_IN_POLICIES and BUILT_IN_POLICIES[name].text == text:
        return
    try:
        parse_policy(name, text)
    except Refused as refusal:
        out.tell(path, POLICY, str(refusal))
        return
    out.files[path] = {POLICY: text}


def _has_secret(service: Service, path: str, data: Mapping[str, Any], out: Exported) -> bool:
    """Return whether a mount authenticates with a client secret. Vault shows only the alternatives."""
    if not data.get("client_id") or data.get("identity_token_audience"):
        return False
    try:
        source = service.ask("GET", f"{path.removesuffix(CONFIG)}rotation").get("data") or {}
    except ServiceRefused:
        return True
    return source.get("credential_source") in (Source.CLIENT_SECRET.value, None)


def _fields(path: str, data: Mapping[str, Any], out: Exported, shown_as: str = "") -> dict[str, Any]:
    """The fields of a write that make what was read. What has its default is left out."""
    known, fields, route = fields_at(path, Operation.WRITE), {}, route_at(path, Operation.READ)
    schema = route.answers.data if route is not None else None
    ours = ("path", "request_id", "checkpoint_key")  # our own reads have them: nothing is lost
    shown_at = {*(schema or {}).get("properties", ()), *ours}
    for name, value in data.items():
        one = known.get(name)
        if value in (None, "", [], {}, False) or value == 0 or (one is not None and is_secret(one)):
            continue
        if one is None:
            if name not in shown_at:
                out.tell(shown_as or path, name, NOT_OFFERED.get(name, "cloudid has no such field"))
        elif one.name == name or one.name not in data:
            try:
                shown = _written(one, value)
            except ValueError as error:
                out.tell(shown_as or path, name, str(error))
                continue
            if shown != one.kind.show(one.default):
                fields[one.name] = shown
    if fields.get("persist_app"):
        fields.pop("application_object_id", None)  # the service's own, made for the role
    return fields


def _written(one: Field, value: Any) -> Any:
    """A value as a write takes it, also that of a client which computes with fractions. Raises `ValueError`."""
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    shown = one.kind.show(one.kind.parse(whole))
    if isinstance(shown, list):
        return [{k: v for k, v in each.items() if v} if isinstance(each, dict) else each for each in shown]
    return dict(shown) if isinstance(shown, Mapping) else shown


def _data(service: Service, path: str, out: Exported, *, is_list: bool = False) -> dict[str, Any]:
    """Read a path. Return nothing if it is empty, or if the token may not read it, which is reported."""
    try:
        found = service.ask("GET", path, query={"list": "true"} if is_list else None)
    except ServiceRefused as refusal:
        if refusal.status == 403:
            out.tell(path, "", "the token may not read it")
        elif refusal.status != 404 and not any(code.endswith(NOT_FOUND) for code in refusal.codes):
            raise
        return {}
    data: dict[str, Any] = found.get("data") or {}
    return data


def _is_name(path: str, out: Exported) -> bool:
    if _NAME.fullmatch(path):
        return True
    out.tell(path, "", "the name cannot be used as a file name")
    return False


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml(name)
