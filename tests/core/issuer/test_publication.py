"""Publication of the issuers' documents: no key signs before others can read it, and nothing older takes its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jwt
import msgspec
import pytest

from cloudid_core.context import Job, queue
from cloudid_core.credentials import ISSUERS, PLUGINS, Issuer, find_signing_keys
from cloudid_core.deadline import Deadline
from cloudid_core.effects import Document, ReadDocument
from cloudid_core.errors import CloudidError, Conflict, PublicationFailed, Refused
from cloudid_core.events import PublishedDocumentChanged
from cloudid_core.issuer.publication import PAUSE, publish
from cloudid_core.rotation import publication_key
from cloudid_core.store import keys
from cloudid_core.testing import Crashed, Fault
from cloudid_core.testing.faults import TROUBLES
from tests.installation import Installation
from tests.tokens import identity_token

DAY, HOUR = 86_400, 3600
PLACE = "https://documents.test"
EACH = pytest.mark.parametrize("issuer", ISSUERS, ids=[issuer.ref for issuer in ISSUERS])


class Published(Installation):
    """An installation whose host publishes documents, and can be kept from that."""

    before_write: Callable[[], None] | None = None

    async def write_document(self, path: str, body: bytes, replaces: Document | None) -> None:
        if self.before_write is not None:
            self.before_write()
        await super().write_document(path, body, replaces)

    def break_down(self) -> None:
        def fail() -> None:
            raise PublicationFailed("PUT was answered with status 500")

        self.before_write = fail

    def mend(self) -> None:
        self.before_write = None

    def published(self, issuer: Issuer = PLUGINS) -> list[str]:
        document = self.documents.get(f"{issuer.path[1:]}/.well-known/keys")
        return [key["kid"] for key in msgspec.json.decode(document.body)["keys"]] if document else []

    def own(self, issuer: Issuer = PLUGINS) -> list[str]:
        return [key["kid"] for key in self.must("GET", f"{issuer.path[4:]}/.well-known/keys").body["keys"]]

    def signs(self) -> str:
        kid: str = jwt.get_unverified_header(identity_token(self))["kid"]
        return kid

    def problems(self) -> list[str]:
        self.perform(self.service.upkeep())
        details = self.must("GET", "sys/health").body.get("problem_details", [])
        return [each["text"] for each in details if each["code"] == "issuer_unpublished"]

    def told(self) -> list[str]:
        return [event.document for event in self.events if isinstance(event, PublishedDocumentChanged)]

    def pass_days(self, count: int) -> None:
        for _ in range(count * 24):
            self.advance(HOUR)
            for _ in range(3):  # the work of a round may be in the way of other work of the round
                self.tick()


def new_world(**settings: Any) -> Published:
    return Published(**{"publishes_to": PLACE, **settings})


@EACH
def test_the_documents_are_those_that_the_service_answers(issuer: Issuer) -> None:
    world = new_world()
    world.tick()
    for name in ("openid-configuration", "keys"):
        path = f"{issuer.path}/.well-known/{name}"
        assert world.documents[path[1:]].body == msgspec.json.encode(world.must("GET", path[4:]).body)


def test_no_key_signs_before_it_is_published() -> None:
    world = new_world()
    with pytest.raises(Refused, match="published"):
        identity_token(world)
    world.tick()
    assert world.signs() == world.published()[0]


def test_while_nothing_can_be_written_the_old_key_signs_and_health_says_why() -> None:
    world = new_world()
    world.tick()
    (first,) = world.published()
    world.break_down()
    world.pass_days(5)
    assert world.signs() == first
    assert world.published() == [first]
    assert world.own()[0] == first
    assert len(world.own()) == 2
    told = world.problems()
    assert len(told) == len(ISSUERS)
    assert "status 500" in told[0]
    world.mend()
    world.advance(PAUSE)
    world.tick()
    assert world.published() == world.own()
    assert world.signs() == first
    world.advance(HOUR)
    assert world.signs() == world.own()[1]
    assert world.problems() == []


def test_keys_come_and_go_and_each_is_published_before_it_signs() -> None:
    world = new_world()
    world.tick()
    signed = set()
    for _ in range(6):
        world.pass_days(1)
        assert world.published() == world.own()
        assert len(world.due(queue.PUBLICATION)) == len(ISSUERS)
        signed.add(world.signs())
    assert len(signed) > 3
    assert len(world.own()) == 4
    assert world.told() == []


def test_a_key_that_an_operator_asks_for_is_published_at_once() -> None:
    world = new_world()
    world.tick()
    world.must("POST", "sys/rotate/signing-keys")
    world.tick()
    assert world.published() == world.own()
    assert len(world.own()) == 2


def test_what_somebody_else_removed_or_changed_is_put_back() -> None:
    world = new_world()
    world.tick()
    right = dict(world.documents)
    path = f"{PLUGINS.path[1:]}/.well-known/keys"
    for wrong in (None, Document(b"{}", "wrong")):
        del world.documents[path]
        if wrong is not None:
            world.documents[path] = wrong
        world.advance(PAUSE)
        world.tick()
        assert world.documents[path].body == right[path].body
    assert world.told() == [path, path]


def test_what_is_read_back_has_to_be_what_was_written() -> None:
    world = new_world()
    world.documents = Forgetful()
    world.tick()
    assert "the published document differs from what was written" in world.problems()[0]
    with pytest.raises(Refused, match="published"):
        identity_token(world)


class Forgetful(dict[str, Document]):
    """A place that takes everything and keeps nothing."""

    def __setitem__(self, path: str, document: Document) -> None:
        pass


def job_of(world: Published) -> Job:
    """The publication as the leader of now would do it, with what is due now."""
    found = world.perform(find_signing_keys(world.context.records, PLUGINS))
    assert found is not None
    return Job(
        context=world.context,
        key=publication_key(PLUGINS, found.record),
        mount_id="identity",
        ref=PLUGINS.ref,
        now=world.clock,
        deadline=Deadline(world.clock + HOUR),
        fence={keys.LEADER_TERM: world.store.read(keys.LEADER_TERM).version},  # type: ignore[union-attr]
    )


def test_a_node_that_no_longer_leads_writes_nothing() -> None:
    world = new_world()
    world.tick()
    job = job_of(world)
    world.perform(world.open_node().tick())  # it takes over
    world.documents.clear()
    with pytest.raises(Conflict):
        world.perform(publish(job))
    assert world.documents == {}


def test_an_older_document_never_takes_the_place_of_a_newer_one() -> None:
    """The old leader has made sure that it leads; before its document arrives, another node has written a newer one."""
    world = new_world()
    world.tick()
    world.must("POST", "sys/rotate/signing-keys")
    job = job_of(world)

    def take_over() -> None:
        world.mend()
        world.store.commit({}, {keys.LEADER_TERM: b"another"}, ())
        path = f"{PLUGINS.path[1:]}/.well-known/keys"
        world.documents[path] = Document(b'{"keys":[{"kid":"newer"}]}', "newer")

    world.before_write = take_over
    with pytest.raises(Conflict):
        world.perform(publish(job))
    assert world.published() == ["newer"]


def test_keys_that_came_meanwhile_are_not_forgotten() -> None:
    world = new_world()
    world.tick()
    world.must("POST", "sys/rotate/signing-keys")

    def another_key() -> None:
        world.mend()
        world.must("POST", "sys/rotate/signing-keys")

    world.before_write = another_key
    world.tick()
    world.advance(10)
    world.tick()
    assert len(world.own()) == 3
    assert world.published() == world.own()


def test_a_store_from_before_is_published_when_it_is_opened_and_no_more_when_that_is_over() -> None:
    world = new_world(publishes_to="")
    world.tick()
    assert world.documents == {}
    kid = world.signs()
    world.restart(publishes_to=PLACE)
    world.tick()
    assert world.published() == [kid]
    assert world.signs() == kid
    world.restart(publishes_to="https://elsewhere.test")
    with pytest.raises(Refused):
        identity_token(world)
    world.tick()
    assert world.signs() == kid
    world.restart(publishes_to="")
    assert world.signs() == kid
    world.advance(PAUSE)
    world.tick()
    assert world.due(queue.PUBLICATION) == []


def test_without_a_public_address_there_is_nothing_to_publish_and_health_says_so() -> None:
    world = new_world(issuer="")
    world.tick()
    assert world.documents == {}
    assert '"issuer" is not set' in world.problems()[0]


def test_whatever_goes_wrong_once_in_the_end_all_is_published() -> None:
    """Each fault at each effect of the first publication and the next."""
    original = new_world()
    original.tick()
    original.must("POST", "sys/rotate/signing-keys")
    whole = original.copy()
    start = len(whole.trace)
    whole.tick()
    for at, (_, effect) in enumerate(whole.trace[start:], start):
        for kind in TROUBLES.get(type(effect), {}):
            world = original.copy()
            world.inject(Fault(at, kind))
            for _ in range(4):
                tick_or_restart(world)
                world.advance(10)
            assert world.published() == world.own(), (at, kind, effect)
            assert len(world.own()) == 2
            assert world.signs()


def tick_or_restart(world: Published) -> None:
    try:
        world.tick()
    except CloudidError:
        pass  # it comes again
    except Crashed:
        world.restart()


def test_a_node_that_takes_over_looks_at_what_is_published_in_its_first_rounds() -> None:
    """The place may have been emptied while no server ran: Azure would read nothing until the next look."""
    world = new_world()
    world.tick()
    world.tick()
    assert world.published() == world.own()
    world.documents.clear()
    world.restart()
    world.tick()
    world.tick()
    assert world.published() == world.own()


def test_an_issuer_that_cannot_be_published_after_a_start_is_a_problem_at_once() -> None:
    world = new_world()
    world.tick()
    world.tick()
    world.documents.clear()
    world.restart()
    world.break_down()
    world.perform(world.service.upkeep())
    world.tick()
    world.tick()
    assert "issuer_unpublished" in world.must("GET", "sys/health").body["problems"]


def test_a_node_that_keeps_the_leadership_looks_no_more_often() -> None:
    world = new_world()
    for _ in range(3):
        world.tick()
    reads = len(world.trace)
    for _ in range(3):
        world.tick()
    assert not any(isinstance(effect, ReadDocument) for _, effect in world.trace[reads:])
