"""The audit devices of one process. Every entry goes to all devices, and a request continues when one device has it."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from attrs import Factory, define

from cloudid_core.audit.chain import CLOSED, EVERY_SECONDS, OPENED, Chain, Head, Lines
from cloudid_core.audit.device import STDOUT, Device, Entries
from cloudid_core.errors import RecordFailed
from cloudid_core.metrics import Numbers, put

from ..machine import identity_of, programs
from ..runtime import Runtime
from .datagrams import shortened
from .files import File, Ticket, Torn
from .streams import DATAGRAM, SHORT_DATAGRAM, Closed, Stream, TooLong

QUEUE_LIMIT: Final = 4096
"""Maximum entries that wait for a stream while another device accepts them.

If there are more, the stream has failed.
"""

RETRY_SECONDS: Final = 1.0
"""Seconds until a stream that failed is tried again."""

COMMAND_SECONDS: Final = 10.0

PLACE_BYTES: Final = 256
"""Maximum bytes of a line in addition to its entry: its time and its place in the chain."""

Report = Callable[..., object]
"""Takes an event and its facts, like the methods of a logger."""


class _Chained:
    """A device that this process writes to, with its chain.

    `begin` writes entries (`None`) or queues them. `pass_on` writes a checkpoint of another device, and `sign` one of
    its own if it is due. `close` ends the chain, and the next entry opens another one. They raise `OSError`.
    """

    def __init__(self, device: Device, process: str, spread: Callable[[Sequence[bytes]], None]) -> None:
        self.device = device
        self.is_removed = False
        """Whether the device is closed permanently."""
        self._process = process
        self._spread = spread
        self._last_id = ""
        self._chain = self._new_chain(None)

    def _new_chain(self, follows: Head | None, saw: Sequence[Head] | None = None, unsure: int = 0) -> Chain:
        """Return a new chain that names the previous chain of this process."""
        ends = self._last_id
        return Chain(self.device, os.urandom(8).hex(), self._process, follows, saw=saw, unsure=unsure, ends=ends)

    def _keep(self, chain: Chain, lines: Lines) -> None:
        """Record that lines of a chain were written.

        It may be an older chain, because `close` may have begun another one.
        """
        chain.keep(lines)
        self._last_id = chain.id
        if lines.checkpoints:
            self._spread(lines.checkpoints)


class FileDevice(_Chained):
    """A file, or a standard output that is a file.

    `holder_of` returns the name of the device that the file already belongs to, if any.
    """

    def __init__(
        self,
        device: Device,
        process: str,
        spread: Callable[[Sequence[bytes]], None],
        runtime: Runtime,
        holder_of: Callable[[Device, os.stat_result], str] = lambda device, status: "",
    ) -> None:
        super().__init__(device, process, spread)
        self._file = File(device, runtime, partial(holder_of, device))

    def has(self, status: os.stat_result) -> bool:
        """Return whether this device writes to this file, by whatever name."""
        return identity_of(status) in self._file.identities()

    def begin(self, texts: Sequence[bytes]) -> Ticket | None:
        self._open()
        self._write(self._chain.lines(texts, time.time()))
        return self._file.sync()

    def pass_on(self, checkpoint: bytes) -> None:
        """A checkpoint of this device is the first line of a new file.

        Without it, the file would belong to no device.
        """
        self._open()
        if self._file.is_empty:
            self._file.write(self._chain.checkpoint(time.time(), OPENED).content)
        self._file.write(checkpoint)

    def sign(self) -> None:
        now = time.time()
        if self._chain.is_open and self._chain.is_unsigned(now):
            self._write(self._chain.checkpoint(now))

    def close(self) -> None:
        try:
            if self._chain.is_open:
                self._write(self._chain.checkpoint(time.time(), CLOSED))
        finally:
            self._file.close()
            self._chain = self._new_chain(self._chain.head)

    def _open(self) -> None:
        """Open the file. If the open file was moved or removed, its chain ends there.

        The next chain names the last lines in the file, and the previous chain of this process, which may be in another
        file.
        """
        if self._file.is_replaced():
            with suppress(OSError):
                self.close()
        head = self._file.open()
        if head is not None:
            saw, own = self._file.other_heads, self._chain.head
            if saw is not None and own is not None and own.id not in {head.id, *(each.id for each in saw)}:
                saw = (*saw, own)
            self._chain = self._new_chain(head, saw)

    def _write(self, lines: Lines) -> None:
        """Write lines of the chain. If this fails, another chain names the last complete line."""
        try:
            self._file.write(lines.content)
        except OSError as failure:
            if not self._chain.number:
                self._file.close()  # other processes continue the file: look again at what the chain follows
            written = failure.written if isinstance(failure, Torn) else 0
            self._chain = self._new_chain(lines.head_within(written))
            raise
        self._keep(self._chain, lines)


@define(eq=False)
class _Batch(Ticket):
    """Entries that are sent together, and the outcome."""

    texts: list[bytes] = Factory(list)


class StreamDevice(_Chained):
    """A socket, or a standard output that is a pipe. One task sends.

    Entries that arrive meanwhile are its next batch.
    """

    def __init__(
        self,
        device: Device,
        process: str,
        spread: Callable[[Sequence[bytes]], None],
        runtime: Runtime,
        report: Callable[[Device, OSError | None], None],
    ) -> None:
        super().__init__(device, process, spread)
        self._runtime = runtime
        self._report = report
        self._stream = Stream(device, runtime)
        self._next: _Batch | None = None
        self._checkpoints: list[bytes] = []
        self._is_sending = False
        self._unsure = 0
        """The number of lines of the chain that were sent, but may not have arrived."""
        self._retry_at = 0.0

    def begin(self, texts: Sequence[bytes]) -> Ticket | None:
        if time.monotonic() < self._retry_at:
            raise OSError("the device failed a moment ago")
        batch = self._next
        if batch is None:
            batch = self._next = _Batch(self._runtime.new_event(), OSError("the entry was not sent"))
        elif len(batch.texts) >= QUEUE_LIMIT:
            raise OSError("too many entries wait for the device")
        batch.texts += texts
        self._start()
        return batch

    def pass_on(self, checkpoint: bytes) -> None:
        if len(self._checkpoints) >= QUEUE_LIMIT:
            raise OSError("too many checkpoints wait for the device")
        self._checkpoints.append(checkpoint)
        self._start()

    def sign(self) -> None:
        if self._chain.is_open and self._chain.is_unsigned(time.time()):
            self._start()

    def close(self) -> None:
        if self._chain.is_open and not self._is_sending:
            lines = self._chain.checkpoint(time.time(), CLOSED)
            self._stream.send_now(lines.content)
            self._keep(self._chain, lines)
            self._unsure = 0
        self._stream.close()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Begin another chain.

        It names the last line of this chain, and the number of further lines that may have arrived.
        """
        chain = self._chain
        unsure = self._unsure if chain.number else chain.unsure
        self._chain, self._unsure = self._new_chain(chain.head, unsure=unsure), 0

    def _start(self) -> None:
        if not self._is_sending:
            self._is_sending = True
            self._runtime.start(self._send_all)

    async def _send_all(self) -> None:
        try:
            while self._next is not None or self._checkpoints or self._chain.is_unsigned(time.time()):
                batch, self._next = self._next, None
                await self._send(batch)
        finally:
            self._is_sending = False
            if self._next is not None:
                self._next.done.set()
                self._next = None
            if self.is_removed:  # a send that began later has opened the connection again
                self.close()

    async def _send(self, batch: _Batch | None) -> None:
        passed_on = b"".join(self._checkpoints)
        self._checkpoints.clear()
        failure: OSError | None = None
        try:
            try:
                await self._hand_over(batch, passed_on)
            except Closed:
                if self.is_removed:
                    raise
                await self._hand_over(batch, passed_on)  # by SIGHUP: another connection takes it
            if batch is not None:
                batch.failure = None
        except Exception as error:  # noqa: BLE001  # an address that is none fails with `ValueError`s of all kinds
            failure = error if isinstance(error, OSError) else OSError(f"the device failed: {type(error).__name__}")
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if batch is not None:
                batch.failure = failure
            self._begin_anew()
        finally:
            if batch is not None:
                batch.done.set()
        self._report(self.device, failure)

    async def _hand_over(self, batch: _Batch | None, passed_on: bytes) -> None:
        chain = self._chain
        if self._stream.sends_datagrams:
            await self._send_datagrams(chain, batch.texts if batch else (), passed_on)
            return
        lines = chain.lines(batch.texts, time.time()) if batch else None
        if lines is None and chain.is_unsigned(time.time()):
            lines = chain.checkpoint(time.time())
        self._unsure = lines.number - chain.number if lines else 0
        await self._stream.send((lines.content if lines else b"") + passed_on)
        self._unsure = 0
        if lines is not None:
            self._keep(chain, lines)

    async def _send_datagrams(self, chain: Chain, texts: Sequence[bytes], passed_on: bytes) -> None:
        """Send each line separately, so that a line that is too long does not fail the others.

        Such a line is shortened.
        """
        if texts and not chain.number:
            await self._send_lines(chain, chain.checkpoint(time.time(), OPENED))
        for text in texts:
            if chain.is_unsigned(time.time()):
                await self._send_lines(chain, chain.checkpoint(time.time()))
            try:
                await self._send_entry(chain, text, DATAGRAM)
            except TooLong:  # some networks take less
                await self._send_entry(chain, text, SHORT_DATAGRAM)
        if chain.is_unsigned(time.time()):
            await self._send_lines(chain, chain.checkpoint(time.time()))
        if passed_on:
            await self._stream.send(passed_on)

    async def _send_entry(self, chain: Chain, text: bytes, limit: int) -> None:
        await self._send_lines(chain, chain.lines((shortened(text, limit - PLACE_BYTES),), time.time()))

    async def _send_lines(self, chain: Chain, lines: Lines) -> None:
        self._unsure = lines.number - chain.number
        await self._stream.send(lines.content)
        self._unsure = 0
        self._keep(chain, lines)


Opened: TypeAlias = FileDevice | StreamDevice


@define(eq=False)
class _Turn:
    """Entries that are written together, and their outcome."""

    devices: Sequence[Device]
    is_trial: bool
    others: Sequence[Device] = ()
    texts: list[tuple[bytes, ...]] = Factory(list)
    """For each entry, one text for each device."""
    is_written: bool = False
    tickets: list[tuple[Opened, Ticket]] = Factory(list)
    """The tickets to wait for if no device has the entries yet."""
    reason: str = "no audit device accepts entries"
    """Why no device has the entries."""


class Devices:
    """Writes entries. A device is opened by its first entry, and closed when it is no longer enabled."""

    def __init__(self, runtime: Runtime) -> None:
        self.report: Report = lambda event, **facts: None
        """The logger's method for warnings."""
        self.checkpoint_command: Sequence[str] = ()
        """A program that receives each checkpoint on its standard input."""
        self._runtime = runtime
        self._process = f"{socket.gethostname()}:{os.getpid()}"
        self._enabled: Sequence[Device] = ()
        self._turn: _Turn | None = None
        self._opened: dict[str, Opened] = {}
        self._entry_devices: list[Opened] = []
        self._failing: set[str] = set()
        self._for_command: list[bytes] = []
        self._is_signing = False
        self._is_commanding = False

    @property
    def is_enabled(self) -> bool:
        """Return whether devices receive entries."""
        return bool(self._entry_devices)

    async def write(self, entries: Entries) -> None:
        """Return when one device has the entry. Raises `RecordFailed` if none has.

        The entries of one turn of the loop are written together, by the task that runs first in the next turn.
        """
        turn = self._turn
        if turn is None or turn.devices is not entries.devices or entries.is_trial:
            self._write_turn()
            turn = self._turn = _Turn(entries.devices, entries.is_trial, entries.others)
        turn.texts.append(entries.texts)
        await self._runtime.next_turn()
        if turn is self._turn:
            self._write_turn()
        if not turn.is_written:
            await self._finish(turn)

    def _write_turn(self) -> None:
        """Write all entries that can be written without waiting."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        if turn.devices is not self._enabled:
            self._adopt((*turn.others, *turn.devices) if turn.is_trial else turn.devices, is_trial=turn.is_trial)
        entry_devices = [self._opened[turn.devices[0].name]] if turn.is_trial else self._entry_devices
        for opened, texts in zip(entry_devices, zip(*turn.texts, strict=True), strict=True):
            ticket = None
            try:
                if opened.device.takes_entries:
                    ticket = opened.begin(texts)
                else:
                    opened.pass_on(b"\n".join((*texts, b"")))
            except OSError as failure:
                turn.reason = _reason_of(failure)
                self._note(opened.device, failure)
                continue
            if ticket is None:
                turn.is_written = True
                self._note(opened.device, None)
            else:
                turn.tickets.append((opened, ticket))

    def put_gauges(self, numbers: Numbers) -> None:
        """Set the gauges of the devices that are enabled and of those that fail."""
        for device in self._enabled:
            put(numbers, "cloudid_audit_device_failing", device.name in self._failing, (device.name,))

    def close(self) -> None:
        """End all chains, and close all files and connections. The next entries open them again."""
        self._write_turn()
        for opened in self._opened.values():
            self._close(opened)

    async def _finish(self, turn: _Turn) -> None:
        """Wait until one device has the entries. Raises `RecordFailed` with the last reason if none has."""
        for opened, ticket in turn.tickets:
            try:
                await ticket.written()
            except OSError as failure:
                turn.reason = _reason_of(failure)
                self._note(opened.device, failure)
            else:
                self._note(opened.device, None)
                return
        raise RecordFailed(turn.reason)

    def _adopt(self, devices: Sequence[Device], *, is_trial: bool) -> None:
        """Write to these devices from now on. In a trial, only register them, because the last one is being tested."""
        known = {name: opened.device for name, opened in self._opened.items()}
        for device in devices:
            if known.get(device.name) != device:
                if device.name in known:
                    self._remove(device.name)
                self._opened[device.name] = self._open(device)
                if device.declared:
                    self._release_files()
        names = {device.name for device in devices}
        for name in [name for name in self._opened if name not in names]:
            self._remove(name)
        if not is_trial:
            self._enabled = devices
            self._entry_devices = [self._opened[device.name] for device in self._enabled if device.takes_entries]
        if not self._is_signing:
            self._is_signing = True
            self._runtime.start(self._sign_now_and_then)

    def _release_files(self) -> None:
        """Close the files of requests. Each checks again whether its file belongs to a device of the settings."""
        for opened in self._opened.values():
            if isinstance(opened, FileDevice) and not opened.device.declared:
                self._close(opened)

    def _open(self, device: Device) -> Opened:
        is_stdout = device.type == STDOUT or device.options.get("file_path") == STDOUT
        if device.type == "socket" or (is_stdout and not _is_file(1)):
            return StreamDevice(device, self._process, self._spread, self._runtime, self._note)
        return FileDevice(device, self._process, self._spread, self._runtime, self._holder_of)

    def _holder_of(self, device: Device, status: os.stat_result) -> str:
        """Return the device that already writes to this file, so that no other device may, or an empty text.

        Devices in the settings take precedence over devices of requests, and earlier devices over later ones.
        """
        is_before = True
        for name, other in self._opened.items():
            if other.device.name == device.name:
                is_before = False
                continue
            comes_first = is_before if other.device.declared == device.declared else other.device.declared
            if comes_first and isinstance(other, FileDevice) and other.has(status):
                return name
        return ""

    def _remove(self, name: str) -> None:
        opened = self._opened.pop(name)
        opened.is_removed = True
        self._close(opened)

    def _close(self, opened: Opened) -> None:
        try:
            opened.close()
        except OSError as failure:
            self._note(opened.device, failure)

    def _note(self, device: Device, failure: OSError | None) -> None:
        """Report when a device begins to fail and when it works again."""
        if failure is None:
            if device.name in self._failing:
                self._failing.discard(device.name)
                self.report("audit device works again", device=device.name)
        elif device.name not in self._failing:
            self._failing.add(device.name)
            self.report("audit device failed", device=device.name, reason=str(failure))

    def _spread(self, checkpoints: Sequence[bytes]) -> None:
        """Send checkpoints to the devices and the program that receive only checkpoints."""
        for opened in self._opened.values():
            if not opened.device.takes_entries:
                try:
                    for checkpoint in checkpoints:
                        opened.pass_on(checkpoint)
                    self._note(opened.device, None)
                except OSError as failure:
                    self._note(opened.device, failure)
        if self.checkpoint_command:
            self._for_command += checkpoints
            if not self._is_commanding:
                self._is_commanding = True
                self._runtime.start(self._command)

    async def _command(self) -> None:
        try:
            while self._for_command:
                content = b"".join(self._for_command)
                self._for_command.clear()
                reason = await self._runtime.in_thread(self._run_command, content)
                if reason:
                    self.report("audit checkpoint command failed", reason=reason)
        finally:
            self._is_commanding = False

    def _run_command(self, content: bytes) -> str:
        try:
            ended = subprocess.run(
                self.checkpoint_command,
                input=content,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=COMMAND_SECONDS,
                check=False,
                env=programs.environment(),
            )
        except (OSError, subprocess.SubprocessError) as error:
            return type(error).__name__
        return f"exit code {ended.returncode}" if ended.returncode else ""

    async def _sign_now_and_then(self) -> None:
        never = self._runtime.new_event()
        while True:
            await self._runtime.wait(never, EVERY_SECONDS)
            for opened in tuple(self._opened.values()):
                try:
                    opened.sign()
                except OSError as failure:
                    self._note(opened.device, failure)


def _reason_of(failure: OSError) -> str:
    return failure.strerror or str(failure)


def _is_file(fd: int) -> bool:
    """Return whether writing never waits for a reader."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(fd))
