"""The verifier reports every forgery of an audit log, and no log that servers have written.

Without checkpoints that were kept elsewhere it cannot know that whole chains were removed, or a tail that begins after
a signed line. Nothing orders the lines of different chains in a file. A few lines at the end of a chain whose process
was killed pass for its own, unless another chain began behind them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final, TypeAlias
from unittest.mock import patch

import pytest

from cloudid_core.audit.chain import Chain, is_signed
from cloudid_core.audit.device import Device
from cloudid_servers.audit import devices
from cloudid_servers.audit.verify import Report, verify

from .recorded_logs import KEY, EarlierChain, Writer, write_at_random

Log: TypeAlias = list[tuple[str, list[bytes]]]
PUBLIC_KEY: Final = Device(name="main", type="file", key=KEY).public_key
UPGRADES: Final = Path(__file__).parents[2] / "upgrades"
STEPS: Final = 40


def judged(log: Log, checkpoints: Sequence[bytes] = (), *, accepts_open_end: bool = False) -> Report:
    kept = [("kept", list(checkpoints))] if checkpoints else []
    return verify(log, key=PUBLIC_KEY, checkpoints=kept, accepts_open_end=accepts_open_end)


def chains_of(log: Log) -> dict[str, list[bytes]]:
    """The lines of each chain, in order."""
    found: dict[str, list[bytes]] = {}
    for _, lines in log:
        for line in lines:
            found.setdefault(json.loads(line)["chain"]["id"], []).append(line)
    return found


def is_removal_of_ends(genuine: Log, forged: Log) -> bool:
    """Whether only whole chains are gone, or tails that begin after a line that is signed, by itself or by others.

    Where whole chains are gone, too, another tail may look as if its process had been killed.
    """
    before, after = chains_of(genuine), chains_of(forged)
    beginnings = [json.loads(lines[0]) for lines in after.values()]
    named = {head["hash"] for line in beginnings for head in (*line.get("saw", ()), line.get("follows")) if head}
    last_lines = {lines[-1] for _, lines in forged if lines and before.keys() != after.keys()}
    return all(
        lines == before.get(name, [])[: len(lines)]
        and (
            len(lines) == len(before[name])
            or lines[-1] in last_lines
            or is_signed(lines[-1].rstrip(b"\n"), PUBLIC_KEY)
            or sha256(lines[-1].rstrip(b"\n")).hexdigest() in named
        )
        for name, lines in after.items()
    )


def continues_the_killed(genuine: Log, forged: Log) -> bool:
    """Whether lines were only added behind the last one of chains that have no end."""
    before, after = chains_of(genuine), chains_of(forged)
    return before.keys() == after.keys() and all(
        after[name] == lines or (b'"state":"closed"' not in lines[-1] and after[name][: len(lines)] == lines)
        for name, lines in before.items()
    )


def forge_line(line: bytes, random: Random) -> bytes:
    """Another text in the line, whose place stays as it is."""
    return line.replace(b'{"time"', b'{"forged":%d,"time"' % random.randrange(10**6), 1).replace(
        b'{"type":"checkpoint"', b'{"type":"checkpoint","forged":%d' % random.randrange(10**6), 1
    )


def link_again(lines: list[bytes], start: int) -> list[bytes]:
    """The lines with numbers and hashes of their chains made again from one of them on, as any attacker can."""
    linked = lines[:start]
    heads: dict[str, tuple[int, str]] = {}
    for line in linked:
        place = json.loads(line)["chain"]
        heads[place["id"]] = place["number"], sha256(line.rstrip(b"\n")).hexdigest()
    for line in lines[start:]:
        content, _, tail = line.rpartition(b',"chain":{')
        place = json.loads(line)["chain"]
        number, previous = heads.get(place["id"], (0, ""))
        signature = tail.partition(b"}")[2]
        made = content + b',"chain":{"id":"%s","number":%d,"previous":"%s"}' % (
            place["id"].encode(),
            number + 1,
            previous.encode(),
        )
        linked.append(made + signature)
        heads[place["id"]] = number + 1, sha256(linked[-1].rstrip(b"\n")).hexdigest()
    return linked


Forgery: TypeAlias = Callable[[list[bytes], Random], list[bytes]]


def delete(lines: list[bytes], random: Random) -> list[bytes]:
    start = random.randrange(len(lines))
    return lines[:start] + lines[start + random.randrange(1, 4) :]


def delete_and_link(lines: list[bytes], random: Random) -> list[bytes]:
    start = random.randrange(len(lines))
    return link_again(lines[:start] + lines[start + 1 :], start)


def truncate(lines: list[bytes], random: Random) -> list[bytes]:
    return lines[: random.randrange(len(lines))]


def behead(lines: list[bytes], random: Random) -> list[bytes]:
    return lines[random.randrange(1, len(lines) + 1) :]


def replace(lines: list[bytes], random: Random) -> list[bytes]:
    place = random.randrange(len(lines))
    return [*lines[:place], forge_line(lines[place], random), *lines[place + 1 :]]


def replace_and_link(lines: list[bytes], random: Random) -> list[bytes]:
    place = random.randrange(len(lines))
    return link_again([*lines[:place], forge_line(lines[place], random), *lines[place + 1 :]], place)


def insert(lines: list[bytes], random: Random) -> list[bytes]:
    place = random.randrange(len(lines) + 1)
    return [*lines[:place], forge_line(random.choice(lines), random), *lines[place:]]


def insert_and_link(lines: list[bytes], random: Random) -> list[bytes]:
    place = random.randrange(len(lines) + 1)
    return link_again([*lines[:place], forge_line(random.choice(lines), random), *lines[place:]], place)


def insert_without_a_place(lines: list[bytes], random: Random) -> list[bytes]:
    place = random.randrange(len(lines) + 1)
    return [*lines[:place], b'{"type":"request","request":{"id":"forged"}}\n', *lines[place:]]


def insert_a_chain(lines: list[bytes], random: Random) -> list[bytes]:
    """Entries under an id of their own, without a signature."""
    place, count = random.randrange(len(lines) + 1), random.randrange(1, 30)
    return [*lines[:place], *forged_chain(count), *lines[place:]]


def repeat(lines: list[bytes], random: Random) -> list[bytes]:
    start = random.randrange(len(lines))
    end = random.randrange(start + 1, len(lines) + 1)
    return [*lines, *lines[start:end]]


def swap(lines: list[bytes], random: Random) -> list[bytes]:
    lines, (one, other) = list(lines), random.choices(range(len(lines)), k=2)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def shuffle(lines: list[bytes], random: Random) -> list[bytes]:
    return random.sample(lines, len(lines))


def replace_all(lines: list[bytes], random: Random) -> list[bytes]:
    return forged_chain(len(lines))


def keep_the_beginning_only(lines: list[bytes], random: Random) -> list[bytes]:
    """The genuine first line, and forged entries behind it that are linked as they have to be."""
    return link_again([lines[0], *(line for line in lines[1:2] for _ in range(1500) if b'"checkpoint"' not in line)], 1)


def forged_chain(count: int) -> list[bytes]:
    chain = Chain(Device(name="main", type="file", key="a5" * 32), "ffffffffffffffff", "host:1")
    lines = chain.lines([b'{"type":"request"}'] * (count + 1), 1_795_000_000.0).content.splitlines(keepends=True)
    return link_again([line for line in lines if b'"checkpoint"' not in line], 0)


FORGERIES: Final[Sequence[Forgery]] = (
    delete,
    delete_and_link,
    truncate,
    behead,
    replace,
    replace_and_link,
    insert,
    insert_and_link,
    insert_without_a_place,
    insert_a_chain,
    repeat,
    swap,
    shuffle,
    replace_all,
    keep_the_beginning_only,
)


def forge_file(log: Log, random: Random) -> Log:
    """A file that is gone, repeated, moved or replaced by another one."""
    place = random.randrange(len(log))
    match random.randrange(4):
        case 0:
            return [*log[:place], *log[place + 1 :]]
        case 1:
            return [*log, log[place]]
        case 2:
            return random.sample(log, len(log))
        case _:
            return [*log[:place], random.choice(log), *log[place + 1 :]]


def test_every_forgery_is_reported_and_no_genuine_log(seeds: range, tmp_path: Path) -> None:
    for seed in seeds[::3]:
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        writer = write_at_random(folder, random, STEPS)
        log = writer.log()
        assert judged(log, writer.checkpoints).problems == [], seed
        assert judged(log).problems == [], seed
        for forgery in (*FORGERIES, forge_file):
            if forgery is forge_file:
                name, forged = "forge_file", forge_file(log, random)
            else:
                place = random.randrange(len(log))
                name, forged = forgery.__name__, list(log)
                forged[place] = log[place][0], forgery(log[place][1], random)  # type: ignore[operator]
            try:
                is_same = continues_the_killed(log, forged)
                is_removal = is_removal_of_ends(log, forged)
            except KeyError:
                is_same = is_removal = False
            if is_same:
                continue
            assert judged(forged, writer.checkpoints).problems, (seed, name)
            if not is_removal:
                assert judged(forged).problems, (seed, name)


@pytest.mark.parametrize("is_earlier", [False, True])
def test_a_killed_server_and_an_upgraded_one_leave_logs_that_are_not_reported(
    is_earlier: bool, seeds: range, tmp_path: Path
) -> None:
    """Up to the moment of the kill, also without a later chain; the next server continues the file."""
    for seed in seeds[::3]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        random = Random(seed)
        writer = Writer(folder, random)
        with writer.at_work():
            with patch.object(devices, "Chain", EarlierChain if is_earlier else Chain):
                for _ in range(3):
                    process = writer.start()
                    for _ in range(random.randrange(5)):
                        writer.write(process, random.choice((1, 3, 700)))
                        writer.now += random.choice((0.0, 5.0, 3600.0))
                while writer.processes:
                    writer.kill(random.choice(writer.processes))
            assert judged(writer.log(), writer.checkpoints, accepts_open_end=True).problems == [], seed
            writer.start()
            writer.stop()
        assert judged(writer.log(), writer.checkpoints).problems == [], seed


def test_the_log_of_an_earlier_version_is_not_reported() -> None:
    """It has killed processes, two at a time, and names nothing but the line before a beginning."""
    log = [("audit-1", (UPGRADES / "audit-1.jsonl").read_bytes().splitlines(keepends=True))]
    checkpoints = (UPGRADES / "audit-1.checkpoints.jsonl").read_bytes().splitlines(keepends=True)
    assert judged(log).problems == judged(log, checkpoints).problems == []


def test_forged_lines_behind_the_signed_beginning_of_another_file_are_reported(tmp_path: Path) -> None:
    """The beginning is genuine, but the next chain of the file did not see it."""
    writer = Writer(tmp_path, Random(0))
    with writer.at_work():
        for _ in range(2):
            writer.start()
        writer.stop()
    ((name, lines),) = writer.log()
    elsewhere = Chain(writer.device, "elsewhere", "other:1")
    forged = elsewhere.lines([b'{"type":"request"}'] * 9, writer.now).content.splitlines(keepends=True)
    second = next(place for place, line in enumerate(lines) if b'"follows"' in line)
    assert judged([(name, lines)]).problems == []
    report = judged([(name, [*lines[:second], *forged, *lines[second:]])])
    assert ["was added" in problem.text for problem in report.problems] == [True]
