"""An installation that records which credentials its clients received: they have them, whatever crashes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final
from urllib.parse import parse_qs

import jwt
from attrs import evolve, field, frozen

from cloudid_core import HttpRequest, Response, open_service
from cloudid_core.credentials import ISSUERS, RootCredential
from cloudid_core.credentials.signing_keys import LONGEST_MAX_AGE, find_signing_keys
from cloudid_core.effects import CallProvider, Commit, Effect, Instant
from cloudid_core.errors import CloudidError, EntryDamaged, RecordFailed
from cloudid_core.events import Event
from cloudid_core.mounts import Mount, mount_table
from cloudid_core.store import keys
from cloudid_core.testing import Answer, Crashed, Fault, FaultKind, World
from cloudid_core.testing.faults import troubles_of
from tests.installation import Installation, Reply

BACKGROUND: Final = ("tick ", "shared lane ")
REQUESTS: Final = "asking "
"""How the names of the tasks start that do background work, and that work on requests."""
UNFENCED: Final = frozenset({keys.RING, keys.LEADER_TERM, keys.LEADER_UNTIL})
"""Entries of the leadership itself and of the key ring, which every node keeps."""
FAILED: Final = 500
TOO_LATE: Final = 504
"""Statuses of answers that say nothing certain: from the first one on, and the one of a deadline that has passed."""
REPAIRS: Final = ("sys/rotate/signing-keys", "identity/oidc/key/default/rotate")
"""Where an operator has other keys made for each of `ISSUERS`."""
MOST_STRIKES: Final = 2
"""So often may something go wrong while a request is worked on that fails, and nothing is left of it."""


@frozen
class Answered:
    """Credentials that reached a client, and until when it may use them as far as it knows."""

    lease_id: str
    client_id: str
    client_secret: str = field(repr=False)
    until: Instant = 0.0
    token_until: Instant = inf
    """When the token ends that it hangs on."""
    given_back: bool = False
    """The client has asked for their end, or for that of what they rest on."""

    def is_counted_on(self, now: Instant) -> bool:
        """Whether its client may use it."""
        return not self.given_back and now < min(self.until, self.token_until)


def is_intent(key: str) -> bool:
    return "/intent/" in key and not key.startswith(keys.DUE)


class RecordedInstallation(Installation):
    """Also records what else a simulation has to know to judge the outcome."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        self.disbelieved = 0
        """How many client assertions named a key of the issuer that the cloud did not know."""
        self.keys_lost_at: Instant = 0.0
        """When the signing keys were damaged: nobody can publish the keys of tokens from before any more."""
        self.keys_known_at: Instant = 0.0
        """From when the cloud knows the keys in the place of damaged ones; `inf` while they are damaged."""
        self.answered: dict[str, Answered] = {}
        self.taken_over: set[str] = set()
        """Root secrets that operators have taken from the service: they outlive its configuration."""
        self.removed_by_others: set[str] = set()
        """Root secrets that somebody else has removed from the provider."""
        self.locked_out: list[str] = []
        """The mounts whose root secret in use was refused after a step of a rotation."""
        self.lent_of_its_own: list[str] = []
        """Leases of applications that the service proved itself with when they were answered."""
        self.in_background: list[Commit] = []
        """The commits of background work."""
        self.overwritten: list[str] = []
        """Leases and intents that background work changed whatever had become of them meanwhile."""
        self.has_stalled = False
        """Whether a node has stood still in the middle of something."""
        self.unheard: set[str] = set()
        """Leases that their clients may never have heard of: the host was killed, was late, or could do nothing."""
        self.strikes = 0
        """How often something went wrong since the last request began."""
        self.lost_outcome = ""
        """The outcome of the next commit that puts such a key is lost, and the store cannot be asked for it."""
        self.dies_before = ""
        """The host is killed as it sends the next request whose address ends so."""
        self.asked_at: Instant = 0.0
        """When the last request began."""
        self.late: list[tuple[Instant, HttpRequest]] = []
        """What killed hosts have sent, and when it arrives at the cloud."""
        self.meanwhile_at: int | None = None
        """Before that effect `meanwhile` happens."""
        self.meanwhile: Callable[[], object]
        self.closed: list[tuple[str, list[str]]] = []
        """What an operator has taken away meanwhile, by the start of its leases' ids, and the leases that it had."""
        self.lent_too_late: list[str] = []
        """Leases that were made of it afterwards."""
        self.is_deaf = False
        """Whether no audit device can be written."""
        self.is_struck = False
        """Whether a fault has struck, or a node was stopped or replaced. What the cloud does of itself is none."""
        self.trouble: Fault | None = None
        """Something that goes wrong at that effect, or at the first one after it that knows this kind of fault."""
        super().__init__(*given, **settings)

    def _record(self, event: Event) -> None:
        if self.is_deaf and event.audit is not None:
            raise RecordFailed("no audit device can be written")
        super()._record(event)

    def call_cloud(self, request: HttpRequest) -> Answer:
        self.deliver_late_calls(self.clock)
        answer = super().call_cloud(request)
        if self.clock >= self.keys_known_at and b"AADSTS700027" in answer.response.body:
            (assertion,) = parse_qs(request.body.decode())["client_assertion"]
            self.disbelieved += "kid" in jwt.get_unverified_header(assertion)
        return answer

    def deliver_late_calls(self, until: Instant) -> None:
        """Let arrive what killed hosts have sent, as late as it may."""
        while self.late and self.late[0][0] <= until:
            at, request = self.late.pop(0)
            super().advance(max(0.0, at - self.clock))
            super().call_cloud(request)

    def advance(self, seconds: float) -> None:
        until = self.clock + seconds
        self.deliver_late_calls(until)
        super().advance(max(0.0, until - self.clock))

    def crash(self) -> None:
        self.unheard.update(self.leases())
        super().crash()

    async def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: tuple[str, ...]) -> int:
        written = {*puts, *deletes}
        if self._running_task().name.startswith(BACKGROUND) and (not written or written - UNFENCED):
            self.in_background.append(Commit(expects, puts, deletes))
            changed = [key for key in (*puts, *deletes) if key.startswith(keys.LEASES) or is_intent(key)]
            self.overwritten += [key for key in changed if key not in expects and self.store.read(key)]
        version = await super().commit(expects, puts, deletes)
        if any(key.endswith(("/config", "/rotation")) for key in puts):
            self.locked_out += self.dead_roots
        return version

    def fault_for(self, effect: Effect[Any]) -> FaultKind | None:
        if self.meanwhile_at is not None and len(self.trace) >= self.meanwhile_at:
            self.meanwhile_at, self.is_struck = None, True
            self.meanwhile()
        trouble, kind = self.trouble, super().fault_for(effect)
        if self._loses_outcome(effect):
            self.lost_outcome, kind = "", FaultKind.LOST_ANSWER
            self.trouble = Fault(0, FaultKind.FAIL)
        elif trouble is not None and len(self.trace) >= trouble.at and trouble.kind in troubles_of(effect):
            self.trouble, kind = None, trouble.kind
        if isinstance(effect, CallProvider):
            kind = FaultKind.CRASH_BEFORE if self._dies_before(effect.request) else kind
            if kind is FaultKind.CRASH_BEFORE and self._running_task().name.startswith(REQUESTS):
                arrives_at = self.asked_at + self.settings.request_deadline + self.settings.request_grace - 1
                self.late.append((arrives_at, effect.request))
        self.is_struck = self.is_struck or kind is not None
        self.strikes += kind is not None
        return kind

    def _dies_before(self, request: HttpRequest) -> bool:
        return bool(self.dies_before) and request.url.endswith(self.dies_before)

    def _loses_outcome(self, effect: Effect[Any]) -> bool:
        if not self.lost_outcome or not isinstance(effect, Commit):
            return False
        return any(key.startswith(self.lost_outcome) for key in effect.puts)

    def ask(self, *arguments: Any, **options: Any) -> Reply:
        self.strikes, self.asked_at = 0, self.clock
        return super().ask(*arguments, **options)

    def receive(self, response: Response) -> Reply:
        reply = super().receive(response)
        if reply.status == TOO_LATE or (reply.status >= FAILED and self.strikes > MOST_STRIKES):
            self.unheard.update(self.leases())
        lease_id = reply.body.get("lease_id") if reply.body and reply.status == 200 else None
        if lease_id:
            until = self.clock + reply.body["lease_duration"]
            data = reply.data
            known = Answered(lease_id, data["client_id"], data["client_secret"]) if data else self.answered[lease_id]
            if data and known.client_id in self.own_client_ids:
                self.lent_of_its_own.append(lease_id)
            if any(lease_id.startswith(start) and lease_id not in before for start, before in self.closed):
                self.lent_too_late.append(lease_id)
            self.answered[lease_id] = evolve(known, until=until)
        return reply

    @property
    def roots(self) -> list[tuple[Mount, RootCredential]]:
        """The mounts that have a configuration, and what they prove themselves with by it."""
        records = self.service.context.records
        table = self.peek(mount_table(records)).record
        forms = [(mount, self.service.context.components.of(mount).config) for mount in table.mounts]
        configs = [(mount, self.peek(records.find(keys.config(mount.id), form))) for mount, form in forms if form]
        return [(mount, config.record) for mount, config in configs if config]

    @property
    def own_client_ids(self) -> set[str]:
        return {root.client_id for _, root in self.roots}

    @property
    def dead_roots(self) -> list[str]:
        """The mounts whose root secret in use is refused although nobody but the service could have removed it."""
        return [
            mount.path
            for mount, root in self.roots
            if root.client_secret
            and root.client_secret.reveal() not in self.removed_by_others
            and not self.accepts(root.client_id, root.client_secret.reveal())
        ]

    def has(self, client_id: str, secret: str) -> bool:
        """Whether the cloud has a secret, even if it has run out."""
        application = self.simulator.world.directory.application_of(client_id)
        return application is not None and any(one.secret == secret for one in application.passwords)

    def remove_root_secret(self, client_id: str, secret: str) -> None:
        """Somebody else removes a root secret from the provider."""
        directory = self.simulator.world.directory
        application = directory.application_of(client_id)
        assert application is not None
        (key_id,) = (one.key_id for one in application.passwords if one.secret == secret)
        directory.remove_password(application, key_id)
        self.removed_by_others.add(secret)

    def damage_signing_keys(self, spoil: Callable[[bytes], bytes]) -> None:
        """The stored keys of all issuers cannot be opened any more."""
        for issuer in ISSUERS:
            entry = self.store.read(issuer.entry)
            assert entry is not None
            self.store.commit({}, {issuer.entry: spoil(entry.value)}, ())
        self.keys_lost_at, self.keys_known_at = self.clock, inf

    def heal(self) -> None:
        """Besides, audit devices can be written, and an operator has other signing keys made where they are damaged."""
        super().heal()
        self.is_deaf = False
        if self.keys_known_at < inf:
            return
        for issuer, path in zip(ISSUERS, REPAIRS, strict=True):
            try:
                self.peek(find_signing_keys(self.context.records, issuer))
            except EntryDamaged:
                if self.ask("POST", path).status != 200:
                    return
        self.keys_known_at = self.clock + 2 * LONGEST_MAX_AGE  # they are published, and older documents are not kept

    def converge(self) -> None:
        """Nothing can come to an end before the cloud knows the keys."""
        assert self.keys_known_at < inf, "damaged signing keys were not replaced"
        self.wait(self.keys_known_at - self.clock)
        super().converge()

    def next_turn(self) -> None:
        """Choose the node that does what follows. Here is only one."""

    # What clients do

    def ask_all(self, paths: Sequence[str]) -> None:
        """Several reads at the same time."""
        self.ask_together([("GET", path, None) for path in paths])

    def ask_together(self, requests: Sequence[tuple[str, str, object]]) -> None:
        """Several requests at the same time, each at another node, with background work between."""
        tasks = []
        for request in requests:
            self.next_turn()
            tasks.append(self.spawn(self.asking(*request)))
        self.next_turn()
        background = self.spawn(self.service.tick())
        self.settle()
        for task in tasks:
            task.result()
        with suppress(CloudidError):
            background.result()

    def ask_and_hang_up(self, path: str) -> None:
        """A read whose answer cannot be written, because its client is gone."""
        self.next_turn()
        response = self.perform(self.service.handle(self.request("GET", path)))
        try:
            self.perform(self.service.undelivered(response))
        except CloudidError:
            self.unheard.add(response.holds)

    def elsewhere(self, method: str, path: str, body: object = None) -> int:
        """The status of a request to another node, by the operator, in no time."""
        node = World(1, self.simulator.handle, self.store, self.clock)
        service = node.perform(open_service(self.settings))
        return node.perform(service.handle(self.request(method, path, body))).status

    def take_away_meanwhile(self, at: int, start: str, *request: Any) -> None:
        """Before that effect an operator takes something away: the ids of its leases start so."""

        def take_away() -> None:
            if self.elsewhere(*request) == 204:
                self.closed.append((start, self.leases()))

        self.meanwhile_at, self.meanwhile = at, take_away

    def die_after_commit(self, method: str, path: str) -> None:
        """The host is killed amid a request, right after the first thing that it has done."""
        self.trouble = Fault(len(self.trace), FaultKind.CRASH_AFTER)
        with suppress(Crashed):
            self.ask(method, path)
        self.trouble = None
        self.restart()

    def revoke(self, lease_id: str, body: object = None) -> None:
        """A client revokes a lease. An answer of 204 is true: the secret of what was not dropped is dead."""
        self.give_back(lease_id)
        is_there = self.store.read(keys.lease(lease_id)) is not None
        if self.ask("PUT", f"sys/leases/revoke/{lease_id}", body).status == 204 and is_there:
            self.assert_dead(lease_id)

    def revoke_below(self, path: str) -> None:
        """An operator revokes all leases below a path. An answer of 204 is true: the secrets are dead by then."""
        listed = self.counted_on(f"{path}/")
        self.give_back(f"{path}/")
        if self.ask("PUT", f"sys/leases/revoke-prefix/{path}").status == 204:
            self.assert_dead(*listed)

    def disable(self, path: str) -> None:
        """An operator disables an engine. An answer of 204 is true: nothing is left of it."""
        listed = self.counted_on(f"{path}/")
        self.give_back(f"{path}/")
        if self.ask("DELETE", f"sys/mounts/{path}").status == 204:
            self.assert_dead(*listed)

    def counted_on(self, start: str) -> list[str]:
        """The leases with such ids whose end no client has asked for. Others may be those of an earlier mount."""
        return [key for key, answered in self.answered.items() if key.startswith(start) and not answered.given_back]

    def assert_dead(self, *lease_ids: str) -> None:
        for lease_id in lease_ids:
            answered = self.answered[lease_id]
            assert not self.accepts(answered.client_id, answered.client_secret), f"{lease_id} was to be dead"

    def give_back(self, part_of_id: str) -> None:
        """Clients ask for the end of leases, so from now on they count on nothing."""
        for lease_id, answered in self.answered.items():
            if part_of_id in lease_id:
                self.answered[lease_id] = evolve(answered, given_back=True)

    def count_on(self, lease_id: str, seconds: float) -> None:
        """A client asks that a lease end so many seconds from now; whatever the answer, it counts on no more."""
        answered = self.answered[lease_id]
        self.answered[lease_id] = evolve(answered, until=min(answered.until, self.clock + seconds))

    def hang_on(self, lease_id: str, until: Instant) -> None:
        """A client knows that a lease ends with its token, and when that does."""
        self.answered[lease_id] = evolve(self.answered[lease_id], token_until=until)
