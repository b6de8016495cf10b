"""The program that tests roles: its verdicts offline and by a server are the same, and its exit code serves CI."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from cloudid_servers.role_tests.program import TOKEN
from cloudid_servers.role_tests.program import test as command
from cloudid_servers.terminal import run
from tests.waiting import PATIENT

from .running import Running, finished

pytestmark = pytest.mark.one_server

SUBSCRIPTION = "50b50000-0000-4000-8000-00000000000a"
PRINCIPAL = "0b1ec700-0000-4000-8000-000000000001"
VM = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/prod/providers/Microsoft.Compute/virtualMachines/web"
SERVERS = ("cloudid_servers.trio_server", "cloudid_servers.aiohttp_server")


def case(expect: object, **changes: Any) -> dict[str, Any]:
    return {
        "name": f"expects {expect}",
        "role": "web",
        "subscription_id": SUBSCRIPTION,
        "resource_group_name": "prod",
        "vm_name": "web",
        "claims": {"oid": PRINCIPAL, "xms_mirid": VM},
        "facts": {"machine": {"location": "West US 2", "principals": [PRINCIPAL]}},
        "expect": expect,
        **changes,
    }


CASES = [
    case("admitted"),
    case("vm_name_mismatch", vm_name="other"),
    case(["bound_location_mismatch", "jwt_expired"], claims={"oid": PRINCIPAL, "xms_mirid": VM, "exp": 1},
         facts={"machine": {"location": "East US", "principals": [PRINCIPAL]}}),
    case("bound_token_type_mismatch", claims={"oid": PRINCIPAL, "xms_mirid": VM, "upn": "ada@contoso.test"}),
    case("machine_not_found", facts={"machine": None}),
    case("role_not_found", role="nobody"),
]  # fmt: skip
ROLES = {"web": {"bound_locations": ["westus2"], "bound_subscription_ids": SUBSCRIPTION}}


def main(arguments: list[str]) -> int:
    return run(command, "role_tests", arguments)


def write(path: Path, **content: object) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def test_cases_that_go_as_expected_end_with_0(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path / "cases.json", cases=CASES), write(tmp_path / "roles.json", roles=ROLES)]) == 0
    assert capfd.readouterr().out.endswith("6 cases, 0 different than expected\n")


def test_roles_of_a_file_need_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*given: object, **options: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert main([write(tmp_path / "all.json", cases=CASES, roles=ROLES)]) == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "wrong, shown",
    [
        (case("vm_name_mismatch"), "admitted"),
        (case("admitted", vm_name="other"), "vm_name failed: expected web, found other"),
        (case("vm_name_mismatch", vm_name="other", facts={"machine": None}), "machine failed"),
        (case("admitted", facts={}), "bound_locations undecided"),
        (case("admitted", role="nobody"), "the role does not exist"),
    ],
)
def test_a_case_that_goes_otherwise_ends_with_1_and_says_why(
    wrong: dict[str, Any], shown: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path / "all.json", cases=[*CASES, wrong], roles=ROLES)]) == 1
    told = capfd.readouterr().out
    assert shown in told
    assert told.endswith("7 cases, 1 different than expected\n")


@pytest.mark.parametrize(
    "content",
    [{}, {"cases": [{}]}, {"cases": CASES, "rolls": {}}, {"cases": [case("admitted", vmname="web")]}, {"roles": ROLES}],
)
def test_a_file_of_another_shape_ends_with_2(
    content: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([write(tmp_path / "all.json", **content)]) == 2
    assert capfd.readouterr().err.startswith("error: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere.toml")]) == 2
    assert "nowhere.toml" in capfd.readouterr().err
    (tmp_path / "broken.toml").write_text("[")
    assert main([str(tmp_path / "broken.toml")]) == 2
    assert "broken.toml" in capfd.readouterr().err


def test_a_role_stands_in_one_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path / name, cases=CASES, roles=ROLES) for name in ("one.json", "two.json")]
    assert main(files) == 2
    assert "defined twice" in capfd.readouterr().err


@pytest.mark.parametrize("role", [{}, {"bound_locations": "westus2", "token_tll": 1}, {"bound_locations": "*"}])
def test_a_role_that_no_server_would_take_admits_nothing(role: dict[str, Any], tmp_path: Path) -> None:
    assert main([write(tmp_path / "all.json", cases=[case("admitted")], roles={"web": role})]) == 1


@pytest.mark.parametrize("server", SERVERS)
def test_the_roles_of_a_server_give_the_same_verdicts(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    files = [write(tmp_path / "all.json", cases=CASES, roles={})]
    with Running(server, "--dev", "--root-token", "hunter2", "--listen", "127.0.0.1:0") as running:
        provider = running.introduction[1].removeprefix("provider simulator: ")
        world = httpx.get(f"{provider}/simulator/world", **PATIENT).json()
        with httpx.Client(base_url=f"{running.url}/v1/", headers={"x-service-token": "hunter2"}, **PATIENT) as client:
            application = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
            config = {"tenant_id": world["tenant"], "resource": "https://management.azure.com/", **application}
            client.post("auth/cloud/config", json=config).raise_for_status()
            client.post("auth/cloud/role/web", json=ROLES["web"]).raise_for_status()
        assert main([*files, "--address", running.url]) == 2
        assert TOKEN in capfd.readouterr().err
        monkeypatch.setenv(TOKEN, "wrong")
        assert main([*files, "--address", running.url]) == 2
        assert "permission denied" in capfd.readouterr().err
        monkeypatch.setenv(TOKEN, "hunter2")
        assert main([*files, "--address", running.url]) == 0, capfd.readouterr().out
        assert main([*files, "--address", running.url, "--mount", "auth/nowhere"]) == 2
    assert main([*files, "--address", running.url]) == 2
    shown = capfd.readouterr()
    assert f"error: {running.url}/v1/auth/cloud/explain: Connection refused\n" in shown.err
    assert "hunter2" not in "".join(shown)


def test_a_server_that_is_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, "hunter2")
    for address in ("", "nowhere", "ftp://nowhere", "http://127.0.0.1:port"):
        assert main([write(tmp_path / "all.json", cases=CASES), "--address", address]) == 2
        assert capfd.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("module", [("cloudid_servers.role_tests",), *((server, "test-roles") for server in SERVERS)])
def test_it_is_a_program_and_a_command_of_both_servers(module: tuple[str, ...], tmp_path: Path) -> None:
    file = write(tmp_path / "all.json", cases=[*CASES, case("vm_name_mismatch")], roles=ROLES)
    done = finished(*module, file)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.endswith("7 cases, 1 different than expected\n")
