"""The routes of audit devices (list, enable, disable, hash a text) and of audited headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from msgspec.structs import replace

from ..audit import FILE, KEY_BYTES, NULL, SOCKET, STDOUT, DeclaredDevice, Device
from ..context import Context
from ..dispatch import probe
from ..effects import RandomBytes, Record
from ..errors import REASON_LIMIT, Code, RecordFailed, Refused
from ..events import DeviceChanged
from ..forms import (
    BOOLEAN,
    PRECISE_SECONDS,
    TEXT,
    FieldType,
    bounded,
    fields_of,
    listed,
    one_of,
    parse,
    require,
    schemas,
    setting,
    spellings_of,
)
from ..health import HealthProblem
from ..messages import DELETE, NOTHING, READ, UNAUDITED_HEADERS, WRITE, Answer
from ..mounts import MountTable, change_mounts, mount_table
from ..routing import COPIED, Call, captured, route
from ..values import are_same, listing, mount_path, text, uuid_text

MOST_DEVICES: Final = 16
DISCARD: Final = "discard"
"""Vault's name for a file that discards everything."""


def _mode(raw: object) -> str:
    """Return file permissions as octal digits. `0000` keeps those of an existing file."""
    mode = text(raw) or "0600"
    try:
        bits = int(mode, 8)
    except ValueError:
        bits = -1
    if not 0 <= bits <= 0o777 or bits & 0o111:
        raise ValueError("must be octal permissions without execute bits")
    return f"{bits:04o}"


def _path(raw: object) -> str:
    path = text(raw)
    if path == DISCARD:
        raise ValueError(f"must be the path of a file, or stdout; {NULL} discards all entries")
    return path


def _false(raw: object) -> bool:
    if BOOLEAN.parse(raw):
        raise ValueError("must be false: use the audit_non_hmac keys of a mount to log members unhashed")
    return False


def _empty(raw: object) -> str:
    if text(raw):
        raise ValueError("must be empty, because every line is a JSON object: add the prefix in your log collector")
    return ""


DEVICE_OPTIONS: Final[FieldType[Mapping[str, str]]] = FieldType("object", listing.key_values, dict)
MODE: Final = FieldType("octal permissions", _mode)
PATH: Final = FieldType("string", _path)

INSTEAD: Final[Mapping[str, str]] = {
    "exclude": "remove members in your log collector",
    "fallback": "every device gets every entry",
    "filter": "filter in your log collector",
}
"""Options of Vault that no device supports, and what to do instead."""


@frozen(kw_only=True)
class CommonOptions:
    """The options of every audit device."""

    content: str = setting(
        one_of("all", "checkpoints"),
        "all",
        "`checkpoints`: the device gets only the signed checkpoints of the other devices.",
    )
    hmac_accessor: bool = setting(BOOLEAN, True, "Also hash token accessors.")
    format: str = setting(one_of("json"), "json", "Each line is a JSON object.")
    log_raw: bool = setting(FieldType("false", _false, schema=BOOLEAN.schema), False, "Refused when true.")
    prefix: str = setting(FieldType("empty string", _empty), "", "Refused unless empty.")
    elide_list_responses: bool = setting(BOOLEAN, False, "Log only the number of keys in the response to a list.")
    skip_test: bool = setting(BOOLEAN, False, "Enable the device without a test entry.")


@frozen(kw_only=True)
class FileOptions(CommonOptions):
    file_path: str = setting(
        PATH,
        "",
        "Path of the file, or `stdout`. If a request sets it, the file must be in `audit_directory`.",
        old_name="path",
        required=True,
    )
    mode: str = setting(MODE, "0600", "Permissions of the file, without execute bits. `0000`: do not change them.")
    fsync: bool = setting(BOOLEAN, False, "Wait until every entry is on disk (fsync).")


@frozen(kw_only=True)
class SocketOptions(CommonOptions):
    address: str = setting(TEXT, "", "`HOST:PORT`, or the path of a Unix socket.", required=True)
    socket_type: str = setting(one_of("tcp", "udp", "unix"), "tcp", "Type of the socket.")
    write_timeout: float = setting(bounded(PRECISE_SECONDS, 0.001, 3600.0), 2.0, "Timeout for connecting and writing.")


OPTIONS: Final[Mapping[str, type]] = {FILE: FileOptions, SOCKET: SocketOptions, STDOUT: CommonOptions}
"""The form of the options by type of device."""

TYPE_RULE: Final = f"must be one of {', '.join(OPTIONS)}; for syslog, let a daemon or collector read a file"


def _type(raw: object) -> str:
    name = text(raw)
    if name and name not in OPTIONS:
        raise ValueError(TYPE_RULE)
    return name


TYPE: Final = FieldType("one of " + ", ".join(OPTIONS), _type)


@frozen(kw_only=True)
class DeviceForm:
    type: str = setting(TYPE, "", "Type of the device.", required=True)
    description: str = setting(TEXT, "", "A description.")
    options: Mapping[str, str] = setting(DEVICE_OPTIONS, {}, "Options of the type, as listed in the audit reference.")
    local: bool = setting(BOOLEAN, False, "Accepted. Devices are never replicated to other clusters.")


@frozen(kw_only=True)
class HashForm:
    input: str = setting(TEXT, "", "The text.", required=True, repr=False)


DEVICE: Final = schemas.members(TEXT="type description path checkpoint_key", BOOLEAN="local", options=schemas.TEXTS)


@route("audit", READ, schemas.each(DEVICE), shape=COPIED)
async def list_devices(call: Call) -> Answer:
    """Lists the audit devices."""
    table = (await mount_table(call.context.records)).record
    return Answer(data={f"{device.name}/": _shown(device) for device in table.used_devices}, copy_up=True)


@route("audit/*path", WRITE, refusals=(Code.MOUNT_PATH_IN_USE,), form=DeviceForm, requires_all=True)
async def enable(call: Call) -> Answer:
    """Enables an audit device, after a test entry was written to it.

    Its options are listed as they are given here.
    """
    form = call.form(DeviceForm)
    declared = DeclaredDevice(name=_name(call), type=form.type, description=form.description, options=form.options)
    device = await _made(call.context, _placed(declared, call.context.settings.audit_folders))
    device = replace(device, given=form.options)
    table = (await mount_table(call.context.records)).record
    _with(table, device)
    await _try_out(device, table.used_devices)
    await change_mounts(call.context.records, lambda table: _with(table, device))
    return NOTHING


@route("audit/*path", DELETE)
async def disable(call: Call) -> Answer:
    """Disables an audit device.

    This request is the last one that it records. Does nothing if there is no such device. If the settings declare a
    device with the same name, the suspended one is removed.
    """
    name = _name(call)

    def without(table: MountTable) -> MountTable:
        device = _find(table, name)
        if device is None:
            return table
        if device.declared and all(other.name != name for other in table.suspended_devices):
            raise Refused(Code.AUDIT_DEVICE_DECLARED)
        kept = tuple(other for other in table.devices if other.name != name or other.declared)
        return evolve(table, devices=kept)

    await change_mounts(call.context.records, without)
    return NOTHING


@route("audit-hash/*path", WRITE, schemas.members(TEXT="hash"), shape=COPIED, form=HashForm, requires_all=True)
async def hash_text(call: Call) -> Answer:
    """Hashes a text with the key of an audit device, so that you can search for it in the entries."""
    device = _find((await mount_table(call.context.records)).record, _name(call))
    if device is None:
        raise Refused(Code.AUDIT_DEVICE_NOT_FOUND)
    return Answer(data={"hash": device.hasher.text(call.form(HashForm).input)}, copy_up=True)


async def declare_devices(context: Context, declared: Iterable[DeclaredDevice]) -> None:
    """Make the devices in the host's settings, and no other declared devices, part of the service.

    Refuse with `AUDIT_DEVICE_UNUSABLE` if a new one cannot be written to. The others are tested too, so that health
    knows their state before the first request. A device with the same name that a request enabled is suspended.
    """
    stored = (await mount_table(context.records)).record.devices
    kept = {device.name: device for device in stored if device.declared}
    devices: list[Device] = []
    tried: set[str] = set()
    for one in declared:
        known = kept.get(one.name)
        device = replace(await _made(context, one), declared=True)
        if known is not None:
            device = replace(device, key=known.key, installation_key=known.installation_key)
        if device != known:
            await _try_out(device, [*devices, *(other for other in stored if not other.declared)])
            tried.add(device.name)
        devices.append(device)
    if devices != list(kept.values()):

        def with_declared(table: MountTable) -> MountTable:
            others = (device for device in table.devices if not device.declared)
            return evolve(table, devices=(*others, *devices))

        await change_mounts(context.records, with_declared)
    used = (await mount_table(context.records)).record.used_devices
    untried = [device for device in used if device.name not in tried]
    await _look_at(context, sorted(untried, key=lambda device: not device.declared))


def _name(call: Call) -> str:
    return captured(call, "path", mount_path)


def _find(table: MountTable, name: str) -> Device | None:
    return next((device for device in table.used_devices if device.name == name), None)


def _with(table: MountTable, device: Device) -> MountTable:
    """Return the table with an added device. Refuse with `MOUNT_PATH_IN_USE` if the name is used."""
    if _find(table, device.name) is not None:
        raise Refused(Code.MOUNT_PATH_IN_USE)
    if sum(not device.declared for device in table.devices) >= MOST_DEVICES:
        raise Refused(Code.MALFORMED_REQUEST, "there are too many audit devices")
    return evolve(table, devices=(*table.devices, device))


def check(declared: DeclaredDevice, where: str = '"options"') -> Mapping[str, str]:
    """Return the options of a device in their canonical spelling. Refuse a wrong option. `where` names their place."""
    form = OPTIONS.get(declared.type)
    if form is None:
        raise Refused(Code.FIELD_INVALID, f'"type" {TYPE_RULE}')
    unknown = next((name for name in declared.options if name not in spellings_of(form)), None)
    if unknown is not None:
        instead = INSTEAD.get(unknown) or "its options are " + ", ".join(row.name for row in fields_of(form))
        raise Refused(Code.FIELD_INVALID, f"{where} has no option {listed((unknown,))}: {instead}")
    given = parse(form, {name: value for name, value in declared.options.items() if value})  # an empty one is none
    require(form, given, f" in {where}")
    shown = {row.name: row.kind.show(given[row.name]) for row in fields_of(form) if row.name in given}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in shown.items()}


async def _made(context: Context, declared: DeclaredDevice) -> Device:
    """Return a device with its own key. Refuse a wrong option."""
    options = check(declared)
    key, shared = (await RandomBytes(KEY_BYTES)).hex(), (await RandomBytes(KEY_BYTES)).hex()
    await change_mounts(context.records, lambda table: table if table.audit_key else evolve(table, audit_key=shared))
    return Device(
        name=declared.name,
        type=declared.type,
        key=key,
        description=declared.description,
        options=options,
        folder=declared.folder,
        installation_key=(await mount_table(context.records)).record.audit_key,
    )


def _placed(declared: DeclaredDevice, folders: Sequence[str]) -> DeclaredDevice:
    """Return a device that a request declares, with its file in one of these folders. Refuse any other file.

    A relative path starts at the first folder. The host checks links in the folder.
    """
    path = declared.options.get("file_path") or declared.options.get("path", "")
    if declared.type != FILE or path in ("", STDOUT, NULL, DISCARD):
        return declared
    if not folders:
        raise Refused(Code.AUDIT_FILE_OUTSIDE, "the folder does not exist on the server")
    absolute = path if path.startswith("/") else f"{folders[0]}/{path}"
    segments = [segment for segment in absolute.split("/") if segment]
    path = "/" + "/".join(segments)
    folder = next((folder for folder in folders if path.startswith(f"{folder}/")), "")
    if not folder or not {".", ".."}.isdisjoint(segments):
        raise Refused(Code.AUDIT_FILE_OUTSIDE)
    options = {name: value for name, value in declared.options.items() if name != "path"} | {"file_path": path}
    return evolve(declared, options=options, folder=folder)


async def _try_out(device: Device, others: Sequence[Device]) -> None:
    """Write a test entry, unless the device is enabled without one. `others` are all enabled devices."""
    if not device.skips_test and (reason := await _failure_of(device, others)):
        raise Refused(Code.AUDIT_DEVICE_UNUSABLE, f"{_place_of(device)}: {reason}")


async def try_devices_again(context: Context) -> None:
    """Test whether failed devices work again.

    If none works, health keeps away the requests that would otherwise find out.
    """
    failing = {occurrence["device"] for occurrence in context.node.noted(HealthProblem.AUDIT_DEVICE_FAILING)}
    if context.node.last_record_failed or failing:
        used = (await mount_table(context.records)).record.used_devices
        await _look_at(
            context, [device for device in used if context.node.last_record_failed or device.name in failing]
        )


async def _look_at(context: Context, devices: Iterable[Device]) -> None:
    """Test devices, and note for health which of them fail. Devices that are not tested are assumed to work."""
    table = (await mount_table(context.records)).record
    tried = [device for device in devices if not device.skips_test]
    reasons = {device.name: await _failure_of(device, table.used_devices) for device in tried}
    failing = [
        {"device": device.name, "place": _place_of(device), "reason": reasons[device.name]}
        for device in tried
        if reasons[device.name]
    ]
    context.node.note(HealthProblem.AUDIT_DEVICE_FAILING, failing)
    entry_devices = table.entry_devices
    context.node.last_record_failed = bool(entry_devices) and all(reasons.get(one.name) for one in entry_devices)


def _place_of(device: Device) -> str:
    """Return where a device writes: its file or its address."""
    options = device.options
    return options.get("file_path") or options.get("path") or options.get("address") or device.type


async def _failure_of(device: Device, others: Sequence[Device]) -> str:
    """Return why a test entry cannot be written to a device. Empty if it can."""
    entries = probe(device, uuid_text(await RandomBytes(16)), others)
    try:
        await Record(DeviceChanged(device=device.name, state="tried out", audit=entries))
    except RecordFailed as failure:
        return str(failure)[:REASON_LIMIT] or "the test entry could not be written"
    return ""


def _shown(device: Device) -> dict[str, Any]:
    return {
        "type": device.type,
        "description": device.description,
        "options": dict(device.given or device.options),
        "local": False,
        "path": f"{device.name}/",
        "checkpoint_key": device.public_key,
    }


HEADERS: Final = "config/auditing/request-headers"
MOST_HEADERS: Final = 64
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
"""RFC 9110 section 5.1."""


@frozen(kw_only=True)
class HeaderForm:
    hmac: bool = setting(BOOLEAN, False, "Hash the values of the header.")


BY_NAME: Final = schemas.each(schemas.members(BOOLEAN="hmac"))


@route(HEADERS, READ, schemas.members(headers=BY_NAME), shape=COPIED)
async def list_headers(call: Call) -> Answer:
    """Lists the audited request headers."""
    headers = (await mount_table(call.context.records)).record.audited_headers
    return Answer(data={"headers": {name: {"hmac": is_hashed} for name, is_hashed in headers.items()}}, copy_up=True)


@route(f"{HEADERS}/:header", READ, BY_NAME, shape=COPIED)
async def read_header(call: Call) -> Answer:
    """Reads how a header is audited.

    The response contains its name as the request spells it.
    """
    name = captured(call, "header", _header_name)
    is_hashed = (await mount_table(call.context.records)).record.recorded_headers.get(name.lower())
    if is_hashed is None:
        raise Refused(Code.AUDITED_HEADER_NOT_FOUND)
    return Answer(data={name: {"hmac": is_hashed}}, copy_up=True)


@route(f"{HEADERS}/:header", WRITE, form=HeaderForm)
async def write_header(call: Call) -> Answer:
    """Adds a request header to audit entries. Headers that may contain a token are refused."""
    name, form = captured(call, "header", _header_name), call.form(HeaderForm)
    if name.lower() in UNAUDITED_HEADERS:
        raise Refused(Code.NAME_INVALID, "this header is never audited")

    def changed(table: MountTable) -> MountTable:
        headers = {**_without_header(table, name), name: form.hmac}
        if len(headers) > MOST_HEADERS:
            raise Refused(Code.MALFORMED_REQUEST, "there are too many audited headers")
        return evolve(table, audited_headers=headers)

    await change_mounts(call.context.records, changed)
    return NOTHING


@route(f"{HEADERS}/:header", DELETE)
async def delete_header(call: Call) -> Answer:
    """Removes a request header from audit entries."""
    name = captured(call, "header", _header_name)

    def changed(table: MountTable) -> MountTable:
        headers = _without_header(table, name)
        return evolve(table, audited_headers=headers) if headers != table.audited_headers else table

    await change_mounts(call.context.records, changed)
    return NOTHING


def _without_header(table: MountTable, name: str) -> dict[str, bool]:
    """Return the audited headers without one of them, in any spelling."""
    headers = table.audited_headers
    return {each: is_hashed for each, is_hashed in headers.items() if not are_same(each, name)}


def _header_name(raw: str) -> str:
    if not _NAME.fullmatch(raw):
        raise ValueError("must be the name of a header")
    return raw


ROUTES: Final = (list_devices, enable, disable, hash_text, list_headers, read_header, write_header, delete_header)
