"""The verifier finds every change of an audit log."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from cloudid_core.audit.chain import CLOSED, OPENED, RUNNING, Chain, Head
from cloudid_core.audit.device import Device
from cloudid_core.values import rfc3339
from cloudid_servers.audit.program import audit
from cloudid_servers.audit.verify import Report, verify
from cloudid_servers.terminal import run

DEVICE = Device(name="file", type="file", key="5a" * 32)
OTHER = Device(name="file", type="file", key="a5" * 32)


def written(chain: Chain, count: int, *, closes: bool = True) -> list[bytes]:
    """The lines of a chain: its beginning, entries, a checkpoint among them, and its end."""
    lines: list[bytes] = []
    for number in range(count):
        made = chain.lines((b'{"entry":%d}' % number,), 0.0)
        chain.keep(made)
        lines += made.content.splitlines(keepends=True)
        if number == count // 2:
            made = chain.checkpoint(1.0)
            chain.keep(made)
            lines += made.content.splitlines(keepends=True)
    if closes:
        made = chain.checkpoint(2.0, CLOSED)
        chain.keep(made)
        lines += made.content.splitlines(keepends=True)
    return lines


def log(count: int = 6, *, closes: bool = True) -> list[bytes]:
    return written(Chain(DEVICE, "c1", "host:1"), count, closes=closes)


def judged(lines: list[bytes], **options: object) -> Report:
    return verify([("a.log", lines)], **options)  # type: ignore[arg-type]


def test_an_untouched_log_is_whole() -> None:
    report = judged(log(), key=DEVICE.public_key)
    assert (report.problems, report.notes, report.lines) == ([], [], 9)


@pytest.mark.parametrize("place", range(9))
def test_a_changed_line_is_found_wherever_it_is(place: int) -> None:
    lines = log()
    lines[place] = lines[place].replace(b'"time":"1970', b'"time":"1971')
    assert judged(lines).problems


@pytest.mark.parametrize("place", range(9))
def test_a_missing_line_is_found_wherever_it_was(place: int) -> None:
    lines = log()
    del lines[place]
    assert judged(lines).problems


@pytest.mark.parametrize("place", range(1, 9))
def test_a_log_without_its_beginning_has_one_problem_and_the_lines_that_are_left_are_judged(place: int) -> None:
    found = judged(log()[place:], key=DEVICE.public_key).problems
    assert [problem.text.partition(":")[0] for problem in found] == [f"chain c1 starts at number {place + 1}"]


@pytest.mark.parametrize("place", range(8))
def test_reordered_lines_are_found(place: int) -> None:
    lines = log()
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    assert judged(lines).problems


@pytest.mark.parametrize("count", range(1, 10))
def test_a_cut_off_end_is_found(count: int) -> None:
    assert judged(log()[:-count]).problems


@pytest.mark.parametrize("place", range(9))
def test_a_line_that_a_disk_made_unreadable_is_told_wherever_it_is(place: int) -> None:
    """Bytes that are no UTF-8, in a text that the verifier reads."""
    lines = log()
    lines[place] = lines[place].replace(b'"id":"c1"', b'"id":"\xff1"')
    report = judged(lines)
    assert f"a.log:{place + 1}" in [found.where for found in (*report.problems, *report.notes)]
    assert report.problems


def test_a_checkpoint_kept_elsewhere_that_cannot_be_read_is_noted() -> None:
    report = judged(log(), checkpoints=[("kept", [b'{"chain":{"id":"\xff"}}\n'])])
    assert [str(note) for note in report.notes] == ["kept:1: no checkpoint"]


def test_a_repeated_line_is_found() -> None:
    lines = log()
    assert judged([*lines[:4], lines[3], *lines[4:]]).problems


def test_a_line_behind_the_end_is_found() -> None:
    chain = Chain(DEVICE, "c1", "host:1")
    lines = written(chain, 2)
    assert judged([*lines, *chain.lines((b'{"late":1}',), 3.0).content.splitlines(keepends=True)]).problems


def test_a_log_that_was_written_anew_needs_the_key() -> None:
    """Who can write the file can make a log that is whole, but not sign it."""
    forged = written(Chain(OTHER, "c1", "host:1"), 3)
    assert judged(forged).problems == []
    assert judged(forged, key=DEVICE.public_key).problems


def test_a_chain_whose_hashes_were_made_anew_breaks_at_a_checkpoint() -> None:
    """The lines behind a change can be numbered and hashed again; the signatures do not hold then."""
    honest, other = log(), written(Chain(OTHER, "c1", "host:1"), 6)
    mixed = [*honest[:1], *other[1:4], *honest[4:]]
    assert judged(mixed).problems


def test_a_running_process_has_no_end_yet() -> None:
    lines = log(closes=False)
    assert judged(lines).problems
    report = judged(lines, accepts_open_end=True)
    assert report.problems == []
    assert "no end" in report.notes[0].text


def test_a_chain_of_a_killed_process_is_attested_by_the_next_one() -> None:
    """The process after it has signed which line was the last."""
    first = Chain(DEVICE, "c1", "host:1")
    killed = written(first, 4, closes=False)
    following = written(Chain(DEVICE, "c2", "host:2", first.head), 2)
    assert judged([*killed, *following]).problems == []
    report = judged([*killed[:-1], *following])
    assert any("but number" in problem.text for problem in report.problems)


def test_a_checkpoint_that_was_signed_after_another_process_had_looked_is_genuine() -> None:
    """No one else can have added it."""
    lines = written(Chain(DEVICE, "c1", "host:1"), 2, closes=False)
    seen = Head("c1", len(lines) - 1, sha256(lines[-2].removesuffix(b"\n")).hexdigest())
    lines += written(Chain(DEVICE, "c2", "host:2", seen), 2)
    assert judged(lines, key=DEVICE.public_key).problems == []


def test_a_last_line_that_is_not_the_one_which_the_next_process_saw_is_reported() -> None:
    first = Chain(DEVICE, "c1", "host:1")
    killed = written(first, 4, closes=False)
    following = written(Chain(DEVICE, "c2", "host:2", first.head), 2)
    changed = [*killed[:-1], killed[-1].replace(b'"entry":3', b'"entry":7'), *following]
    assert [problem.text for problem in judged(changed).problems] == [
        f"number {first.number} of chain c1 is not the line that chain c2 saw"
    ]


def test_a_missing_file_is_noted() -> None:
    first = Chain(DEVICE, "c1", "host:1")
    written(first, 4)
    report = judged(written(Chain(DEVICE, "c2", "host:1", first.head), 2))
    assert report.problems == []
    assert "not in these files" in report.notes[0].text


@pytest.mark.parametrize("more", [0, 1, 980])
def test_lines_that_are_no_entries_are_counted_where_they_are_many(more: int) -> None:
    report = judged([*log(), *[b"of another file\n"] * (20 + more)])
    assert (report.problems, len(report.notes)) == ([], 21 if more else 20)
    last = f"-: {more} more lines are not entries: is this a different file?"
    assert (str(report.notes[-1]) == last) == (more > 0)


def test_chains_may_be_mixed_in_a_file() -> None:
    """Several processes may write to one file."""
    one, other = log(), written(Chain(DEVICE, "c2", "host:2"), 6)
    mixed = [line for pair in zip(one, other, strict=True) for line in pair]
    assert judged(mixed).problems == []


def test_a_torn_line_is_noted() -> None:
    lines = log()
    report = judged([*lines[:3], lines[3][:20] + b"\n", *lines[3:]])
    assert report.problems == []
    assert len(report.notes) == 1


@pytest.mark.parametrize("rubbish", [b"", b"[]\n", b"{}\n", b'{"chain":1}\n', b"\xff\n", b"[" * 100_000])
def test_rubbish_is_no_audit_log(rubbish: bytes) -> None:
    assert judged([rubbish]).problems


def test_checkpoints_kept_elsewhere_find_a_log_that_was_cut_off() -> None:
    """Even where a running process would explain the missing end."""
    lines = log(closes=False)
    kept = [line for line in lines if b'"checkpoint"' in line]
    anchors = [("anchor.log", kept)]
    assert verify([("a.log", lines)], checkpoints=anchors, accepts_open_end=True).problems == []
    report = verify([("a.log", lines[:3])], checkpoints=anchors, accepts_open_end=True)
    assert any("is truncated" in problem.text for problem in report.problems)


def test_a_checkpoint_that_is_not_in_the_log_is_found() -> None:
    lines = log()
    other = [line for line in log(8) if b'"checkpoint"' in line]
    assert verify([("a.log", lines)], checkpoints=[("anchor.log", other)]).problems


def test_forged_checkpoints_are_found() -> None:
    kept = [line.replace(b'"number":1', b'"number":2') for line in log() if b'"checkpoint"' in line]
    assert verify([("a.log", log())], checkpoints=[("anchor.log", [*kept, b"rubbish\n"])]).problems


def unsigned(first: bytes, count: int, seconds: float = 0.0) -> list[bytes]:
    """Lines behind a line of a chain, linked as anybody can link them, over some time."""
    lines: list[bytes] = []
    place = json.loads(first)["chain"]
    for number in range(count):
        time = rfc3339.show_now(1.0 + seconds * number / max(1, count - 1))
        lines.append(
            b'{"time":"%s","type":"request","chain":{"id":"%s","number":%d,"previous":"%s"}}\n'
            % (
                time.encode(),
                place["id"].encode(),
                place["number"] + 1 + number,
                sha256((lines[-1] if lines else first).removesuffix(b"\n")).hexdigest().encode(),
            )
        )
    return lines


def first_line() -> bytes:
    return Chain(DEVICE, "c1", "host:1").checkpoint(0.0, OPENED).content


@pytest.mark.parametrize("key", ["", DEVICE.public_key])
def test_a_chain_without_a_signed_beginning_is_reported(key: str) -> None:
    forged = unsigned(b'{"chain":{"id":"ff","number":0}}', 50)
    forged[0] = forged[0].replace(sha256(b'{"chain":{"id":"ff","number":0}}').hexdigest().encode(), b"")
    report = judged([forged[0], *unsigned(forged[0], 50)], key=key, accepts_open_end=True)
    assert ["does not start with a signed line" in problem.text for problem in report.problems] == [True]


def test_more_lines_without_a_checkpoint_than_a_server_writes_are_reported() -> None:
    assert judged([first_line(), *unsigned(first_line(), 1000)], accepts_open_end=True).problems == []
    (problem,) = judged([first_line(), *unsigned(first_line(), 1001)], accepts_open_end=True).problems
    assert "1001 lines at the end of chain c1 have no checkpoint" in problem.text


def test_lines_of_a_longer_time_without_a_checkpoint_than_a_server_waits_are_reported() -> None:
    assert judged([first_line(), *unsigned(first_line(), 3, 60.0)], accepts_open_end=True).problems == []
    (problem,) = judged([first_line(), *unsigned(first_line(), 3, 61.0)], accepts_open_end=True).problems
    assert "3 lines from 61 s at the end of chain c1 have no checkpoint" in problem.text


@pytest.mark.parametrize("is_bounded", [True, False])
def test_a_long_stretch_before_a_checkpoint_is_a_note_in_chains_of_earlier_versions(
    is_bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They signed after all lines of a turn of the loop, however many they were."""
    chain = Chain(DEVICE, "c1", "host:1")
    if not is_bounded:
        facts = chain.facts
        monkeypatch.setattr(
            chain, "facts", lambda *given: {name: v for name, v in facts(*given).items() if name != "every_lines"}
        )
    monkeypatch.setattr("cloudid_core.audit.chain.EVERY_LINES", 5000)
    lines = written(chain, 1)
    long = Chain(DEVICE, "c2", "host:1")
    monkeypatch.setattr(long, "facts", chain.facts)
    made = long.lines([b'{"entry":1}'] * 1001, 0.0)
    long.keep(made)
    lines += made.content.splitlines(keepends=True)
    lines += long.checkpoint(0.0, CLOSED).content.splitlines(keepends=True)
    report = judged(lines)
    expected = ["1001 lines of chain c2 before this checkpoint have no checkpoint among them"]
    assert [problem.text for problem in report.problems] == (expected if is_bounded else [])
    assert [note.text for note in report.notes] == ([] if is_bounded else expected)


def test_a_chain_that_changes_its_key_is_reported() -> None:
    """Its end is signed again by another key, which only the key's own signature would show without `key`."""
    genuine = Chain(DEVICE, "c1", "host:1")
    lines = written(genuine, 4, closes=False)
    forger = Chain(OTHER, "c1", "host:1")
    forger.number, forger._previous = genuine.number, genuine.hash
    end = forger.checkpoint(2.0, CLOSED).content
    (problem,) = judged([*lines, end]).problems
    assert problem.text == "chain c1 changes its key"


@pytest.mark.parametrize("state", [OPENED, RUNNING, CLOSED])
def test_a_forged_checkpoint_of_another_key_is_reported(state: str) -> None:
    """But for the one that begins the file of the device which keeps checkpoints, if its own key signed it."""
    line = Chain(OTHER, "c9", "host:1").checkpoint(0.0, state).content
    kept = [("kept", [line])]
    problems = [problem.text for problem in judged(log(), key=DEVICE.public_key, checkpoints=kept).problems]
    assert problems == ([] if state == OPENED else ["the checkpoint's signature is not valid"])
    forged = [("kept", [line.replace(b"host:1", b"host:2")])]
    assert judged(log(), key=DEVICE.public_key, checkpoints=forged).problems


def test_a_chain_of_a_kept_checkpoint_that_is_missing_is_reported_from_the_time_on_that_counts() -> None:
    other = Chain(DEVICE, "c2", "host:1")
    kept = [("kept", [line for line in (*log(), *written(other, 3)) if b'"checkpoint"' in line])]
    (problem,) = judged(log(), checkpoints=kept).problems
    assert str(problem) == "kept:4: its chain c2 is not in these files"
    (problem,) = judged(log(), checkpoints=kept, checkpoints_since=2.0).problems
    assert str(problem) == "kept:6: its chain c2 is not in these files"
    report = judged(log(), checkpoints=kept, checkpoints_since=3.0)
    assert (report.problems, [str(note) for note in report.notes]) == (
        [],
        ["kept:4: its chain c2 is not in these files"],
    )


def test_an_entry_that_is_in_no_chain_is_reported() -> None:
    assert judged([*log(), b'{"type":"request","request":{}}\n']).problems
    assert judged([*log(), b'{"event":"listening","level":"info"}\n']).problems == []


def test_chains_that_changed_places_are_reported() -> None:
    first = Chain(DEVICE, "c1", "host:1")
    before = written(first, 3)
    after = written(Chain(DEVICE, "c2", "host:1", first.head), 3)
    assert judged([*before, *after]).problems == []
    assert judged([*after, *before]).problems


def main(arguments: list[str]) -> int:
    return run(audit, "audit", arguments)


def test_the_command_tells_what_it_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"".join(log()))
    assert main(["verify", str(path)]) == 0
    told = capfd.readouterr().out
    assert DEVICE.public_key in told
    assert "9 lines in 1 chains, 0 problems" in told
    assert "removed chains, and removed lines after the last signed line, cannot be detected" in told
    kept = tmp_path / "kept.log"
    kept.write_bytes(b"".join(line for line in log() if b'"checkpoint"' in line))
    assert main(["verify", str(path), "--checkpoints", str(kept), "--checkpoints-since", "1970-01-01"]) == 0
    assert "cannot be excluded" not in capfd.readouterr().out
    assert main(["verify", str(path), "--checkpoints-since", "yesterday"]) == 2
    path.write_bytes(b"".join(log()[:-1]))
    assert main(["verify", str(path), "--key", DEVICE.public_key.upper()]) == 1
    assert "PROBLEM" in capfd.readouterr().out
    assert main(["verify", str(path), "--open-end"]) == 0
    assert main(["verify", str(tmp_path / "none")]) == 2
    path.write_bytes(b"".join(log()))
    for no_key in ("", DEVICE.public_key[1:]):
        assert main(["verify", str(path), "--key", no_key]) == 2
    assert "PROBLEM" not in capfd.readouterr().out


def test_lines_are_json() -> None:
    assert all(json.loads(line) for line in log())


def test_what_is_no_audit_log_is_reported_in_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A log whose beginning was replaced still has entries after it, and is judged."""
    file = tmp_path / "tls.pem"
    file.write_text("-----BEGIN CERTIFICATE-----\n" + "MIIB\n" * 100)
    assert run(audit, "audit", ["verify", str(file)]) == 2
    assert capfd.readouterr().err == f"error: {file} is not an audit log: no line at its start is a JSON object\n"
    file.write_bytes(b"x\n" + b"".join(log()[1:]))
    assert run(audit, "audit", ["verify", str(file)]) == 1
    assert "PROBLEM" in capfd.readouterr().out
