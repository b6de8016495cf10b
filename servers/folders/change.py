"""How a service differs from what a folder says. Fields that a file does not have count for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from cloudid_core.forms import Field
from cloudid_core.messages import Operation
from cloudid_core.rotation import MADE_HERE, OTHER, SAME
from cloudid_core.values.secret import Secret

from ..client import Service, ServiceRefused
from ..paths import fields_at, is_secret
from .files import AUDIT, CONFIG, MOUNTS, Declared, FolderRefused
from .secrets import Secrets

NEW: Final = "(new)"
SECRET: Final = "(secret)"
OTHERS: Final[Mapping[str, str]] = {OTHER: "(another)", MADE_HERE: "(rotated by the service)"}
WRITTEN_BY_FOLDER: Final = "applied"
REPLACE: Final = "replace_root_secret"
NOT_FOUND: Final = "_not_found"
TYPE: Final = "type"
TUNE: Final = "tune"


def asked(service: Service, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The answer; `None` where nothing is."""
    try:
        return service.ask(method, path, body)
    except ServiceRefused as refusal:
        if refusal.status == 404 or any(code.endswith(NOT_FOUND) for code in refusal.codes):
            return None
        raise


@frozen
class Difference:
    """A field whose value is another one."""

    name: str
    found: Any
    wanted: Any
    secret: Secret | None = None


@frozen
class Change:
    """A write that makes a thing what its file says."""

    declared: Declared
    is_new: bool
    differences: tuple[Difference, ...]

    def write(self, service: Service, *, replaces_root_secret: bool = False) -> tuple[str, ...]:
        """Make it so, and answer the service's warnings. A secret that the service made stays unless it is replaced."""
        path, body = self.declared.path, dict(self.declared.fields)
        if not self.is_new:
            path = f"{path}/{TUNE}" if self.declared.is_mount else path
            body = {each.name: each.wanted for each in self.differences if each.secret is None}
        for each in self.differences:
            if each.secret is not None and (replaces_root_secret or each.found != MADE_HERE):
                body |= {each.name: each.secret.reveal(), WRITTEN_BY_FOLDER: True, REPLACE: replaces_root_secret}
        return tuple(service.ask("POST", path, body).get("warnings") or ()) if body or self.is_new else ()

    def rows(self) -> Iterator[dict[str, Any]]:
        """What changes, for a table or a program."""
        for each in self.differences:
            found = NEW if self.is_new else OTHERS.get(each.found, each.found) if each.secret else each.found
            yield {"path": self.declared.path, "field": each.name, "is": found, "becomes": each.wanted}


def changes(service: Service, folder: Iterable[Declared], secrets: Secrets) -> list[Change]:
    """The writes that are missing, in their order. Raises `FolderRefused` for what no write can bring about."""
    return [change for declared in folder if (change := _change(service, declared, secrets)) is not None]


def _change(service: Service, declared: Declared, secrets: Secrets) -> Change | None:
    found = _found(service, declared)
    wanted, known = _fields(declared)
    different = tuple(
        Difference(name, shown, value)
        for name, value in wanted.items()
        if not is_secret(known[name]) and not _is_same(known[name], value, shown := _shown(found or {}, known[name]))
    )
    different += tuple(_secrets(service, declared, [name for name in wanted if is_secret(known[name])], secrets))
    is_new = not found or not any(found.values())
    if not different and not is_new:
        return None
    is_fixed = declared.parent == AUDIT or (declared.is_mount and any(each.name == TYPE for each in different))
    if is_fixed and not is_new:
        raise FolderRefused(f"{declared.path}: the existing object is different and cannot be changed: delete it first")
    return Change(declared, is_new, different)


def _fields(declared: Declared) -> tuple[dict[str, Any], dict[str, Field]]:
    """The values that a file gives, and the table of their fields."""
    wanted, known = dict(declared.fields), dict(fields_at(declared.path, Operation.WRITE))
    tuned = wanted.pop(CONFIG, {}) if declared.is_mount else {}
    tunable = fields_at(f"{declared.path}/{TUNE}", Operation.WRITE) if declared.is_mount else {}
    if unknown := sorted([*(wanted.keys() - known), *(tuned.keys() - tunable)]):
        raise FolderRefused(f"{declared.path}: there is no field {unknown[0]}")
    return wanted | tuned, {**known, **tunable}


def _secrets(service: Service, declared: Declared, names: Iterable[str], secrets: Secrets) -> Iterator[Difference]:
    """The secrets that were not applied last, by what the service says of them: it alone can compare them."""
    for name in names:
        if declared.name != CONFIG:
            raise FolderRefused(
                f"{declared.path}: {name} is a secret, and only files of configurations may contain secrets"
            )
        secret = secrets.find(f"{declared.path}: {name}", declared.fields[name])
        judged = asked(service, "POST", f"{declared.path}/{WRITTEN_BY_FOLDER}", {name: secret.reveal()})
        verdict = judged["data"][name] if judged else OTHER  # there is no mount yet
        if verdict != SAME:
            yield Difference(name, verdict, SECRET, secret)


def _found(service: Service, declared: Declared) -> dict[str, Any] | None:
    """What is there, by the names of fields; `None` if nothing is."""
    is_listed = declared.parent in (*MOUNTS, AUDIT)
    answer = asked(service, "GET", declared.parent if is_listed else declared.path)
    if answer is None:
        return None
    data = answer.get("data") or {}
    if is_listed:
        data = next((each for name, each in data.items() if name.lower() == f"{declared.name}/".lower()), None)
        return data and {**data, **(data.get(CONFIG) or {})}
    found: dict[str, Any] = data.get(declared.name, data)
    return found


def _shown(found: Mapping[str, Any], field: Field) -> Any:
    """The value of a field, as a read shows it. What is empty may not be shown."""
    return found.get(field.name, field.kind.show(field.default))


def _is_same(field: Field, wanted: Any, found: Any) -> bool:
    kind = field.kind
    try:
        values = [kind.show(kind.normal(kind.parse(each))) for each in (wanted, found)]
    except ValueError:
        return bool(wanted == found)  # the service says what is wrong
    return _covers(*values)


def _covers(wanted: Any, found: Any) -> bool:
    """Whether two values are equal, but for what only the service knows of the objects in a list."""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return all(map(_covers, wanted, found))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(not value or _id(name, value) == _id(name, found.get(name)) for name, value in wanted.items())
    return bool(wanted == found)


def _id(name: str, value: object) -> str:
    """A name, or an id, which may be given with the path before it."""
    text = str(value).lower()
    return text.rpartition("/")[2] if name.endswith("_id") else text
