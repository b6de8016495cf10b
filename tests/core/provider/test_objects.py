"""What all directory objects have in common."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.errors import ProviderProblem
from cloudid_core.provider.objects import Id, delete, find, find_by_id, key_address, literal, select, upsert

from .cloud import ARM, GRAPH, Reply, Setting, error, reply, unreachable

THING = f"{GRAPH}/v1.0/things/1"
KEY_PATH = "/v1.0/things(name='n')"


class Thing(msgspec.Struct):
    id: Id


def test_quotes_are_doubled() -> None:
    assert literal("O'Neil' or '1' eq '1") == "'O''Neil'' or ''1'' eq ''1'"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_a_key_stays_in_its_place(text: str) -> None:
    parts = urlsplit(key_address(Setting().client, "things", "name", text))
    assert f"{parts.scheme}://{parts.netloc}" == GRAPH
    assert (parts.query, parts.fragment) == ("", "")
    assert parts.path.count("/") == 2
    assert unquote(parts.path) == f"/v1.0/things(name={literal(text)})"


def test_a_document_that_is_not_there_is_none() -> None:
    setting = Setting()
    setting.cloud.script("GET /v1.0/things/1", error(404, "Request_ResourceNotFound"))
    assert setting.world.perform(find(setting.client, THING, Thing)) is None


@pytest.mark.parametrize("answer", [reply(404), error(403, "Authorization_RequestDenied"), error(400, "BadRequest")])
def test_any_other_error_is_no_absence(answer: Reply) -> None:
    """Neither is a 404 that names no code: it may be a proxy's."""
    setting = Setting()
    setting.cloud.script("GET /v1.0/things/1", answer)
    setting.cloud.script("DELETE /v1.0/things/1", answer)
    with pytest.raises(ProviderProblem):
        setting.world.perform(find(setting.client, THING, Thing))
    with pytest.raises(ProviderProblem):
        setting.world.perform(delete(setting.client, THING))


@pytest.mark.parametrize("text", ["", "..", "a/b", "a?b", "a\n", "x" * 65])
def test_an_id_that_has_no_place_in_a_url_is_nonsense(text: str) -> None:
    setting = Setting()
    setting.cloud.script("GET /v1.0/things/1", reply(200, {"id": text}))
    with pytest.raises(ProviderProblem) as caught:
        setting.world.perform(find(setting.client, THING, Thing))
    assert caught.value.code == "nonsense"
    assert setting.world.perform(find_by_id(setting.client, "things", text, Thing)) is None


def test_an_object_is_found_by_its_id() -> None:
    setting = Setting()
    setting.cloud.script("GET /v1.0/things/1", reply(200, {"id": "1"}))
    assert setting.world.perform(find_by_id(setting.client, "things", "1", Thing)) == Thing("1")


def test_a_list_is_filtered_and_read_to_its_end() -> None:
    setting = Setting()
    following = f"{GRAPH}/v1.0/things?$skiptoken=2"
    setting.cloud.script(
        "GET /v1.0/things",
        reply(200, {"value": [{"id": "1"}], "@odata.nextLink": following}),
        reply(200, {"value": [{"id": "2"}]}),
    )
    things = setting.world.perform(select(setting.client, "things", "a eq 'b&c'", Thing))
    assert [thing.id for thing in things] == ["1", "2"]
    first, second = setting.cloud.asked("/v1.0/things")
    assert dict(parse_qsl(urlsplit(first.url).query)) == {"$filter": "a eq 'b&c'"}
    assert second.url == following


def put(setting: Setting) -> Thing | None:
    return setting.world.perform(upsert(setting.client, "things", "name", "n", {"displayName": "d"}, Thing))


def test_an_upsert_makes_what_is_missing() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(201, {"id": "1"}))
    assert put(setting) == Thing("1")
    (request,) = setting.cloud.asked(KEY_PATH)
    assert request.headers["prefer"] == "create-if-missing"
    assert request.body == b'{"displayName":"d"}'


def test_an_upsert_reads_what_is_there() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", reply(204))
    setting.cloud.script(f"GET {KEY_PATH}", reply(200, {"id": "1"}))
    assert put(setting) == Thing("1")


def test_an_upsert_whose_answer_was_lost_is_repeated_until_the_object_shows() -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", unreachable(), reply(204))
    setting.cloud.script(f"GET {KEY_PATH}", error(404, "Request_ResourceNotFound"), reply(200, {"id": "1"}))
    assert put(setting) == Thing("1")


@pytest.mark.parametrize(
    "answer",
    [
        error(404, "Request_ResourceNotFound"),
        error(400, "BadRequest"),
        error(400, "Request_BadRequest"),
        error(400, "Request_UnsupportedQuery"),
        error(405, "MethodNotAllowed"),
        reply(501),
    ],
)
def test_an_environment_without_upserts_is_noticed(answer: Reply) -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", answer)
    assert put(setting) is None


@pytest.mark.parametrize("answer", [error(403, "Authorization_RequestDenied"), error(400, "Directory_QuotaExceeded")])
def test_a_refused_upsert_is_a_problem(answer: Reply) -> None:
    setting = Setting()
    setting.cloud.script(f"PATCH {KEY_PATH}", answer)
    with pytest.raises(ProviderProblem):
        put(setting)


def test_a_deletion_waits_for_other_changes_of_the_object() -> None:
    setting = Setting()
    setting.cloud.script("DELETE /v1.0/things/1", error(409, "Directory_ConcurrencyViolation"), reply(204))
    assert setting.world.perform(delete(setting.client, THING))


@pytest.mark.parametrize("answer, removed", [(reply(204), True), (error(404, "Request_ResourceNotFound"), False)])
def test_deletion_tells_whether_there_was_something(answer: Reply, removed: bool) -> None:
    setting = Setting()
    setting.cloud.script("DELETE /v1.0/things/1", answer)
    assert setting.world.perform(delete(setting.client, THING)) is removed
    assert all(not request.url.startswith(ARM) for request in setting.cloud.requests)
