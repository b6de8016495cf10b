"""What is read back is what was written, and what was read, written back, changes nothing: for every field of every
form that can be read.

Values are written as reads show them: durations in seconds, lists as lists. How else a type may be written is a matter
of its grammar.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from attrs import field, frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cloudid_core.catalog import CATALOG
from cloudid_core.forms.fields import Field, fields_of
from cloudid_core.messages.operations import Operation
from cloudid_core.routing.components import Component
from cloudid_core.routing.routes import Route
from cloudid_core.secrets_engine.ceiling import LISTS
from cloudid_servers.provider_simulator.world.objects import DIRECTORY_ROLES
from tests.engines import EVERYTHING, SecretsEngine, configured_engine
from tests.minting import IDENTITY

Strategy = st.SearchStrategy[Any]


@frozen(kw_only=True)
class Place:
    """What is written and read at one path."""

    path: str
    row: str
    """Its route: the component's kind and type, and the route's path."""
    least: Mapping[str, Any] = field(factory=dict[str, Any])
    """The fields without which a write is refused."""
    unread: Mapping[str, str] = field(factory=dict[str, str])
    """The fields that no read shows, or shows as something else, and why."""
    member: str = ""
    """The member of `data` that has the fields; empty: `data` itself."""


TUNING: Final = {
    "default_lease_ttl": "0 reads as the service's; below `config` of the mount it reads as 0",
    "max_lease_ttl": "as the default",
    "force_no_cache": "accepted, as clients send it; there is no such cache",
}
DELAYS: Final = dict.fromkeys(("retry_delay", "max_retry_delay"), "in nanoseconds")
APPLIED: Final = dict.fromkeys(("applied", "replace_root_secret", "verify"), "how to write, not what")
FORCE: Final = {"force": "how to write, not what", **APPLIED}
CEILING: Final = dict.fromkeys(LISTS, "it would stop the roles of other rows; `test_ceiling` reads it back")
LOGINS: Final = {"tenant_id": "tenant", "resource": "https://resource"}
PLACES: Final = (
    Place(path="auth/cloud/config", row="auth cloud config", least=LOGINS, unread=APPLIED),
    Place(
        path="auth/other/config",
        row="auth cloud config",
        least=LOGINS,
        unread={"client_secret": "existing clients keep what they read in files", **APPLIED, **DELAYS},
    ),
    Place(path="auth/cloud/role/web", row="auth cloud role/:name", least={"bound_group_ids": ["g"]}),
    Place(path="auth/token/roles/web", row="auth token roles/:name"),
    Place(
        path="identity/oidc/role/web",
        row="secret identity oidc/role/:name",
        unread={"client_id": "one is drawn in place of an empty one"},
    ),
    Place(path="cloud/config", row="secret cloud config", unread={"client_secret": "never shown", **FORCE, **CEILING}),
    Place(path="cloud/roles/web", row="secret cloud roles/:name"),
    Place(
        path="sys/quotas/rate-limit/Web",
        row="secret system quotas/rate-limit/:name",
        least={"rate": 1, "path": "cloud"},
    ),
    Place(path="sys/quotas/lease-count/Web", row="secret system quotas/lease-count/:name", least={"max_leases": 1}),
    Place(
        path=f"sys/applied/{'a' * 32}",
        row="secret system applied/:name",
        least={"path": "/srv/shop", "host": "one"},
        unread={"adopt": "how to write, not what", "former": "how to write, not what"},
    ),
    Place(path="sys/quotas/config", row="secret system quotas/config"),
    Place(path="sys/mounts/cloud/tune", row="secret system mounts/*path/tune", unread={**TUNING, "token_type": "none"}),
    Place(path="sys/auth/cloud/tune", row="secret system auth/*path/tune", unread=TUNING),
    Place(path="sys/mounts/auth/cloud/tune", row="secret system mounts/auth/*path/tune", unread=TUNING),
    Place(
        path="sys/config/auditing/request-headers/X-Trace",
        row="secret system config/auditing/request-headers/:header",
        member="X-Trace",
    ),
    Place(path="sys/policies/acl/web", row="secret system policies/acl/*name"),
    Place(path="sys/policy/web", row="secret system policy/*name", unread={"policy": "its name is `rules` here"}),
)
ELSEWHERE: Final = {
    "secret system auth/*path": "makes a mount, once; it reads as it is tuned",
    "secret system mounts/*path": "makes a mount, once; it reads as it is tuned",
    "secret system retiring/:accessor/config": "the configuration's own route does it",
    "auth token lookup": "asks about a token",
    "secret cloud reconcile": "does work",
    "secret cloud static-roles/:name": "makes a secret; `test_static_roles` writes back what it reads",
    "secret cloud token/:name": "gives a token; its fields say which",
}
"""Paths that are written and read, where what is read is not what was written."""

LETTERS: Final = string.ascii_letters + string.digits
WORDS: Final = st.text(LETTERS, min_size=1, max_size=8)
TEXTS: Final = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=20)
ENTRIES: Final = st.lists(TEXTS.map(str.strip).filter(lambda text: text and "*" not in text), min_size=1, max_size=3)
POLICY_NAMES: Final = st.lists(st.from_regex(r"[A-Za-z0-9_.@:-]{0,5}[A-Za-z0-9](/[A-Z][a-z])?", fullmatch=True))
DURATION: Final = re.compile("duration from ([0-9]+) to ([0-9]+)")
CLOUDS: Final = ("", "CloudChinaCloud", "cloudpubliccloud", "AzurePublicCloud", "AZUREUSGOVERNMENTCLOUD")
ADDRESSES: Final = ("10.1.2.3", "10.1.2.3/32", "10.1.2.3/8", "0.0.0.0/0", "::1", "2001:DB8::/32", "::ffff:192.0.2.1")
PATHS: Final = ("auth/cloud", "auth/Cloud/", "cloud/", "CLOUD/creds/*", "sys/Health")

BY_TYPE: Final[Mapping[str, Strategy]] = {
    "string": TEXTS,
    "bool": st.booleans(),
    "integer from 0 to 20": st.integers(0, 20),
    "integer from 0 to 2147483648": st.integers(0, 2**31),
    "integer from 1 to 2147483648": st.integers(1, 2**31),
    "number from 0.000001 to 1000000000": st.floats(1e-6, 1e9) | st.integers(1, 1000),
    "GUID or host name": st.sampled_from(["Tenant", "example.COM", "0000000A-0000-0000-0000-000000000001"]),
    "GUID": st.uuids().flatmap(lambda guid: st.sampled_from([str(guid), str(guid).upper()])),
    "environment name": st.sampled_from(CLOUDS),
    "five-field cron schedule": st.sampled_from(["", "0 3 * * *", " 0  3 * * 1"]),
    "list": ENTRIES.map(lambda entries: [entry for entry in entries if "," not in entry] or ["One"]),
    "list of GUIDs": st.lists(st.uuids().map(str), min_size=1),
    "list of resource ids": st.lists(st.sampled_from([IDENTITY, IDENTITY.upper()]), min_size=1),
    "list of CIDR blocks": st.lists(st.sampled_from(ADDRESSES)),
    "list of policies": POLICY_NAMES,
    "list of policies, with `*`": POLICY_NAMES.map(lambda names: [f"{name}*" for name in names]),
    "list of scopes of tokens": st.lists(WORDS.map(lambda word: f"api://{word}/.default"), max_size=3),
    "list of tags": st.lists(st.text(LETTERS + ":", min_size=1, max_size=5)),
    "empty list": st.just([]),
    "list of app, user": st.lists(st.sampled_from(["app", "User"]), min_size=1),
    "object": st.dictionaries(WORDS, TEXTS, max_size=3),
    "path": st.sampled_from(PATHS),
    "template": st.sampled_from(["", "{}", '{"a": {{oid}} }']),
}
BY_NAME: Final[Mapping[str, Strategy]] = {
    "identity_token_ttl": st.integers(60, 86_400),  # 0 reads as what it stands for
    "root_password_ttl": st.just(0) | st.integers(7200, 10**8),
    "rotation_period": st.just(0) | st.integers(5, 10**6),
    "rotation_window": st.just(0) | st.integers(3600, 10**6),
    "path_suffix": WORDS,
    "role": WORDS,
    "policy": st.sampled_from(["", 'path "A/b/" { capabilities = ["read"] }', " # nothing\n"]),
}
PARTNERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "rotation_window": {"rotation_schedule": "0 3 * * *"},
    "token_scopes": {"persist_app": True},
    "identity_token_audience": {"client_secret": ""},
    "role": {"path": "Cloud/"},
}
"""Fields that are only accepted beside others."""


@pytest.fixture(scope="module")
def made() -> SecretsEngine:
    service = configured_engine()
    service.must("POST", "sys/auth/other", {"type": "azure"})
    lists = {"allowed_directory_roles": list(DIRECTORY_ROLES), "allowed_app_roles": service.app_roles(0, 1)}
    service.must("POST", "cloud/config", {**EVERYTHING, **lists})
    return service


def forms() -> Iterator[tuple[str, Route]]:
    """Every route that is written and read, by the name of its row."""
    for component in CATALOG:
        yield from _forms(component)


def _forms(component: Component) -> Iterator[tuple[str, Route]]:
    read = {route.path for route in component.routes.routes if route.operation is Operation.READ}
    for route in component.routes.routes:
        if route.operation is Operation.WRITE and route.path in read and fields_of(route.form):
            yield f"{component.kind} {component.type} {route.path}", route


ROWS: Final = dict(forms())
CASES: Final = [
    (place, one) for place in PLACES for one in fields_of(ROWS[place.row].form) if one.name not in place.unread
]


def test_every_form_that_can_be_read_is_here() -> None:
    assert {place.row for place in PLACES} | ELSEWHERE.keys() == ROWS.keys()
    for place in PLACES:
        assert place.unread.keys() <= {one.name for one in fields_of(ROWS[place.row].form)}


def values_of(service: SecretsEngine, place: Place, one: Field) -> Strategy:
    """Values of a field, as reads show them."""
    if place.row == "secret cloud roles/:name":
        scopes = [service.scope, f"{service.scope}/", service.scope.upper().replace("/SUB", "/sub")]
        other = service.other_application["object_id"]
        special: dict[str, Strategy] = {
            "azure_roles": st.sampled_from([service.grants(scope=scope) for scope in scopes]),
            "azure_groups": st.sampled_from([[], service.groups(0), service.groups(1, 0)]),
            "directory_roles": st.sampled_from([[], [{"role_name": "Directory Readers"}]]),
            "app_roles": st.sampled_from([[], service.app_roles(0), service.app_roles(1, 0)]),
            "application_object_id": st.sampled_from([other, other.upper(), ""]),
        }
        if one.name in special:
            return special[one.name]
    if place.row.endswith("lease-count/:name") and one.name == "path":
        return st.sampled_from(["cloud", "cloud/", "Cloud", "/cloud/"])
    if one.kind.name.startswith("one of "):
        return st.sampled_from(one.kind.name.removeprefix("one of ").split(", "))
    if one.name == "auth_type":
        return st.just("root_creds" if place.path == "cloud/config" else "msi")
    if place.path == "auth/cloud/config" and one.name == "environment":
        return st.sampled_from(CLOUDS[1:])  # the contract says that none reads as the default
    if one.name in BY_NAME:
        return BY_NAME[one.name]
    if bounds := DURATION.fullmatch(one.kind.name):
        return st.integers(int(bounds[1]), min(int(bounds[2]), 10**6))
    return BY_TYPE[one.kind.name]


def read(service: SecretsEngine, place: Place) -> dict[str, Any]:
    data: dict[str, Any] = service.must("GET", place.path).data
    return data[place.member] if place.member else data


def shows(shown: Any, written: Any) -> bool:
    """Whether a value reads back; what a role refers to also has the names and ids that the provider knows it by."""
    if isinstance(written, list) and isinstance(shown, list) and len(written) == len(shown):
        return all(map(shows, shown, written))
    if isinstance(written, dict) and isinstance(shown, dict):
        return written.items() <= shown.items()
    return bool(shown == written)


@pytest.mark.parametrize("place, one", CASES, ids=[f"{place.path} {one.name}" for place, one in CASES])
@given(data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_written_reads_back_and_written_back_changes_nothing(
    made: SecretsEngine, place: Place, one: Field, data: st.DataObject
) -> None:
    service = made.copy()
    value = data.draw(values_of(service, place, one))
    least = {"azure_roles": service.grants()} if place.row == "secret cloud roles/:name" else place.least
    reply = service.ask("POST", place.path, {**least, **PARTNERS.get(one.name, {}), one.name: value})
    assume(reply.status != 400)
    assert reply.status in (200, 204)
    shown = read(service, place)
    assert shows(shown.get(one.name), value) or (one.name not in shown and not value), f"{value!r} reads as {shown}"
    service.must("POST", place.path, shown)
    assert read(service, place) == shown


@pytest.mark.parametrize(
    "path, old",
    [
        ("auth/token/roles/web", {"period": 60, "explicit_max_ttl": 90}),
        ("auth/cloud/role/web", {"policies": ["A"], "ttl": 60, "max_ttl": 90, "num_uses": 2, "bound_cidrs": ["::1"]}),
    ],
)
def test_what_was_written_under_deprecated_names_stays_under_them_when_it_is_written_back(
    made: SecretsEngine, path: str, old: dict[str, Any]
) -> None:
    service = made.copy()
    bound = {"bound_group_ids": ["g"]} if path.startswith("auth/cloud") else {}
    service.must("POST", path, {**bound, **old})
    shown = service.must("GET", path).data
    assert old.items() <= shown.items()
    service.must("POST", path, shown)
    assert service.must("GET", path).data == shown
