"""Transcripts hold nothing of the tenant, all that was made for one is removed, and differences are told."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from cloudid_core.effects import HttpRequest
from cloudid_core.values.secret import Secret
from cloudid_servers.provider_simulator import APP_ROLES, Simulator, start
from cloudid_servers.settings import SettingsFile, read_settings
from cloudid_servers.transcripts import (
    Tenant,
    TranscriptRefused,
    differences,
    read,
    record,
    story,
    unlike_the_tables,
)
from cloudid_servers.transcripts.comparing import exchanges_of
from cloudid_servers.transcripts.evidence import families

from ..client_site import Site
from ..running import PATIENCE, ROOT
from .shell import Shell

pytestmark = pytest.mark.one_server

KILLED: Final = """
import json, os, sys
from pathlib import Path
from cloudid_core.values.secret import Secret
from cloudid_servers.transcripts import Tenant, record
fields, folder, url = json.loads(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
fields["client_secret"] = Secret(fields["client_secret"])
record(Tenant(**fields), folder, lambda line: os._exit(9) if (line["step"], line["method"]) == AT else None, url)
"""


def tenant_of(world: Any, machine: Any) -> dict[str, str]:
    application = world["applications"][0]
    return {
        "tenant": world["tenant"],
        "subscription": machine["subscription"],
        "resource_group": machine["resource_group"],
        "client_id": application["client_id"],
        "client_secret": application["client_secret"],
    }


MACHINES: Final = ("vm-system", "fleet-uniform", "fleet-flexible", "shop")
"""Their look-ups make every kind of call about machines."""


def test_a_transcript_holds_nothing_of_the_tenant_and_is_that_of_the_simulated_cloud(
    site: Site, cloudid: Shell, tmp_path: Path
) -> None:
    """Also where the cloud throttles: then it holds the refusals too."""
    place = {"subscription": site.world["subscriptions"][0], "resource_group": "canary-group"}
    fields = tenant_of(site.world, site.simulate("POST", "machines", {"name": "canary-machine", **place}))
    (tmp_path / "secret").write_text(fields["client_secret"])
    file = tmp_path / "t.jsonl"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items() if name != "client_secret"]
    machine = next(each["resource_id"] for each in site.world["machines"] if each["name"] == "vm-system")
    words += [
        "--machine",
        machine,
        "--client-secret",
        str(tmp_path / "secret"),
        "--record",
        str(file),
        "--provider",
        site.cloud.url,
    ]
    site.simulate("POST", "behaviour", {"throttle": {"graph_writes": [3, 40]}})
    shown = cloudid("connect", "azure", *words)
    site.simulate("POST", "behaviour", {"preset": "immediate"})
    assert (shown.code, shown.err) == (0, "")
    assert {row["step"]: row["status"] for row in shown.json}["credentials"] == 200
    recorded = list(read(file))
    throttled = [line for line in recorded if line["status"] == 429]
    assert throttled
    assert {line["headers"]["retry-after"].isdigit() for line in throttled} == {True}
    text = file.read_text().lower()
    named = [*fields.values(), "canary", "eyj", "127.0.0.1"]
    assert [each for each in named if each.lower() in text] == []
    made = site.simulate("GET", "ledger")
    assert made
    assert [one for one in made if not one["deleted_at"]] == []
    assert not (tmp_path / "t.jsonl.store").exists()
    compared = cloudid("simulate", "--compare", str(file))
    assert compared.out == f"{len(recorded)} calls, 0 differences\n"
    assert compared.code == 0


def test_a_tenant_that_refuses_everything_is_told(site: Site, cloudid: Shell, tmp_path: Path) -> None:
    """The refusals are recorded all the same."""
    fields = {**tenant_of(site.world, site.world["machines"][0]), "client_secret": str(tmp_path / "secret")}
    (tmp_path / "secret").write_text("wrong")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in fields.items()]
    shown = cloudid("connect", "azure", *words, "--record", str(tmp_path / "t"), "--provider", site.cloud.url)
    assert (shown.code, "no credentials could be issued" in shown.err) == (1, True), shown.err
    assert {line["status"] for line in read(tmp_path / "t")} >= {401}


@pytest.mark.parametrize(
    ("at", "is_certain"), [(("reconcile", "GET"), True), (("credentials", "PATCH"), False)], ids=["between", "amid"]
)
def test_what_a_killed_run_made_is_removed_by_the_next(
    at: tuple[str, str], is_certain: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also amid a request, which is not waited for: what the tenant may show late is looked for by a later run."""

    def later(settings: Mapping[str, Any]) -> SettingsFile:
        return read_settings({**settings, "service": {"settle_time": 0}})

    with start(Simulator()) as cloud:

        def alive() -> list[Any]:
            return [one for one in cloud.simulator.world.ledger.as_json() if one["deleted_at"] is None]

        answer = cloud.simulator.handle(HttpRequest("GET", "/simulator/world")).response
        world = json.loads(answer.body)
        fields = tenant_of(world, world["machines"][0])
        killed = KILLED.replace("AT", repr(at))
        words = [sys.executable, "-c", killed, json.dumps(fields), str(tmp_path / "store"), cloud.url]
        assert subprocess.run(words, cwd=ROOT, timeout=PATIENCE, check=False).returncode == 9
        made = {"application", "principal", "password", "assignment"} if is_certain else {"application"}
        assert {one["kind"] for one in alive()} >= made
        secret = Secret(fields.pop("client_secret"))
        tenant = Tenant(**fields, client_secret=secret)  # type: ignore[arg-type]  # texts only
        for is_gone in [True] if is_certain else [False, True]:
            steps, told = record(tenant, tmp_path / "store", lambda line: None, cloud.url)
            assert (steps["credentials"], told, alive()) == (200, is_gone, [])
            assert (tmp_path / "store").exists() != is_gone
            monkeypatch.setattr(story, "read_settings", later)


def test_every_family_of_calls_is_recorded_and_all_calls_are_in_the_tables(tmp_path: Path) -> None:
    """Words of closed vocabularies and the case of resource groups are kept, and compared."""
    with start(Simulator(3)) as cloud:
        world = json.loads(cloud.simulator.handle(HttpRequest("GET", "/simulator/world")).response.body)
        fields = tenant_of(world, world["machines"][0])
        api = next(one for one in cloud.simulator.world.directory.principals.all() if one.display_name in APP_ROLES)
        tenant = Tenant(
            **{**fields, "client_secret": Secret(fields["client_secret"])},  # type: ignore[arg-type]  # texts only
            machines=tuple(each["resource_id"] for each in world["machines"] if each["name"] in MACHINES),
            group=world["groups"][0]["id"],
            directory_role="Directory Readers",
            app_role=f"{api.id}/{next(iter(APP_ROLES[api.display_name]))}",
        )
        lines: list[dict[str, Any]] = []
        record(tenant, tmp_path / "store", lines.append, cloud.url)
        assert cloud.simulator.ledger.alive() == []
    found = [exchanges_of(line) for line in lines]
    assert [line for line, known in zip(lines, found, strict=True) if not known] == []
    assert families().keys() == {each.family for known in found for each in known}
    assert [*differences(lines, lines), *unlike_the_tables(lines)] == []
    text = json.dumps(lines)
    for word, another in (
        ("AzureADMyOrg", "AzureADMultipleOrgs"),
        ('"Application"', '"Legacy"'),
        ("text/resourcegroups", "text/resourceGroups"),
    ):
        assert word in text
        changed = json.loads(text.replace(word, another))
        told = [*differences(changed, lines), *unlike_the_tables(changed)]
        assert any(another.strip('"') in each for each in told), word


LINE: Final[dict[str, Any]] = {"step": "s", "method": "GET", "api": "arm", "path": "/id-1", "status": 200, "answer": {}}


@pytest.mark.parametrize(
    "there, told",
    [
        ([LINE], []),
        ([{**LINE, "status": 404}, {**LINE, "path": "/id-7"}], []),
        ([{**LINE, "answer": {"more": "text"}}], []),
        ([{**LINE, "status": 404, "code": "Gone"}], ["s GET arm /{id}: there 404 Gone, here 200"]),
        ([], ["s GET arm /{id}: called here, not there"]),
        ([LINE, {**LINE, "step": "z"}], ["z GET arm /{id}: called there, not here"]),
    ],
)
def test_outcomes_are_compared(there: list[dict[str, Any]], told: list[str]) -> None:
    assert list(differences(there, [LINE])) == told


def test_members_are_compared() -> None:
    ours = [{**LINE, "answer": {"a": "text", "b": [{"c": "id-1"}], "d": "number", "e": None}}]
    theirs = [{**LINE, "answer": {"b": [{"c": "boolean"}], "d": "number", "e": "text"}}]
    assert [each.partition(": ")[2] for each in differences(theirs, ours)] == [
        "answer.a is missing",
        "answer.b[].c is boolean there, text here",
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"step": 1}', '{"step": "s"}'])
def test_what_is_no_transcript_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(TranscriptRefused):
        list(read(tmp_path / "t"))


def test_recording_needs_to_know_where(cloudid: Shell) -> None:
    assert cloudid("connect", "azure", "--record", "t", "--tenant", "x").code == 2
    names = ("tenant", "subscription", "resource-group", "client-id", "client-secret")
    place = [word for name in names for word in (f"--{name}", "x")]
    shown = cloudid("connect", "azure", "--record", "t", *place, "--provider", "nowhere")
    assert (shown.code, "--provider must be a URL" in shown.err) == (2, True), shown.err
