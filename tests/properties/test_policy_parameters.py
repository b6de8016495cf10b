"""A request passes a rule about its parameters exactly when its values, as the route reads them, satisfy the rule: for
every field of every form, and every kind of rule.

The fields come from the tables of routes, and the values of each from one pool: a field that takes too few of them to
tell rules apart fails the test, until the pool has more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from attrs import frozen
from msgspec import Raw

from cloudid_core.catalog import CATALOG
from cloudid_core.errors import Refused
from cloudid_core.forms.fields import Field, fields_of, spellings_of
from cloudid_core.policies.document import Rule, parse
from cloudid_core.policies.parameters import fit
from tests.properties.parameters_oracle import Known, Restrictions, passes, reads

Json = Any
IDS: Final = ("6b6f1c2a-0d5e-4b57-9a43-1f1f2b3c4d5e", "0F0F0F0F-1111-4222-8333-444455556666")
SUBSCRIPTION: Final = f"/subscriptions/{IDS[0]}"
READER: Final = {"role_name": "Reader", "scope": f"{SUBSCRIPTION}/resourceGroups/prod"}
OWNER: Final = {"role_name": "Owner", "scope": SUBSCRIPTION}
OBJECTS: Final[tuple[Json, ...]] = (
    READER,
    OWNER,
    {"role_name": "Reader", "scope": f"{SUBSCRIPTION}/resourceGroups/prod/"},
    {"group_name": "team"},
    {"group_name": "admins", "object_id": IDS[1]},
    {"role_name": "Directory Readers"},
    {"role_id": IDS[0]},
    {"resource_name": "Microsoft Graph", "app_role_name": "User.Read.All"},
    {"resource_id": IDS[0], "app_role_id": IDS[1]},
    {"resource_id": IDS[1], "app_role_id": IDS[0]},
    {"team": "web"},
    {"team": "web", "stage": "Prod"},
    {"file_path": "/srv/audit.log"},
    {"file_path": "/etc/passwd", "mode": "0666"},
    {"max_lease_ttl": "1h"},
    {"max_lease_ttl": 3600, "description": "Web"},
    {"max_lease_ttl": "60m", "options": {}},
    {"listing_visibility": "unauth", "token_type": "batch", "description": "admin"},
    {"options": {"team": "web"}, "audit_non_hmac_request_keys": "web, admin"},
    {},
)
TEXTS: Final = (
    "",
    "a",
    "A",
    "web",
    "Web",
    "web-shop",
    "admin",
    "web,admin",
    "web, admin",
    "admin,web,web",
    "ops.network.head",
    "team=web",
    "team/shop",
    "/team/shop/",
    "/srv/audit.log",
    "stdout",
    "file",
    "socket",
    "default",
    "service",
    "batch",
    "default-service",
    "key",
    "irrevocable",
    "hidden",
    "unauth",
    "system",
    "ip",
    "none",
    "entity",
    "true",
    "false",
    "0",
    "1",
    "5",
    "05",
    "0x10",
    "200",
    "404",
    "0600",
    "0640",
    "30s",
    "1h",
    "60m",
    "2h",
    "0.5",
    "3600",
    "7200",
    "10.0.0.0/8",
    "10.1.2.3/8",
    "192.0.2.1",
    "192.0.2.1,10.0.0.0/8",
    "::ffff:192.0.2.1",
    "0 3 * * 6",
    "0 3 * * *",
    "contoso.test",
    "https://management.azure.com/",
    "https://issuer.example/tenant",
    "api://AzureADTokenExchange",
    "AzurePublicCloud",
    "AzureUSGovernmentCloud",
    "https://graph.microsoft.com/.default",
    "https://vault.azure.net/.default",
    "AzureADMyOrg",
    "AzureADMultipleOrgs",
    "app",
    "user",
    "APP",
    "app,user",
    "westeurope",
    "West Europe",
    "Reader",
    "*",
    "web-*",
    '{"team": "{{role}}"}',
    '{"stage": "prod"}',
    "azure",
    "approle",
    "sys/leases",
    "cloud/creds/web",
    SUBSCRIPTION,
    f"{SUBSCRIPTION}/",
    f"{SUBSCRIPTION}/resourceGroups/prod",
    f"{SUBSCRIPTION}/resourcegroups/prod/providers/Microsoft.ManagedIdentity/userAssignedIdentities/one",
    f"{SUBSCRIPTION}/resourcegroups/prod/providers/Microsoft.ManagedIdentity/userAssignedIdentities/two",
    *IDS,
    IDS[1].lower(),
    *(json.dumps([each]) for each in OBJECTS[:10]),
    json.dumps([READER, OWNER]),
)
SCALARS: Final[tuple[Json, ...]] = (None, True, False, 0, 1, 5, 16, 30, 200, 404, 3600, 7200, -1, 2**40)
REQUESTED: Final[tuple[Json, ...]] = (
    *TEXTS,
    *SCALARS,
    Raw(b"5.0"),
    Raw(b"0.5"),
    Raw(b"1e400"),
    [],
    *([text] for text in TEXTS),
    ["web", "admin"],
    ["admin", "web"],
    ["web", "web"],
    ["web", "WEB-shop"],
    ["web,admin"],
    ["web", ""],
    [" web "],
    [5, True],
    ["team=web", "stage=Prod"],
    ["10.0.0.0/8", "192.0.2.1"],
    list(IDS),
    *([each] for each in OBJECTS),
    [READER, OWNER],
    [OWNER, READER],
    [READER, READER],
    *OBJECTS,
    {"claims": {"oid": IDS[0], "n": [1, None]}},
)
"""What a request may carry."""


def can_be_ruled(value: Json) -> bool:
    """Whether a rule may have a value."""
    return not isinstance(value, Raw) and "null" not in json.dumps(value)


STRUCTURES: Final[tuple[Json, ...]] = (
    {"role_name": "Owner"},
    [{"role_name": "Owner"}],
    [[OWNER]],
    [True],
    {"id": "g"},
    ["web", {"id": "g"}],
    {"max_lease_ttl": "soon"},
)
"""What only a rule has: most fields refuse it."""
RULED: Final = tuple(filter(can_be_ruled, REQUESTED))

ONE_VALUE: Final = {"CreateForm.entity_alias", "TokenRole.allowed_entity_aliases"}
"""Fields that take nothing but the empty value."""


@frozen
class Subject:
    """A field of a form, and the values of the pool that it takes."""

    form: type
    field: Field
    taken: tuple[Json, ...]

    @property
    def name(self) -> str:
        return f"{self.form.__name__}.{self.field.name}"


def read(field: Field, value: Json) -> Json:
    """A value as a route reads it, as plain JSON. No JSON number is infinite."""
    found = plain(field.kind.show(field.kind.normal(field.kind.parse(value))))
    json.dumps(found, allow_nan=False)
    return found


def plain(value: Json) -> Json:
    if isinstance(value, Raw):
        return float(bytes(value))
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    return {name: plain(member) for name, member in value.items()} if isinstance(value, Mapping) else value


def choices_of(field: Field) -> tuple[str, ...]:
    return tuple(field.kind.limits.get("enum", ()))


def known(form: type) -> dict[str, Known]:
    return {
        name: Known(
            field.name,
            field.old_name,
            partial(read, field),
            field.kind.is_absent,
            choices_of(field),
            known(field.kind.form) if field.kind.form else {},
        )
        for name, field in spellings_of(form).items()
    }


def subjects() -> Iterator[Subject]:
    forms = {route.form for component in CATALOG for route in component.routes.routes}
    for form in sorted(forms, key=lambda form: f"{form.__module__}.{form.__name__}"):
        for field in fields_of(form):
            taken = [value for value in (*REQUESTED, *choices_of(field)) if reads(known(form)[field.name], value)]
            yield Subject(form, field, tuple(taken))


SUBJECTS: Final = tuple(subjects())


def test_the_pool_has_different_values_for_every_field() -> None:
    def readings(subject: Subject) -> set[str]:
        return {json.dumps(read(subject.field, value), sort_keys=True) for value in subject.taken}

    lacking = {subject.name for subject in SUBJECTS if len(readings(subject)) < 2}
    assert lacking == ONE_VALUE


def value_of_a_rule(random: Random, subject: Subject) -> Json:
    """One that the field takes, another one, or a pattern that is cut out of one."""
    taken = [value for value in subject.taken if can_be_ruled(value)]
    share = 0.8 if subject.field.kind.form is None else 0.4  # the others are for its members
    value = random.choice(taken if random.random() < share else (*RULED, *STRUCTURES))
    if not isinstance(value, str) or random.random() < 0.5:
        return value
    start, end = sorted((random.randint(0, len(value)), random.randint(0, len(value))))
    inside = f"{value[:start]}*{value[end:]}"
    ways = [f"{value[:end]}*", f"*{value[start:]}", f"*{value[start:end]}*", "*", value.swapcase()]
    return random.choice([*ways, *ways, inside, f"*{inside}", f"{inside}*"])


def values_of_a_rule(random: Random, subject: Subject) -> list[Json]:
    return [value_of_a_rule(random, subject) for _ in range(random.choice((0, 1, 1, 1, 2, 3)))]


def name_in_a_rule(random: Random, subject: Subject) -> str:
    form = subject.field.kind.form
    if form is not None and random.random() < 0.5:
        return random.choice(fields_of(form)).name
    names = [subject.field.name, subject.field.old_name or subject.field.name, subject.field.name.upper(), "other"]
    return random.choices(names, (6, 3, 1, 1))[0]


def restrictions(random: Random, subject: Subject) -> Restrictions:
    def listed(rest: float) -> dict[str, list[Json]]:
        members = {name_in_a_rule(random, subject): values_of_a_rule(random, subject)}
        if random.random() < rest:
            members["*"] = values_of_a_rule(random, subject) if random.random() < 0.3 else []
        return members

    kinds = random.choice(("allowed", "allowed", "denied", "denied", "required", "all"))
    return Restrictions(
        required=[name_in_a_rule(random, subject)] if kinds in ("required", "all") else (),
        allowed=listed(0.3) if kinds in ("allowed", "all") else {},
        denied=listed(0.05) if kinds in ("denied", "all") else {},
    )


def body(random: Random, subject: Subject) -> dict[str, Json]:
    def value() -> Json:
        return random.choice(subject.taken if random.random() < 0.85 else REQUESTED)

    names = [subject.field.name, subject.field.old_name or subject.field.name, "other", subject.field.name.upper()]
    chosen = random.choices(names, (12, 6, 1, 1), k=random.choice((1, 1, 1, 1, 2)))
    return {name: value() for name in chosen}


def rule_of(meant: Restrictions) -> Rule:
    """The rule as a policy states it, or as a store has it from before values with an inner star were refused."""
    allowed = {name.lower(): tuple(values) for name, values in meant.allowed.items()}
    denied = {name.lower(): tuple(values) for name, values in meant.denied.items()}
    required = tuple(name.lower() for name in meant.required)
    rule = Rule("a", frozenset({"update"}), allowed, denied, required)
    block = {
        "capabilities": ["update"],
        "required_parameters": list(meant.required),
        "allowed_parameters": meant.allowed,
        "denied_parameters": meant.denied,
    }
    try:
        (parsed,) = parse("p", json.dumps({"path": {"a": block}})).rules
    except Refused:
        values = [value for listed in meant.allowed.values() for value in listed]
        assert any(isinstance(value, str) and "*" in value[1:-1] for value in values)
    else:
        assert parsed == rule
    return rule


@frozen
class Tally:
    pairs: int
    passed: int


def compare(seed: int, rules: int, requests: int) -> Tally:
    """Compare the decision with the oracle's, for so many rules about each field and requests under each."""
    random = Random(seed)
    pairs = passed = 0
    for subject in SUBJECTS:
        fields, oracle_fields = spellings_of(subject.form), known(subject.form)
        for _ in range(rules):
            meant = restrictions(random, subject)
            rule = rule_of(meant)
            for _ in range(requests):
                given = body(random, subject)
                as_json = {name: value if name in fields else plain(value) for name, value in given.items()}
                expected = passes(meant, as_json, oracle_fields)
                assert fit(rule, given, fields) is expected, f"{subject.name}: {meant} {given} should be {expected}"
                pairs += 1
                passed += expected
    return Tally(pairs, passed)


def test_a_request_passes_when_its_values_satisfy_the_rule() -> None:
    tally = compare(seed=1, rules=16, requests=10)
    assert 0.1 < tally.passed / tally.pairs < 0.9


@pytest.mark.long
def test_requests_pass_when_their_values_satisfy_the_rule_for_a_great_many() -> None:
    tally = compare(seed=2, rules=100, requests=40)
    assert tally.pairs > 300_000


def test_every_value_of_a_denial_denies_a_value_of_its_field() -> None:
    """A denial that no request can match would grant what its author meant to deny."""
    unmatched = []
    for subject in SUBJECTS:
        fields = spellings_of(subject.form)
        for value in (*RULED, *STRUCTURES):
            if not isinstance(value, str) or "*" not in value:
                rule = Rule("a", frozenset({"update"}), denied_parameters={subject.field.name: (value,)})
                requests = (*filter(partial(accepted, subject), (value, [value])), *subject.taken)
                if all(fit(rule, {subject.field.name: each}, fields) for each in requests):
                    unmatched.append((subject.name, value))
    assert unmatched == []


def accepted(subject: Subject, value: Json) -> bool:
    return reads(known(subject.form)[subject.field.name], value)
