"""The files for an Azure VM: the server accepts its settings, systemd its unit, and the key comes from Key Vault."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from cloudid_servers.settings.master_key import find
from cloudid_servers.settings.settings import read_file
from tests.pages.blocks import ROOT, blocks_of
from tests.servers.client.test_service import Fake
from tests.waiting import PATIENCE

FILES: Final = ROOT / "deploy/vm"
UNIT: Final = ROOT / "deploy/systemd/cloudid.service"
METADATA: Final = "http://169.254.169.254"
KEY: Final = "5e" * 32


def answer(**members: str) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps(members).encode()


def test_the_command_reads_the_master_key_from_key_vault(tmp_path: Path) -> None:
    """By the managed identity of the VM, as the settings call it."""
    with Fake([answer(access_token="t"), answer(value=KEY)]).serving() as fake:
        (tmp_path / "secret").write_text(f"{fake.url}/secrets/cloudid-key\n")
        program = (FILES / "key-from-key-vault").read_text().replace(METADATA, fake.url)
        assert fake.url in program
        program = program.replace("/etc/cloudid/key-vault-secret", str(tmp_path / "secret"))
        (tmp_path / "key-from-key-vault").write_text(program)
        (tmp_path / "key-from-key-vault").chmod(0o755)
        settings = (FILES / "cloudid.toml").read_text().replace("/usr/local/bin", str(tmp_path))
        (tmp_path / "cloudid.toml").write_text(settings)
        assert find(read_file(tmp_path / "cloudid.toml").server).reveal() == KEY
        (_, identity, asked, _), (_, secret, shown, _) = fake.requests
    assert identity.endswith("resource=https://vault.azure.net")
    assert asked["metadata"] == "true"
    assert secret == "/secrets/cloudid-key?api-version=7.4"
    assert shown["authorization"] == "Bearer t"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: install systemd")
def test_systemd_accepts_the_unit_with_the_drop_in(tmp_path: Path) -> None:
    unit = tmp_path / "cloudid.service"
    unit.write_text(UNIT.read_text().replace("/opt/cloudid/bin/cloudid", "/bin/true"))
    drop_ins = tmp_path / "cloudid.service.d"
    drop_ins.mkdir()
    shutil.copy(FILES / "azure.conf", drop_ins)
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert "azure.conf" not in verified.stderr


def test_the_settings_use_the_key_that_the_drop_in_provides() -> None:
    server = read_file(FILES / "cloudid.toml").server
    name, _, file = (FILES / "azure.conf").read_text().splitlines()[-1].removeprefix("LoadCredential=").partition(":")
    assert server.tls_key == f"/run/credentials/cloudid.service/{name}"
    assert file.startswith("/etc/cloudid/")
    assert server.store.startswith("/var/lib/cloudid/")


def test_the_page_installs_every_file() -> None:
    shown = "".join(block.text for block in blocks_of("docs/hosting/vm.md", "console"))
    assert [path.name for path in FILES.iterdir() if path.name not in shown] == []
