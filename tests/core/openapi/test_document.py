"""The document: it has every route, and tools can read it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from cloudid_core.catalog import CATALOG
from cloudid_core.documents import openapi
from cloudid_core.mounts import BUILT_IN
from cloudid_core.openapi.document import document_of, paths_of
from cloudid_core.openapi.operations import METHODS, shown_path
from tests.documented import document

PLACES = {("auth", "cloud"): "auth/cloud", ("secret", "cloud"): "cloud"} | {
    (mount.kind, mount.type): mount.path for mount in BUILT_IN
}
GENERIC = {("auth", "cloud"): "auth/{cloud_mount_path}", ("secret", "cloud"): "{cloud_mount_path}"}


@pytest.fixture(scope="module")
def generic() -> Any:
    return msgspec.json.decode(openapi())


def test_every_route_has_an_operation_of_its_own(generic: Any) -> None:
    """In both forms of the document."""
    for paths, places in ((document()["paths"], PLACES), (generic["paths"], PLACES | GENERIC)):
        expected = [
            (
                f"/{places[component.kind, component.type]}/{shown_path(route, component.routes)}",
                METHODS[route.operation],
            )
            for component in CATALOG
            for route in component.routes.routes
        ]
        found = [(path, method) for path, item in paths.items() for method in item if method != "parameters"]
        assert sorted(found) == sorted(expected)


def test_it_is_an_openapi_document(generic: Any) -> None:
    """By the schema of OpenAPI 3.1, and by its rules about parameters and names."""
    for each in (document(), generic):
        assert not list(OpenAPIV31SpecValidator(each).iter_errors())


def test_the_path_of_a_mount_is_a_parameter_of_the_generic_form(generic: Any) -> None:
    item = generic["paths"]["/auth/{cloud_mount_path}/login"]
    assert [parameter["name"] for parameter in item["parameters"]] == ["cloud_mount_path"]
    assert item["parameters"][0]["schema"]["default"] == "cloud"
    assert "parameters" not in document()["paths"]["/auth/cloud/login"]


def test_two_mounts_of_a_type_differ_in_their_paths_only() -> None:
    component = next(each for each in CATALOG if (each.kind, each.type) == ("auth", "cloud"))
    both = msgspec.json.decode(document_of(paths_of(component, place) for place in ("auth/one", "auth/two")))
    assert not list(OpenAPIV31SpecValidator(both).iter_errors())
    one, two = (both["paths"][f"/auth/{name}/login"]["post"] for name in ("one", "two"))
    assert (one.pop("operationId"), two.pop("operationId")) == ("write-auth/one/login", "write-auth/two/login")
    assert one == two
