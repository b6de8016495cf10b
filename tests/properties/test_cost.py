"""Twice the size of an input costs at most three times the work, wherever a request carries it.

A short run counts bytecodes, for some inputs of every place. A long run also measures CPU, which shows the work of what
is not written in Python: as a ratio within one run, for eight times the size.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
import pytest

from cloudid_core.auth_method import claims
from cloudid_core.catalog import CATALOG
from cloudid_core.errors import Refused
from cloudid_core.forms.fields import fields_of, parse
from cloudid_core.messages import Request
from cloudid_core.policies import Acl, document
from cloudid_core.provider import Rights
from cloudid_core.secrets_engine.ceiling import exceeded
from cloudid_core.secrets_engine.config import Config
from cloudid_core.testing.world import World
from cloudid_core.values import have_common
from cloudid_servers.http1.heads import Heads
from cloudid_servers.http1.wire import remote_address
from tests.engines import SecretsEngine, configured_engine
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS
from tests.logins import configure_logins
from tests.minting import new_caches, said
from tests.properties.work import (
    MOST,
    SHAPES,
    UNITS,
    Counted,
    Place,
    headers_read,
    places,
    text,
    values,
)
from tests.sampling import number_of

SIZE: Final = 1024
SOME: Final = 6
"""How many of the inputs of each place a short run tries."""

TIMES: Final = 8
MOST_CPU: Final = MOST**3
"""Three times the size is doubled."""

ENOUGH: Final = 0.005
"""Seconds of CPU: what costs less at its largest does not matter."""

TRIES: Final = 5
PARTS: Final = 8
PLACES: Final = tuple(places())

Run = Callable[[], object]


def some(name: str, every: list[tuple[str, str]], count: int) -> Iterator[tuple[str, str]]:
    """A few of all inputs, which differ from place to place."""
    start = number_of(name, len(every))
    for number in range(count):
        yield every[(start + number * 7919) % len(every)]


def inputs(place: Place, count: int) -> Iterator[tuple[str, str]]:
    """Units and shapes."""
    return some(place.name, [(unit, shape) for shape in place.shapes for unit in place.units], count)


def bytecodes(run: Run) -> int:
    with Counted() as counted:
        run()
    return counted.bytecodes


def cpu(run: Run) -> float:
    begun = time.thread_time()
    run()
    return time.thread_time() - begun


def costs_little_more(small: Run, large: Run) -> bool:
    """Whether eight times the size takes at most `MOST_CPU` times the CPU, as one of some tries shows."""
    return any(
        (most := cpu(large)) < ENOUGH or most < MOST_CPU * min(cpu(small) for _ in range(3)) for _ in range(TRIES)
    )


# Requests


def world() -> SecretsEngine:
    engine = configured_engine()
    configure_logins(engine)
    return engine


def handled(engine: SecretsEngine, request: Request) -> Run:
    return lambda: engine.perform(engine.service.handle(request))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_part_of_a_request_costs_more_than_its_size(part: int) -> None:
    engine = world()
    for place in PLACES[part::PARTS]:
        for unit, shape in inputs(place, SOME):
            small, large = (bytecodes(handled(engine, place.make(unit, shape, size))) for size in (SIZE, 2 * SIZE))
            assert large <= MOST * small, f"{place.name}: {small}, {large} bytecodes for {shape} of {unit!r}"


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_no_part_of_a_request_takes_more_cpu_than_its_size(part: int) -> None:
    engine = world()
    for place in PLACES[part::PARTS]:
        size = 512 * 1024 if len(place.shapes) > 1 else 15_000
        for unit, shape in inputs(place, 4 * SOME):
            small, large = (handled(engine, place.make(unit, shape, each)) for each in (size // TIMES, size))
            assert costs_little_more(small, large), f"{place.name}: {shape} of {unit!r}"


def test_every_field_of_every_route_is_filled() -> None:
    names = {place.name.rpartition(", ")[2] for place in PLACES}
    fields = {
        name
        for component in CATALOG
        for route in component.routes.routes
        for field in fields_of(route.form)
        for name in (field.name, field.old_name)
        if name
    }
    assert fields <= names
    assert {f"header {name}" for name in headers_read()} <= names
    assert {"x-vault-token", "x-service-deadline", "content-type", "x-forwarded-for", "accept"} <= headers_read()


# Policies: the writer of one chooses both its rules and the request


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


POLICIES: Final[dict[str, Callable[[int], dict[str, object]]]] = {
    "required parameters": lambda size: {"required_parameters": names(size)},
    "allowed parameters": lambda size: {"allowed_parameters": {name: [] for name in names(size)}},
    "denied parameters": lambda size: {"denied_parameters": {f"not-{name}": [] for name in names(size)}},
}
"""Keys of one rule, by what there is much of."""
JOINED: Final[dict[str, Callable[[str], dict[str, object]]]] = {
    "required parameters": lambda name: {"required_parameters": [f"{name}-{letter}" for letter in "abc"]},
    "allowed parameters": lambda name: {"allowed_parameters": {name: []}},
    "allowed values": lambda name: {"allowed_parameters": {"a": [name]}},
    "denied parameters": lambda name: {"denied_parameters": {name: []}},
}
"""One of very many rules for the same path, by what each of them adds."""


@pytest.mark.parametrize("name", POLICIES)
def test_no_rule_costs_more_than_its_size_and_that_of_the_request(name: str) -> None:
    def run(size: int) -> Run:
        rule = {"capabilities": ["update"], **POLICIES[name](size)}
        policy = document.parse("p", json.dumps({"path": {"p": rule}}))
        acl, parameters = World().perform(Acl.of([policy])), dict.fromkeys(names(size), 1)
        return lambda: acl.allows("update", "p", parameters)

    small, large = (bytecodes(run(size)) for size in (SIZE, 2 * SIZE))
    assert large <= MOST * small, f"{small}, {large} bytecodes"


@pytest.mark.parametrize("name", JOINED)
def test_many_rules_for_one_path_cost_no_more_than_their_number(name: str) -> None:
    def run(size: int) -> Run:
        policy = document.parse("p", json.dumps({"path": {"p": [JOINED[name](each) for each in names(size)]}}))
        return lambda: World().perform(Acl.of([policy]))

    assert costs_little_more(run(3000 // TIMES), run(3000))


def test_no_role_costs_more_than_its_size_and_that_of_the_ceiling() -> None:
    def run(size: int) -> Run:
        below = "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups"
        scopes = [f"{below}/allowed-{number}" for number in range(size)]
        ceiling = Config(**parse(Config, {"allowed_scopes": scopes, "allowed_role_definitions": scopes}).values)
        rights = Rights(assignments=tuple((f"{below}/other-{number}", f"{number}") for number in range(size)))
        return lambda: len(exceeded(ceiling, rights))

    small, large = (bytecodes(run(size)) for size in (SIZE // 8, SIZE // 4))
    assert large <= MOST * small, f"{small}, {large} bytecodes"


@pytest.mark.parametrize("between", ["a", "*"])
def test_no_action_of_a_role_definition_costs_more_than_its_size(between: str) -> None:
    """A definition has hundreds of them, and each issue compares all with the privileged ones."""

    def run(size: int) -> Run:
        first, second = (f"{text(end, size)}{between}" for end in ("a", "ab"))
        return lambda: have_common(first, second)

    small, large = (bytecodes(run(size)) for size in (SIZE // 8, SIZE // 4))
    assert large <= MOST * small, f"{small}, {large} bytecodes"


# Parsers

OF_OPERATORS: Final = {"settings"}
"""What no request carries: the library for TOML takes quadratic time for a key of many parts."""


def parser_inputs(name: str, target: Target) -> Iterator[Callable[[int], str | bytes]]:
    """Each of the parser's first inputs with a long run of a unit: alone, behind it, and inside it."""
    for seed in target.seeds[:8]:
        written = seed.decode("latin-1") if isinstance(seed, bytes) else seed
        middle = number_of(name + written[:50], len(written) + 1)
        for unit in UNITS:
            for start, end in (("", ""), (written, ""), (written[:middle], written[middle:])):
                yield partial(filled_with, unit, start, end, isinstance(seed, bytes))


def filled_with(unit: str, start: str, end: str, is_binary: bool, size: int) -> str | bytes:
    whole = start + text(unit, size) + end
    return whole.encode() if is_binary else whole


def read(target: Target, given: str | bytes) -> Run:
    def run() -> None:
        with suppress(*target.refusals):
            target.read(given)

    return run


def chosen(name: str, count: int) -> Iterator[Callable[[int], str | bytes]]:
    every = list(parser_inputs(name, TARGETS[name]))
    start = number_of(name, len(every))
    return (every[(start + number * 7919) % len(every)] for number in range(min(count, len(every))))


@pytest.mark.parametrize("name", TARGETS)
def test_no_parser_costs_more_than_the_size_of_its_input(name: str) -> None:
    target = TARGETS[name]
    for filled in chosen(name, 8 * SOME):
        small, large = (bytecodes(read(target, filled(size))) for size in (SIZE, 2 * SIZE))
        assert large <= MOST * max(small, 1000), f"{filled(60)!r}: {small}, {large}"


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TARGETS.keys() - OF_OPERATORS))
def test_no_parser_takes_more_cpu_than_the_size_of_its_input(name: str) -> None:
    target = TARGETS[name]
    for filled in chosen(name, 10_000):
        small, large = (read(target, filled(size)) for size in (2000, 2000 * TIMES))
        assert costs_little_more(small, large), f"{filled(60)!r}"


# Heads

ENDS: Final = ("", "a", "5")
"""What stands on both sides of a long run in the value of a header."""


def head(header: str, end: str, unit: str, size: int) -> Run:
    raw = f"GET /v1/a HTTP/1.1\r\nhost: a\r\n{header}: {end}{text(unit, size)}{end}\r\n\r\n".encode()

    def once() -> None:
        with suppress(Refused):
            Heads("http", kept=0).read(raw)

    return once


@pytest.mark.parametrize("header", sorted(headers_read()))
def test_no_header_costs_more_than_its_size(header: str) -> None:
    for unit, end in some(header, [(unit, end) for unit in UNITS for end in ENDS], 2 * SOME):
        small, large = (bytecodes(head(header, end, unit, size)) for size in (SIZE, 2 * SIZE))
        assert large <= MOST * small, f"{header}: {small}, {large} bytecodes for {unit!r} between {end!r}"


@pytest.mark.long
@pytest.mark.parametrize("header", sorted(headers_read()))
def test_no_header_takes_more_cpu_than_its_size(header: str) -> None:
    for unit in UNITS:
        for end in ENDS:
            small, large = (head(header, end, unit, size) for size in (2000, 2000 * TIMES))
            assert costs_little_more(small, large), f"{header}: {unit!r} between {end!r}"


# What a login and a proxy bring


def claim_names() -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(claims._Payload)]


@pytest.mark.parametrize("claim", claim_names())
def test_no_claim_costs_more_than_its_size(claim: str) -> None:
    def run(unit: str, shape: str, size: int) -> Run:
        payload = json.dumps({**said(), claim: dict(values(unit, size))[shape]}).encode()

        def once() -> None:
            with suppress(Exception):
                claims.read(payload, new_caches())

        return once

    for unit, shape in some(claim, [(unit, shape) for shape in SHAPES for unit in UNITS], 4 * SOME):
        small, large = (bytecodes(run(unit, shape, size)) for size in (SIZE, 2 * SIZE))
        assert large <= MOST * small, f"{claim}: {small}, {large} bytecodes for {shape} of {unit!r}"


@pytest.mark.parametrize("hop", ["10.0.0.1,", "10.0.0.1:80, ", "[::1]:80,", ",", "[", ":", " ", "192.0.2.1,10.0.0.1,"])
def test_no_forwarded_hop_costs_more_than_its_size(hop: str) -> None:
    def run(size: int) -> Run:
        headers = {"x-forwarded-for": text(hop, size)}
        return lambda: remote_address("10.0.0.1", headers, ("10.0.0.0/8", "::1/128"))

    assert bytecodes(run(2 * SIZE)) <= MOST * bytecodes(run(SIZE))


@pytest.fixture(scope="module", autouse=True)
def _() -> Iterator[None]:
    """What other tests have left costs the collector of garbage nothing here."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_a_quadratic_program_is_noticed() -> None:
    def quadratic(size: int) -> Run:
        return lambda: [copy for end in range(size) if (copy := ("a" * size)[:end]) is None]

    def linear(size: int) -> Run:
        return lambda: [number for number in range(size) if number is None]

    assert costs_little_more(linear(40_000), linear(40_000 * TIMES))
    assert not costs_little_more(quadratic(8000), quadratic(8000 * TIMES))
