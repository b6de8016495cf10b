"""Audit devices are listed, enabled, disabled and asked for hashes; what they get is in the entries of a request."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from cloudid_core.audit.device import DeclaredDevice, Device
from cloudid_core.errors import RecordFailed, Refused
from cloudid_core.events import DeviceChanged, Event
from cloudid_core.mounts import mount_table
from tests.installation import Installation
from tests.tokens import new_token, write_policy

FILE = {"type": "file", "options": {"file_path": "/var/log/audit.log"}}


class Deaf(Installation):
    """No audit device of this world can be written while it is deaf."""

    is_deaf = True

    async def record(self, event: Event) -> None:
        if self.is_deaf and event.audit is not None:
            raise RecordFailed("disk full")
        await super().record(event)


def devices(world: Installation) -> tuple[Device, ...]:
    return world.perform(mount_table(world.context.records)).record.devices


def test_a_node_without_devices_records_nothing_and_serves() -> None:
    """The last device was disabled at another node, since none could be written."""
    world = Installation()
    world.context.node.last_record_failed = True
    world.perform(world.service.upkeep())
    assert world.must("GET", "sys/health", token="").body["problems"] == []


def test_a_device_is_enabled_listed_and_disabled() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", {**FILE, "description": "all"})
    listed = world.must("GET", "sys/audit").body
    assert listed["data"] == {
        "file/": {
            "type": "file",
            "description": "all",
            "options": {"file_path": "/var/log/audit.log"},
            "local": False,
            "path": "file/",
            "checkpoint_key": devices(world)[0].public_key,
        }
    }
    assert listed["file/"] == listed["data"]["file/"], "old clients read it beside the envelope"
    world.must("DELETE", "sys/audit/file")
    world.must("DELETE", "sys/audit/file")
    assert world.must("GET", "sys/audit").data == {}


def test_enabling_writes_a_test_entry_first() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    tried, enabled = [event for event in world.events if isinstance(event, DeviceChanged)]
    assert (tried.state, enabled.state) == ("tried out", "enabled")
    assert tried.audit is not None
    assert tried.audit.is_trial
    assert b"sys/audit/test" in tried.audit.texts[0]


def test_a_device_that_cannot_be_written_is_not_enabled() -> None:
    world = Deaf()
    assert world.refused("PUT", "sys/audit/file", FILE) == (400, "audit_device_unusable")
    assert devices(world) == ()


def test_all_nodes_learn_of_a_device() -> None:
    """Another service over the same store writes entries from its next request on."""
    world = Installation()
    other = world.open_node()
    world.must("PUT", "sys/audit/file", FILE)
    with world.requests_to(other):
        world.must("GET", "auth/token/lookup-self")
    assert world.events[-1].audit is not None


@pytest.mark.parametrize(
    "body, code",
    [
        ({}, "field_required"),
        ({"type": "tape"}, "field_invalid"),
        ({"type": "file"}, "field_required"),
        ({"type": "socket"}, "field_required"),
        ({"type": "file", "options": {"file_path": ""}}, "field_required"),
        ({"type": "file", "options": {"file_path": "../audit.log"}}, "audit_file_outside"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "mode": "0700"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "mode": "rw"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "log_raw": "true"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "prefix": "#!/bin/sh"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "format": "jsonx"}}, "field_invalid"),
        ({"type": "file", "options": {"file_path": "/var/log/a", "unknown": "1"}}, "field_invalid"),
        ({"type": "stdout", "options": {"content": "some"}}, "field_invalid"),
        ({"type": "stdout", "options": {"elide_list_responses": "some"}}, "field_invalid"),
        ({"type": "socket", "options": {"address": "/a", "socket_type": "unixgram"}}, "field_invalid"),
        ({"type": "socket", "options": {"address": "/a", "write_timeout": "0"}}, "field_invalid"),
    ],
)
def test_a_device_that_makes_no_sense_is_refused(body: dict[str, Any], code: str) -> None:
    """Among them what would make a file that can be executed, or one with secrets in it."""
    world = Installation()
    assert world.refused("POST", "sys/audit/x", body) == (400, code)
    assert devices(world) == ()


@pytest.mark.parametrize(
    "kind, options, instead",
    [
        ("syslog", {}, '"type" must be one of file, socket, stdout; for syslog'),
        ("http", {"uri": "https://a"}, "; for syslog, let a daemon or collector read a file"),
        ("file", {}, 'a required field is missing: "file_path" in "options"'),
        ("file", {"file_path": "discard"}, '"file_path" must be the path of a file, or stdout; /dev/null discards'),
        ("file", {"file_path": "/var/log/a", "log_raw": "true"}, "use the audit_non_hmac keys of a mount"),
        ("file", {"file_path": "/var/log/a", "prefix": "@cee: "}, "add the prefix in your log collector"),
        ("file", {"file_path": "/var/log/a", "format": "jsonx"}, '"format" must be one of json'),
        ("file", {"file_path": "/var/log/a", "mode": "0755"}, '"mode" must be octal permissions without execute bits'),
        ("file", {"file_path": "/var/log/a", "filter": "operation == read"}, "filter in your log collector"),
        ("file", {"file_path": "/var/log/a", "fallback": "true"}, "every device gets every entry"),
        ("file", {"file_path": "/var/log/a", "exclude": "[]"}, "remove members in your log collector"),
        ("stdout", {"facility": "AUTH"}, "has no option facility: its options are content, hmac_accessor, format"),
        ("socket", {"address": "/a", "write_timeout": "0"}, '"write_timeout" must be between 0.001s and 3600s'),
    ],
)
def test_an_option_of_existing_services_that_does_nothing_here_is_refused_with_what_to_do(
    kind: str, options: dict[str, str], instead: str
) -> None:
    reply = Installation().ask("POST", "sys/audit/x", {"type": kind, "options": options})
    assert reply.status == 400
    assert instead in reply.body["errors"][0]


def test_the_defaults_of_existing_services_are_accepted() -> None:
    """An empty text means the default, as no text does."""
    world = Installation()
    common = {"format": "json", "hmac_accessor": "true", "log_raw": "false", "prefix": "", "skip_test": "false"}
    options = {**common, "elide_list_responses": "false", "content": "", "path": "/var/log/audit.log", "mode": ""}
    world.must("POST", "sys/audit/file", {"type": "file", "options": options, "local": False, "description": ""})
    (device,) = devices(world)
    assert device.takes_entries
    assert device.options["file_path"] == "/var/log/audit.log"
    assert "mode" not in device.options


def test_options_are_listed_as_they_were_given() -> None:
    """A client that compares them would make the device anew: with another key, so that no hash is found again."""
    world = Installation()
    given = {
        "path": "/var/log/a",
        "mode": "600",
        "hmac_accessor": "False",
        "fsync": "1",
        "elide_list_responses": "TRUE",
    }
    world.must("PUT", "sys/audit/file", {"type": "file", "options": given})
    assert world.must("GET", "sys/audit").data["file/"]["options"] == given
    acting = {"file_path": "/var/log/a", "mode": "0600", "hmac_accessor": "false", "fsync": "true"}
    assert devices(world)[0].options == {**acting, "elide_list_responses": "true"}


def test_a_device_is_enabled_without_a_test_entry_where_that_is_wanted() -> None:
    world = Deaf()
    options = {"address": "collector.example:9000", "skip_test": "true"}
    assert world.ask("PUT", "sys/audit/later", {"type": "socket", "options": options}).status == 204
    assert world.ask("GET", "sys/audit").codes == ["audit_unavailable"], "it is the only device, and fails"


def test_a_second_device_at_a_path_is_refused() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    assert world.refused("PUT", "sys/audit/file", FILE) == (409, "mount_path_in_use")
    assert world.ask("PUT", "sys/audit/.", FILE).status == 400


def test_a_seventeenth_device_is_refused() -> None:
    world = Installation()
    for number in range(16):
        world.must("PUT", f"sys/audit/d{number}", FILE)
    assert world.ask("PUT", "sys/audit/more", FILE).status == 400


def test_audit_devices_need_sudo() -> None:
    world = Installation()
    write_policy(world, "auditor", ("sys/audit*", ["read", "update", "delete"]))
    token = new_token(world, policies=["auditor"])
    for method, path in (("GET", "sys/audit"), ("PUT", "sys/audit/file"), ("PUT", "sys/audit-hash/file")):
        assert world.refused(method, path, {}, token) == (403, "permission_denied")


def test_a_hash_finds_a_text_in_the_entries() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    told = world.must("PUT", "sys/audit-hash/file", {"input": "root"}).body
    assert told["data"]["hash"] == told["hash"]
    assert world.events[-1].audit is not None
    assert f'"client_token":"{told["hash"]}"'.encode() in world.events[-1].audit.texts[0]
    assert world.refused("PUT", "sys/audit-hash/none", {"input": "x"}) == (400, "audit_device_not_found")


# Devices of the settings file


@pytest.mark.parametrize(
    "path",
    [
        "/etc/profile.d/audit.sh",
        "/var/logs/audit.log",
        "/var/log",
        "/var/log/",
        "/var/log/../../etc/profile.d/audit.sh",
        "/var/log/./audit.log",
        "../audit.log",
        "cloudid/../audit.log",
        "..",
        "/",
        "/dev/full",
    ],
)
@pytest.mark.parametrize("spelling", ["file_path", "path"])
def test_no_request_makes_an_audit_file_outside_of_the_folder(spelling: str, path: str) -> None:
    """With a test entry or without: who may enable devices could write to any file of the server otherwise."""
    world = Installation()
    for skipped in ("false", "true"):
        body = {"type": "file", "options": {spelling: path, "skip_test": skipped}}
        assert world.refused("POST", "sys/audit/x", body) == (400, "audit_file_outside")
    assert devices(world) == ()
    assert not [event for event in world.events if isinstance(event, DeviceChanged)]


@pytest.mark.parametrize("given", ["cloudid/audit.log", "/var/log/cloudid/audit.log", "//var/log//cloudid/audit.log"])
def test_an_audit_file_lies_below_the_folder_and_reads_back_as_it_was_given(given: str) -> None:
    world = Installation()
    world.must("POST", "sys/audit/x", {"type": "file", "options": {"path": given}})
    (device,) = devices(world)
    assert (device.folder, device.options["file_path"]) == ("/var/log", "/var/log/cloudid/audit.log")
    assert world.must("GET", "sys/audit").data["x/"]["options"] == {"path": given}
    assert not device.is_in_any_folder


def test_a_server_without_a_folder_says_which_setting_names_one() -> None:
    world = Installation(audit_folders=())
    answer = world.ask("POST", "sys/audit/x", {"type": "file", "options": {"file_path": "audit.log"}})
    assert answer.status == 400
    assert "audit_directory" in answer.body["errors"][0]
    for path in ("stdout", "/dev/null"):
        world.must("POST", f"sys/audit/{path.strip('/')}", {"type": "file", "options": {"file_path": path}})


DECLARED = DeclaredDevice(name="main", type="file", options={"file_path": "/var/log/a.log"})


def test_declared_devices_are_enabled_at_start_and_kept() -> None:
    world = Installation()
    world.restart(audit_devices=(DECLARED,))
    (device,) = devices(world)
    assert device.declared
    revision = world.store.revision
    world.restart(audit_devices=(DECLARED,))
    assert devices(world) == (device,), "its hashes stay what they were"
    assert world.store.revision == revision + 1, "the key ring's reserve is all that is written"


def test_declared_devices_are_changed_in_the_settings_only() -> None:
    world = Installation()
    world.restart(audit_devices=(DECLARED,))
    assert world.refused("DELETE", "sys/audit/main") == (400, "audit_device_declared")
    world.restart(audit_devices=())
    assert devices(world) == ()


def test_a_declared_device_that_cannot_be_written_stops_the_start() -> None:
    with pytest.raises(Refused, match="cannot be written to"):
        Deaf(audit_devices=(DECLARED,))


def test_a_declared_device_that_begins_to_fail_does_not_stop_the_next_start() -> None:
    world = Deaf()
    world.is_deaf = False
    world.restart(audit_devices=(DECLARED,))
    world.is_deaf = True
    world.restart(audit_devices=(DECLARED,))
    assert world.ask("GET", "sys/health").body["problems"] == ["audit_unavailable", "audit_device_failing"]


def test_a_declared_device_leaves_others_alone() -> None:
    world = Installation()
    world.must("PUT", "sys/audit/file", FILE)
    world.restart(audit_devices=(DECLARED,))
    assert [device.name for device in devices(world)] == ["file", "main"]
    changed = replace(devices(world)[1], options={"file_path": "/b"})
    moved = DeclaredDevice(name="main", type="file", options={"file_path": "/b"})
    world.restart(audit_devices=(moved,))
    assert devices(world)[1] == changed, "its key is the old one: it began its files with it"
