"""Where documents are published: a folder, and an address that takes PUT, on both runtimes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from cloudid_core.effects import Document
from cloudid_core.errors import PublicationFailed
from cloudid_servers.host import documents
from cloudid_servers.host.host import Host

from .opened import RUNTIMES, on, serving
from .shelf import CREDENTIAL, HEADER, QUERY, Shelf

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)
NAME: Final = "v1/identity/oidc/.well-known/keys"


@contextmanager
def folder(path: Path) -> Iterator[str]:
    (path / "www").mkdir()
    yield str(path / "www")


@contextmanager
def address(path: Path) -> Iterator[str]:
    with serving(Shelf()) as url:
        yield f"{url}/base"


Places = Callable[[Path], AbstractContextManager[str]]
EACH = pytest.mark.parametrize("places", [folder, address])


def credential(path: Path, text: str = CREDENTIAL) -> str:
    file = path / "credential"
    file.write_text(text)
    return str(file)


@EACH
def test_a_document_replaces_the_one_that_was_read_and_no_other(runtime: str, tmp_path: Path, places: Places) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to(place, credential(tmp_path))
        assert await host.read_document(NAME) is None
        await host.write_document(NAME, b"first", None)
        first = await host.read_document(NAME)
        assert first is not None
        assert first.body == b"first"
        await host.write_document(NAME, b"second", first)
        for older in (None, first):
            with pytest.raises(PublicationFailed, match="a different document"):
                await host.write_document(NAME, b"first", older)
        found = await host.read_document(NAME)
        assert found is not None
        assert found.body == b"second"

    with places(tmp_path) as place:
        on(runtime, scenario)


def test_documents_that_are_written_into_a_folder_at_the_same_time_wait_for_each_other(
    runtime: str, tmp_path: Path
) -> None:
    """Both issuers publish at the same instant, and their folders may have to be made."""
    names = [f"v1/identity/oidc/{number}/keys" for number in range(20)]

    async def scenario(host: Host) -> None:
        host.publish_to(str(tmp_path), "")
        outcomes: list[Exception | None] = []
        done = host.new_event()

        async def write(name: str) -> None:
            try:
                await host.write_document(name, b"{}", None)
                outcomes.append(None)
            except PublicationFailed as failure:
                outcomes.append(failure)
            if len(outcomes) == len(names):
                done.set()

        with (tmp_path / ".lock").open("ab") as other_server:
            fcntl.flock(other_server, fcntl.LOCK_EX)
            for name in names:
                host.start(partial(write, name))
            await host.sleep(0.1)
        await done.wait()
        assert outcomes == [None] * len(names)

    on(runtime, scenario)


def test_a_folder_that_stays_locked_is_reported(runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "LOCK_SECONDS", 0.05)

    async def scenario(host: Host) -> None:
        host.publish_to(str(tmp_path), "")
        with (tmp_path / ".lock").open("ab") as other_server:
            fcntl.flock(other_server, fcntl.LOCK_EX)
            with pytest.raises(PublicationFailed, match="cannot be written"):
                await host.write_document(NAME, b"{}", None)

    on(runtime, scenario)


def test_files_are_for_everybody_and_nothing_else_is_left(runtime: str, tmp_path: Path) -> None:
    """Also where the server's umask is tight."""

    async def scenario(host: Host) -> None:
        host.publish_to(place, "")
        await host.write_document(NAME, b"document", None)

    before = os.umask(0o077)
    try:
        with folder(tmp_path) as place:
            on(runtime, scenario)
    finally:
        os.umask(before)
    file = Path(place) / NAME
    assert [each.name for each in file.parent.iterdir()] == ["keys"]
    assert file.stat().st_mode & 0o777 == 0o644
    assert {parent.stat().st_mode & 0o777 for parent in list(file.parents)[:4]} == {0o755}


def test_a_folder_that_is_not_there_is_told_and_not_made(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to(str(tmp_path / "gone"), "")
        assert await host.read_document(NAME) is None
        with pytest.raises(PublicationFailed, match="No such file"):
            await host.write_document(NAME, b"document", None)

    on(runtime, scenario)
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("status", [301, 401, 403, 500])
def test_what_an_address_answers_is_told_and_followed_nowhere(runtime: str, tmp_path: Path, status: int) -> None:
    shelf = Shelf()
    shelf.status = status

    async def scenario(host: Host) -> None:
        host.publish_to(place, credential(tmp_path))
        with pytest.raises(PublicationFailed, match=f"status {status}"):
            await host.write_document(NAME, b"document", None)

    with serving(shelf) as place:
        on(runtime, scenario)
    assert shelf.documents == {}


def test_an_address_that_nobody_has_is_told(runtime: str) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to("http://127.0.0.1:1", "")
        with pytest.raises(PublicationFailed, match="not answered"):
            await host.read_document(NAME)

    on(runtime, scenario)


def test_an_address_without_strong_tags_takes_documents_all_the_same(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to(place, credential(tmp_path))
        await host.write_document(NAME, b"first", None)
        first = await host.read_document(NAME)
        assert first == Document(b"first", "")
        await host.write_document(NAME, b"second", first)

    shelf = Shelf(tells_tags=False)
    with serving(shelf) as place:
        on(runtime, scenario)
    assert list(shelf.documents.values()) == [b"second"]


@pytest.mark.parametrize("text", [None, "s3cret without a name\n", "\xff", "Name: a\rb\x01\n", "?a b\n"])
def test_a_credential_that_cannot_be_used_is_never_shown(runtime: str, tmp_path: Path, text: str | None) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to("http://127.0.0.1:1", credential(tmp_path, text) if text else str(tmp_path / "none"))
        with pytest.raises(PublicationFailed) as failed:
            await host.read_document(NAME)
        assert "publish_credential_file" in str(failed.value)
        assert "s3cret" not in str(failed.value)

    on(runtime, scenario)


def test_no_failure_and_no_repr_shows_the_credential(runtime: str, tmp_path: Path) -> None:
    async def scenario(host: Host) -> None:
        host.publish_to("http://127.0.0.1:1", credential(tmp_path))
        with pytest.raises(PublicationFailed) as failed:
            await host.write_document(NAME, b"document", None)
        shown = f"{failed.value!r} {failed.value.__context__!r} {host.published!r}"
        assert HEADER not in shown
        assert QUERY not in shown

    on(runtime, scenario)
