"""The parsers that are fuzzed, by name, each with what has to hold for whatever it is given."""

from __future__ import annotations

import json
import math
import tomllib
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from ipaddress import ip_network
from typing import Any, Final

import h11
import msgspec
from cronsim import CronSim, CronSimError

from cloudid_core.auth_method import claims, jws
from cloudid_core.caches import Bounded
from cloudid_core.context.keyring import KEYRING_BYTES, make_keyring
from cloudid_core.dispatch.body_limit import UNASKED
from cloudid_core.effects import HttpResponse
from cloudid_core.errors import PlatformTokenUnavailable, ProviderProblem, Refused
from cloudid_core.forms import parse
from cloudid_core.issuer.facts import FACTS, RESERVED, TEMPLATE, claims_of
from cloudid_core.messages import Request
from cloudid_core.messages.request import (
    MERGE_PATCH,
    deadline_seconds,
    parse_body,
    token_in,
    wrap_ttl_in,
)
from cloudid_core.policies import document, hcl
from cloudid_core.provider import assignments, compute, discovery, oauth, responses
from cloudid_core.provider.groups import member_groups_of
from cloudid_core.provider.retry import retry_after
from cloudid_core.routing.routes import PageForm
from cloudid_core.secrets_engine.grants import GROUP_GRANTS, ROLE_GRANTS
from cloudid_core.settings import Settings
from cloudid_core.tokens import batch, encoding
from cloudid_core.values import Secret, duration, guid_as_written, json_text, listing, network, resource_id, rfc3339
from cloudid_core.values.schedule import Schedule
from cloudid_servers.audit.verify import verify
from cloudid_servers.http1.chunks import Chunks
from cloudid_servers.http1.heads import Heads
from cloudid_servers.http1.reader import Reader
from cloudid_servers.machine import platform_identity
from cloudid_servers.settings.settings import SettingsError, read_settings
from tests.core.policies.test_hcl import in_the_second_version, read_by_the_library
from tests.core.provider import test_compute as machines
from tests.core.provider.cloud import TENANT, Setting
from tests.core.tokens.test_batch import RING, SEALED, TOKEN
from tests.exchanges import read
from tests.minting import GROUP, HEADER, SUBSCRIPTION, VM, new_caches, said
from tests.servers.audit.test_verify import DEVICE, log
from tests.servers.test_reader import BODY_LIMIT, FRAGMENTS, SHORT_STREAMS
from tests.servers.test_reader import read as learn

from .target import REFUSED, Target

SETTINGS: Final = Settings(master_key=Secret("00" * 32))


# HTTP


def requests_in(stream: bytes) -> list[object]:
    return learn(Reader(Heads("http", kept=0), UNASKED), [stream])


_remembering: Final = Heads("http")
"""Remembers the verdicts of all inputs so far, as a server does."""


def are_read_alike_in_pieces(stream: bytes, learnt: object) -> None:
    """Neither the pieces in which bytes come nor the memory of heads change what is read; and h11 agrees."""
    assert learn(Reader(_remembering, UNASKED), [stream]) == learnt
    if len(stream) < 1024:
        pieces = (stream[place : place + 1] for place in range(len(stream)))
        assert learn(Reader(Heads("http"), UNASKED), pieces) == learnt
    _is_read_by_h11(stream, learnt)


def _is_read_by_h11(stream: bytes, learnt: Any) -> None:
    """The first request of a stream is one for h11 too, with the same method and body."""
    first = next((each for each in learnt if isinstance(each, tuple) and isinstance(each[1], bytes)), None)
    if first is None or first is not learnt[0]:
        return
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=len(stream) + 1)
    parser.receive_data(stream.lstrip(b"\r\n"))
    request = parser.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method.decode(), _body(parser)) == (first[0].method, first[1])


def _body(parser: h11.Connection) -> bytes:
    body = b""
    while not isinstance(event := parser.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data), event
        body += event.data
    return body


def chunks_in(stream: bytes) -> bytes | None:
    return Chunks(BODY_LIMIT).take(bytearray(stream))


def chunks_are_h11s(stream: bytes, body: object) -> None:
    if isinstance(body, bytes):
        parser = h11.Connection(h11.SERVER)
        parser.receive_data(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + stream)
        parser.next_event()
        assert _body(parser) == body


def parsed_request(raw: bytes) -> object:
    """Method, target, content type and body, one on each line."""
    method, target, media_type, wait, body = [*raw.split(b"\n", 4), b"", b"", b"", b"", b""][:5]
    headers = {"content-type": media_type.decode("latin-1")}
    for name in ("x-vault-token", "x-vault-wrap-ttl", "x-service-deadline", "authorization"):
        headers[name] = wait.decode("latin-1")
    for seconds in (lambda: deadline_seconds(headers, 90.0), lambda: wrap_ttl_in(headers, 600)):
        with suppress(Refused):
            assert 0 <= seconds() <= 600
    assert len(token_in(headers)) <= len(wait)
    request = Request(
        method.decode("latin-1"), target.decode("latin-1"), {"content-type": headers["content-type"]}, body
    )
    return read(request, SETTINGS)


# JSON


def json_value(raw: bytes) -> Any:
    return _plain(json_text.decode(raw))


def _plain(value: Any) -> Any:
    """A value whose numbers are computed."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return float(bytes(value)) if isinstance(value, msgspec.Raw) else value


def is_the_json_of_the_library(raw: bytes, value: object) -> None:
    if value is not REFUSED:
        assert same(value, json.loads(raw, parse_constant=_no_constant))


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} was read")


def same(one: Any, other: Any) -> bool:
    """Equal, types included."""
    return repr(one) == repr(other)


def is_a_bounded_object(raw: bytes, body: Any) -> None:
    if body is not REFUSED:
        assert isinstance(body, dict)
        assert not json_text.is_deeper(body, json_text.DEEPEST)


# Policies


def hcl_is_the_librarys(text: str, found: object) -> None:
    if found is not REFUSED and (second := in_the_second_version(text)) is not None:
        assert found == read_by_the_library(second)


def policy(text: str) -> document.Policy:
    return document.parse("p", text)


def rules_are_bounded(text: str, found: Any) -> None:
    """No capability is made up, `deny` stands alone, and the text that is kept states the same rules."""
    if isinstance(found, document.Policy):
        for rule in found.rules:
            assert rule.capabilities <= document.CAPABILITIES.keys()
            assert "deny" not in rule.capabilities or rule.capabilities == document.DENY
        assert document.parse("p", found.text).rules == found.rules


# Login tokens

CLAIMS: Final = json.dumps(said()).encode()


def key_id(raw: bytes) -> str:
    header = urlsafe_b64encode(raw).rstrip(b"=")
    return jws.decode(header + b".e30", b"e30", b"", Bounded(1)).key_id


def header_is_the_librarys(raw: bytes, found: object) -> None:
    if found is not REFUSED:
        header = json.loads(raw)
        assert header["alg"] == jws.ALGORITHM
        assert found == header.get("kid", header.get("x5t"))
        assert "crit" not in header


def parts(token: str) -> tuple[bytes, bytes, bytes]:
    signed, signature, digest = jws.split(token)
    taken = jws.decode(signed, signature, digest, Bounded(1))
    return signed.partition(b".")[0], taken._payload, taken._signature


def has_one_text(token: str, found: Any) -> None:
    """What was taken apart makes the same text again: no two texts are one token."""
    if found is not REFUSED:
        header, payload, signature = found
        encoded = [urlsafe_b64encode(each).rstrip(b"=") for each in (payload, signature)]
        assert b".".join([header, *encoded]) == token.encode()


_warm: Final = new_caches()


def claims_in(raw: bytes) -> claims.Claims:
    return claims.read(raw, new_caches())


def claims_are_the_librarys(raw: bytes, found: Any) -> None:
    """Who it is about is what the payload says, and what is remembered of others changes nothing."""
    again: object = REFUSED
    with suppress(Refused):
        again = claims.read(raw, _warm)
    assert found == again
    if isinstance(found, claims.Claims):
        plain = json.loads(raw.decode(errors="replace"))  # what is in claims of no meaning is not looked at
        assert (found.issuer, found.expires_at) == (plain["iss"], plain["exp"])
        assert (found.tenant_id, found.principal_id) == (plain["tid"].lower(), plain["oid"].lower())
        assert list(found.audiences) == (plain["aud"] if isinstance(plain["aud"], list) else [plain["aud"]])
        assert found.groups == {group.lower() for group in plain.get("groups") or ()}
        if found.machine is not None:
            named = plain.get("xms_az_rid")
            assert found.machine.written == (plain["xms_mirid"] if named is None else named)
            assert found.machine.resource_id.folded == found.machine.folded


# Texts with a grammar


def round_trip(read: Callable[[Any], object]) -> Callable[[Any, Any], None]:
    """What was read is read again as itself."""

    def holds(given: object, found: object) -> None:
        if found is not REFUSED:
            assert read(found) == found

    return holds


def id_has_one_form(text: str, found: Any) -> None:
    if isinstance(found, resource_id.ResourceId):
        assert "/".join(found._segments()).lower() == text.lower()
        assert found.folded == resource_id.folded(text) == resource_id.parse(found.folded).folded
        assert set(found.path) <= set("/%-._~") | set(map(chr, range(128))) - set("?# \\")
        head, _, name = text.rpartition("/")
        lower = resource_id.folded(head + "/x")[:-1]
        assert lower + resource_id.folded_name(name, lower) == found.folded


def scope_is_no_other_path(text: str, found: Any) -> None:
    if isinstance(found, str):
        assert found == (text.removesuffix("/") or "/")
        assert assignments.scope(found) == found
        assert not {"", ".", ".."} & set(found.split("/")[1:]) or found == "/"
        assert not set(found) & set("?#%\\")


def definition_is_as_given(text: str, found: Any) -> None:
    if isinstance(found, str):
        assert found == text
        assert not set(found) & set("?#%\\")


UNITS: Final[Mapping[str, int | Fraction]] = {
    "h": 3600,
    "ms": Fraction(1, 1000),
    "us": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
    "m": 60,
    "s": 1,
}


def length_is_the_sum(text: str, found: Any) -> None:
    """Computed once more in fractions."""
    if found is REFUSED or not text:
        assert found in (REFUSED, 0)
        return
    total, number, rest = Fraction(0), "", text.removeprefix("+").removeprefix("-")
    if rest.rstrip("d").isdigit():
        total, rest = Fraction(rest.rstrip("d")) * (86_400 if rest.endswith("d") else 1), ""
    rest = rest.replace("µ", "u").replace("μ", "u")
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        unit = next(unit for unit in ("ms", "us", "ns", "h", "m", "s") if rest[len(number) :].startswith(unit))
        total += Fraction(number.removesuffix(".") or "0") * UNITS[unit]
        rest = rest[len(number) + len(unit) :]
    assert found == math.floor(total)
    assert duration.seconds(duration.show(found)) == found


def network_is_the_librarys(text: str, found: Any) -> None:
    if isinstance(found, str):
        assert network.network(found) == found
        wide = ip_network(text, strict=False)
        mapped = getattr(wide.network_address, "ipv4_mapped", None)
        assert found == (f"{mapped}/{wide.prefixlen - 96}" if mapped and wide.prefixlen >= 96 else str(wide))
        assert network.contains((found,), found.partition("/")[0])


START: Final = datetime(2026, 11, 22, 3, 4, 5, tzinfo=UTC)


def due(text: str) -> tuple[float, float, float]:
    schedule = Schedule.parse(text)
    first = schedule.next_after(START.timestamp())
    return first, (second := schedule.next_after(first)), schedule.next_after(second)


def is_due_by_the_library(text: str, found: Any) -> None:
    """The library reads more: it is asked about what was accepted. It reads `5-5/2` as `5/2`."""
    if found is REFUSED or "/" in text:
        return
    with suppress(CronSimError):
        oracle = CronSim(text, START)
        assert [next(oracle).timestamp() for _ in found] == list(found)


def time_is_shown_alike(text: str, found: Any) -> None:
    if isinstance(found, float):
        assert abs(found - datetime.fromisoformat(text.upper()).timestamp()) < 1e-3
        if 0 <= found < 250_000_000_000:
            assert abs(rfc3339.parse(rfc3339.show(found)) - found) < 1e-2


def elements_are_trimmed(text: str, found: Any) -> None:
    assert found is REFUSED or found == tuple(each.strip() for each in text.strip().split(",")) or not text.strip()


# Tokens of ours

OTHER_RING: Final = make_keyring(0.0, bytes(KEYRING_BYTES))
KEYS: Final = RING.token_keys_at(0.0)


def token_read(text: str) -> tuple[object, ...]:
    return encoding.id_of(text, KEYS), encoding.id_of_accessor(text, KEYS), batch.unseal(text, RING)


def nothing_else_is_a_token(text: str, found: Any) -> None:
    token_id, behind, unsealed = found
    assert token_id is None or encoding.is_id(token_id)
    assert behind is None or encoding.accessor_of(behind, KEYS) == text
    assert unsealed == (TOKEN if text == SEALED else None)
    assert batch.unseal(text, OTHER_RING) is None


# Files


def audited(raw: bytes) -> Any:
    return verify([("audit.log", raw.splitlines(keepends=True))], key=DEVICE.public_key)


GENUINE: Final = [b"".join(log()), b"".join(log(2))]


def only_what_was_written_is_whole(raw: bytes, report: Any) -> None:
    """A log without a problem has the lines that were written, in their order, and perhaps noted ones."""
    assert report.lines + len(report.notes) <= len(raw.splitlines()) + 1
    if not report.problems:
        assert any(_is_whole(raw.splitlines(), genuine.splitlines()) for genuine in GENUINE)


def _is_whole(lines: list[bytes], genuine: list[bytes]) -> bool:
    return [line for line in lines if line in genuine] == genuine


def facts_change_only_values(template: str, found: object) -> None:
    """Whatever is proven, the claims have the same names, and none is about who it is."""
    if found is REFUSED or not template:
        return
    plain, hostile = (claims_of(template, dict.fromkeys(FACTS, value)) for value in ("x", '","sub":"{{oid}}\\'))
    assert plain.keys() == hostile.keys()
    assert RESERVED.isdisjoint(plain)


def settings_of(text: str) -> object:
    return read_settings(tomllib.loads(text))


# Answers of the provider


def forms_of(*modules: Any) -> Iterable[type[msgspec.Struct]]:
    for module in modules:
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, msgspec.Struct) and each.__module__ == module.__name__:
                yield each


FORMS: Final = [*forms_of(compute, discovery, oauth, responses, assignments)]


def answers(raw: bytes) -> list[object]:
    """What every program makes of an answer: a value or a problem of the provider's."""
    found: list[object] = []
    response = HttpResponse(200, {"retry-after": raw[:40].decode("latin-1")}, raw)
    for form in FORMS:
        with suppress(ProviderProblem):
            found.append(responses.read(response, form))
    found.append(responses.problem_of(response, 0.0))
    found.append(retry_after(response.headers, 0.0))
    found.append(responses.unverified_claims(Secret(raw.decode("latin-1")), dict[str, Any]))
    return found


def programs_take_it(raw: bytes, _: object) -> None:
    """The programs that ask answer it, or refuse it by a problem that says nothing of it."""
    for status in (200, 404, 400):
        setting = Setting()
        for path in (machines.VM, f"/v1.0/servicePrincipals/{TENANT}/getMemberGroups", f"/{TENANT}/discovery/keys"):
            for method in ("GET", "POST"):
                setting.cloud.script(f"{method} {path}", HttpResponse(status, {}, raw))
        for program in (
            compute.find_machine(setting.client, resource_id.parse(machines.VM)),
            compute.machines_page(setting.client, f"https://arm.test{machines.VM}"),
            member_groups_of(setting.client, TENANT),
        ):
            with suppress(ProviderProblem, Refused):
                setting.world.perform(program)


MACHINE: Final = json.dumps(
    {
        "id": machines.VM,
        "location": "West US 2",
        "identity": {"principalId": "P1", "userAssignedIdentities": {VM: {"principalId": "P2"}}},
        "properties": {"virtualMachineScaleSet": {"id": machines.SET}},
    }
).encode()
KEY: Final = b'{"keys":[{"kty":"RSA","kid":"k","n":"%s","e":"AQAB","use":"sig"}]}' % b64encode(b"\xc1" * 256)
ROLE: Final = f'[{{"role_name":"Reader","scope":"/subscriptions/{SUBSCRIPTION}"}}]'
DEFINITION: Final = f"/providers/Microsoft.Authorization/roleDefinitions/{GROUP}"
RULE: Final = (
    'path "secret/+/team/*" {\n  capabilities = ["create", "read"] # both\n  allowed_parameters = {"a" = [1]}\n}\n'
)

TARGETS: Final[Mapping[str, Target]] = {
    "requests": Target(requests_in, tuple(SHORT_STREAMS), are_read_alike_in_pieces),
    "heads": Target(
        lambda raw: Heads("http", kept=0).read(raw),
        (b"GET /v1/a HTTP/1.1\r\nHost: a\r\n\r\n", *(b"GET / HTTP/1.1\r\n" + each + b"\r\n" for each in FRAGMENTS)),
        refusals=(Refused,),
    ),
    "chunks": Target(
        chunks_in,
        (b"3\r\nabc\r\n0\r\n\r\n", b"003;a=b\r\nabc\r\n0\r\nx: 1\r\n\r\n"),
        chunks_are_h11s,
        (Refused,),
    ),
    "parsed requests": Target(
        parsed_request,
        (
            b'POST\n/v1/auth/cloud/login\napplication/json\n5m\n{"role":"a"}',
            b"GET\n/v1/sys/policies/acl?list=true&after=a&limit=3\n\n2.5\n",
            b"PATCH\n/v1/a%20b/%C3%A4\n" + MERGE_PATCH.encode() + b"\nBearer cs.a\n{}",
        ),
        refusals=(Refused,),
    ),
    "json": Target(
        json_value,
        (b'{"a":[1,-2.5e3,"\\u00e4\\ud83d\\ude00",null,true,{}]}', b'{"a":1,"a":2}', b"[" * 33 + b"]" * 33),
        is_the_json_of_the_library,
    ),
    "bodies": Target(
        lambda raw: parse_body(raw, 4096), (b'{"role":"a","jwt":"b"}', b"null", b""), is_a_bounded_object, (Refused,)
    ),
    "hcl": Target(
        hcl.parse,
        (RULE, 'a = {"x" = [1, "y", null], z: true}', 'name = "n" /* c */', 'path  # both\n"a" { b = ["c"] }'),
        hcl_is_the_librarys,
        (Refused,),
    ),
    "policies": Target(
        policy,
        (
            RULE,
            b64encode(RULE.encode()).decode(),
            '{"path":{"a":{"capabilities":["deny"]},"b":{"policy":"write","min_wrapping_ttl":"1m"}}}',
        ),
        rules_are_bounded,
        (Refused,),
    ),
    "headers of login tokens": Target(
        key_id, (json.dumps(HEADER).encode(), b'{"alg":"RS256","x5t":"a"}'), header_is_the_librarys, (Refused,)
    ),
    "login tokens": Target(parts, ("eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.e30.c2ln",), has_one_text, (Refused,)),
    "claims": Target(
        claims_in,
        (
            CLAIMS,
            CLAIMS.replace(b"virtualMachines", b"VIRTUALMACHINESCALESETS"),
            CLAIMS.replace(b'"aud": ', b'"aud":['),
        ),
        claims_are_the_librarys,
        (Refused,),
    ),
    "templates": Target(
        TEMPLATE.parse,
        ('{"a": {{oid}}, "b": [{{vm_name}}, 1.5]}', '{"a": "\\{{oid}}, "b": 1}', b64encode(b"{}").decode()),
        facts_change_only_values,
    ),
    "resource ids": Target(resource_id.parse, (VM, machines.SET), id_has_one_form),
    "scopes": Target(
        assignments.scope,
        ("/", f"/subscriptions/{SUBSCRIPTION}/", VM, "/providers/Microsoft.Management/managementGroups/m"),
        scope_is_no_other_path,
    ),
    "role definition ids": Target(
        assignments.definition_id, (DEFINITION, f"/subscriptions/{SUBSCRIPTION}{DEFINITION}"), definition_is_as_given
    ),
    "guids": Target(guid_as_written, (TENANT,), round_trip(guid_as_written)),
    "durations": Target(duration.seconds, ("90m", "1h30m", "182d", "1.5s", "-1s", "10µs", "7"), length_is_the_sum),
    "networks": Target(
        network.network, ("10.1.2.3/8", "2001:db8::1/64", "::ffff:192.0.2.1", "1.2.3.4"), network_is_the_librarys
    ),
    "schedules": Target(
        due,
        ("*/15 8-18 1,15 jan-mar mon", "0 0 29 2 *", "5-5/2 * * * 7"),
        is_due_by_the_library,
        calls=100_000,  # it looks 41 years ahead
    ),
    "times": Target(
        rfc3339.parse, ("2026-11-21T03:20:47Z", "2026-02-30t23:59:59.123456789-12:30"), time_is_shown_alike
    ),
    "lists": Target(listing.comma_list, ("a, b,,c", " "), elements_are_trimmed),
    "azure_roles": Target(
        ROLE_GRANTS.parse, (ROLE, "", "[]"), round_trip(lambda found: ROLE_GRANTS.parse(ROLE_GRANTS.show(found)))
    ),
    "azure_groups": Target(
        GROUP_GRANTS.parse,
        (f'[{{"object_id":"{GROUP}"}}]', '[{"group_name":"a"}]'),
        round_trip(lambda found: GROUP_GRANTS.parse(GROUP_GRANTS.show(found))),
    ),
    "tokens": Target(
        token_read, (SEALED, f"cs.{'0a' * 16}{'A' * 32}", "chosen", "0a" * 16), nothing_else_is_a_token, ()
    ),
    "audit logs": Target(audited, tuple(GENUINE), only_what_was_written_is_whole, ()),
    "settings": Target(
        settings_of,
        (
            '[server]\nlisten = "127.0.0.1:8200"\n[service]\nmax_lease_ttl = "1h"\n',
            '[audit.a]\ntype = "file"\npath = "a"\n',
            '[clouds.own]\nlogin = "https://login.test"\n',
        ),
        refusals=(ValueError, SettingsError),
    ),
    "pages of lists": Target(
        lambda raw: PageForm(**parse(PageForm, parse_body(raw, 4096)).values),
        (b'{"after":"a","limit":"10"}', b'{"limit":-1}'),
        refusals=(Refused,),
    ),
    "answers of the platform": Target(
        lambda raw: platform_identity.read(HttpResponse(200, {}, raw)),
        (b'{"access_token":"t","expires_on":"1700000000"}', b'{"access_token":"t","expires_on":1}'),
        refusals=(PlatformTokenUnavailable,),
    ),
    "answers of the provider": Target(
        answers,
        (
            MACHINE,
            b'{"value":[' + MACHINE + b'],"nextLink":"https://arm.test/a"}',
            KEY,
            b'{"error":{"code":"AuthorizationFailed"}}',
            b'{"token_type":"Bearer","expires_in":"1","access_token":"a"}',
        ),
        programs_take_it,
        (),
        calls=10_000,  # each is read in every form
    ),
}
