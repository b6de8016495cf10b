"""Settings: files that are good, files that are not, and the documentation of both."""

from __future__ import annotations

from pathlib import Path

import attrs
import msgspec
import pytest

from cloudid_core.clouds import CLOUDS
from cloudid_core.settings import Settings
from cloudid_core.values.secret import Secret
from cloudid_servers.settings.settings import (
    ServerSettings,
    SettingsError,
    SettingsFile,
    clouds_at,
    parse_address,
    read_file,
)

KEY = Secret("00" * 32)


def read(folder: Path, text: str) -> SettingsFile:
    path = folder / "cloudid.toml"
    path.write_text(text)
    return read_file(path)


def test_a_setting_that_stood_elsewhere_goes_on(tmp_path: Path) -> None:
    assert read(tmp_path, "[server]\nprovider_read_rate = 7").service["provider_read_rate"] == 7
    both = "[server]\nprovider_read_rate = 7\n[service]\nprovider_read_rate = 8"
    assert read(tmp_path, both).service["provider_read_rate"] == 8


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """Some editors write one."""
    assert read(tmp_path, '\ufeff[server]\nlog_level = "debug"').server.log_level == "debug"


def test_everything_can_be_set(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        """
        [server]
        listen = "[::1]:0"
        store = "there/store.sqlite"
        key_file = "/etc/key"
        drain = "1m"
        log_level = ""
        [service]
        fact_max_age = 0
        body_limit = 2048
        trusted_proxies = ["10.1.2.3/8"]
        [clouds.AzureChinaCloud]
        login = "http://127.0.0.1:1/login/"
        """,
    )
    assert file.server.address == ("::1", 0)
    assert file.server.store == str(tmp_path / "there/store.sqlite")
    assert file.server.key_file == "/etc/key"
    assert (file.server.drain, file.server.log_level, file.server.tls_certificate) == (60.0, "info", "")
    settings = file.settings(KEY)
    assert (settings.fact_max_age, settings.body_limit) == (0, 2048)
    assert settings.trusted_proxies == ("10.0.0.0/8",)
    assert settings.clouds["CloudChinaCloud"] == msgspec.structs.replace(
        CLOUDS["CloudChinaCloud"], login="http://127.0.0.1:1/login"
    )
    assert settings.clouds["CloudPublicCloud"] == CLOUDS["CloudPublicCloud"]


def test_everything_may_be_left_out(tmp_path: Path) -> None:
    file = read(tmp_path, "")
    assert file.server == ServerSettings(store=str(tmp_path / "cloudid.sqlite"), key_file=str(tmp_path / "cloudid.key"))
    expected = Settings(master_key=KEY, audit_folders=(str(tmp_path / "audit"),))
    assert attrs.evolve(file.settings(KEY), environment={}) == expected


@pytest.mark.parametrize(
    "text, reason",
    [
        ("listen = 1", '"listen" is unknown'),
        ("[server]\nlisten_on = 1", r'\[server\] "listen_on" is unknown'),
        ("[server]\nlog_levl = 'debug'", r'\[server\] "log_levl" is unknown: is "log_level" meant\?'),
        ("[server]\nlisten = 'here'", "here is not HOST:PORT"),
        ("[server]\nconnection_limit = 0", r'\[server\] "connection_limit" must be between'),
        ("[service]\ndefault_lease_ttl = '33d'", r'\[service\] "default_lease_ttl" must be at most "max_lease_ttl"'),
        ("[server]\ntls_key = 'key.pem'", r'\[server\] "tls_key" needs "tls_certificate"'),
        ("[server]\ntls_certificate = 'cert.pem'", r'\[server\] "tls_certificate" needs "tls_key"'),
        ("[server]\nhead_timeout = 0", r'\[server\] "head_timeout" must be between 0.1s and 86400s'),
        ("[server]\nwrite_timeout = '50ms'", r'\[server\] "write_timeout" must be between'),
        ("[server]\napply_policies = ['Root']", '"apply_policies" must not contain root'),
        ("[server]\ndrain = '2h'", r'\[server\] "drain" must be between'),
        ("[service]\nrequest_deadline = 0", r'\[service\] "request_deadline" must be between 0.1s and 3600s'),
        ("[service]\nprovider_timeout = 0", r'\[service\] "provider_timeout" must be between 0.1s and 3600s'),
        ("[service]\nmaster_key = 'x'", r'\[service\] "master_key" is unknown'),
        ("[service]\nleeway = 'soon'\nbody_limit = 1", r'\[service\] "leeway" .*; "body_limit" must be between'),
        ("[service]\ntrusted_proxies = ['x']", '"trusted_proxies" must be IP addresses'),
        ("service = 1", r"\[service\] is not a table"),
        ("[clouds.Mars]", r"\[clouds.Mars\] must be one of"),
        ("[clouds]\nMars = 1", r"\[clouds\] holds something"),
        ("[clouds.CloudGermanCloud]\nmoon = 'x'", '"moon" is unknown'),
        ("[clouds.CloudGermanCloud]\nlogin = 'x'", '"login" must be a URL'),
        ("[clouds.CloudGermanCloud]\nlogin = 'https://login.test:99999'", '"login" must be a URL'),
        ("[server]\nmetadata_address = '169.254.169.254'", r'\[server\] "metadata_address" must be a URL such as'),
        ("[server]\nmetadata_address = 'http://'", '"metadata_address" must be a URL'),
        ("[server", "cloudid.toml: "),
        ("[audit.a]\ntype = 'file'", r'\[audit.a\] a required field is missing: "file_path" in this table'),
        ("[audit.a]\ntype = 'file'\noptions = {file_path = 'a'}", '"options" must be a string: write the options of a'),
        ("[audit.a]\ntype = 'stdout'\nmode = '0600'", "this table has no option mode: its options are content"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        read(tmp_path, text)


@pytest.mark.parametrize("text", ["drain = 0", "idle_timeout = '24h'", "head_timeout = '100ms'"])
def test_the_bounds_themselves_are_accepted(tmp_path: Path, text: str) -> None:
    read(tmp_path, f"[server]\n{text}")


@pytest.mark.parametrize(
    "text, folders",
    [
        ("", ("audit",)),
        ('store = "data/cloudid.sqlite"', ("data/audit",)),
        ('audit_directory = "logs/audit/"', ("logs/audit",)),
        ('audit_directory = "/var/log/cloudid"', ("/var/log/cloudid",)),
        ('store = "postgresql://db/cloudid"', ()),
        ('store = "postgresql://db/cloudid"\naudit_directory = "/var/log/cloudid"', ("/var/log/cloudid",)),
    ],
)
def test_audit_files_lie_beside_a_store_in_a_file_or_where_a_setting_says(
    tmp_path: Path, text: str, folders: tuple[str, ...]
) -> None:
    file = read(tmp_path, f"[server]\n{text}\n")
    assert file.server.audit_folders == tuple(str(tmp_path / folder) for folder in folders)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        read_file(tmp_path / "nowhere.toml")


def test_the_environment_of_the_process_reaches_the_core_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_CLIENT_SECRET", "hunter2")
    monkeypatch.setenv("OTHER_SECRET", "hunter3")
    settings = SettingsFile().settings(KEY)
    assert settings.environment["CLOUD_CLIENT_SECRET"] == Secret("hunter2")
    assert "OTHER_SECRET" not in settings.environment
    assert "hunter" not in repr(settings)


def test_a_simulator_stands_for_every_environment() -> None:
    clouds = clouds_at("http://127.0.0.1:8400/")
    assert set(clouds) == set(CLOUDS)
    for name, cloud in clouds.items():
        assert cloud.login == "http://127.0.0.1:8400/login"
        assert cloud.resource_manager == "http://127.0.0.1:8400/arm"
        assert cloud.directory == "http://127.0.0.1:8400/graph"
        assert cloud.resource_audience == CLOUDS[name].resource_audience


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:65536", "::1:80", "[::1]", "host:1\n", "ho st:1"])
def test_addresses_have_a_host_and_a_port(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_address(text)
