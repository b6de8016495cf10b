"""The route that describes the interface."""

from __future__ import annotations

from typing import Any

from cloudid_core.openapi.document import GENERIC_FROM
from tests.installation import Installation
from tests.tokens import new_token

PATH = "sys/internal/specs/openapi"


def paths(service: Installation, path: str = PATH, **more: Any) -> set[str]:
    return set(service.must("GET", path, **more).body["paths"])


def test_every_live_mount_is_there_and_no_other() -> None:
    service = Installation()
    service.must("POST", "sys/auth/other", {"type": "azure"})
    service.must("DELETE", "sys/mounts/cloud")
    found = paths(service)
    assert {"/auth/other/login", "/auth/cloud/login", "/sys/health"} <= found
    assert "/cloud/config" not in found


def test_a_token_sees_the_mounts_below_which_it_has_rights() -> None:
    """It needs no other right."""
    service = Installation()
    token = new_token(service, policies=["default"])
    found = paths(service, token=token)
    assert "/auth/token/lookup-self" in found
    assert "/cloud/creds/{name}" not in found
    assert service.refused("GET", PATH, token="") == (403, "permission_denied")


def test_each_type_is_named_once_if_that_is_asked_for_or_there_are_many_mounts() -> None:
    service = Installation()
    generic = paths(service, f"{PATH}?generic_mount_paths=true")
    assert {"/{cloud_mount_path}/creds/{name}", "/auth/{cloud_mount_path}/login", "/sys/mounts"} <= generic
    assert "/cloud/creds/{name}" not in generic
    for number in range(GENERIC_FROM):
        service.must("POST", f"sys/mounts/engine-{number}", {"type": "cloud"})
    assert paths(service) == generic
