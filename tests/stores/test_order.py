"""Stores in databases write batches of commits: commits that write the same key are written in their order."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any, Final

from cloudid_core.effects import Commit
from cloudid_servers.stores.batched import CommitTicket, Limits, independent
from cloudid_servers.stores.batches import Ticket

MOST: Final = Limits(commits=4, keys=12, bytes=64)
EVENT: Final[Any] = None


def ticket_of(
    *, expects: tuple[str, ...] = (), puts: tuple[str, ...] = (), deletes: tuple[str, ...] = ()
) -> CommitTicket:
    return Ticket(Commit(dict.fromkeys(expects, 1), dict.fromkeys(puts, b"value"), deletes), EVENT)


def changed(ticket: CommitTicket) -> set[str]:
    return {*ticket.request.puts, *ticket.request.deletes}


def order_of(batch: list[CommitTicket]) -> dict[CommitTicket, int]:
    """In which transaction each is written."""
    order: dict[CommitTicket, int] = {}
    round_ = 0
    while batch:
        now, batch = independent(batch, MOST)
        order |= dict.fromkeys(now, round_)
        round_ += 1
    return order


def random_ticket(random: Random) -> CommitTicket:
    drawn = random.sample("abcdefgh", random.randint(1, 5))
    first, second = sorted(random.choices(range(len(drawn) + 1), k=2))
    return ticket_of(expects=tuple(drawn[:first]), puts=tuple(drawn[first:second]), deletes=tuple(drawn[second:]))


def test_a_deletion_does_not_overtake_the_commit_whose_key_it_deletes() -> None:
    first, second = ticket_of(puts=("count",)), ticket_of(puts=("count", "token"))
    deletion = ticket_of(deletes=("token",))
    order = order_of([first, second, deletion])
    assert order[first] < order[second] < order[deletion]


def test_commits_that_write_the_same_key_keep_their_order() -> None:
    random = Random(7)
    for _ in range(500):
        batch = [random_ticket(random) for _ in range(random.randint(2, 12))]
        order = order_of(batch)
        assert len(order) == len(batch)
        for earlier, later in combinations(batch, 2):
            if changed(earlier) & changed(later):
                assert order[earlier] < order[later]
