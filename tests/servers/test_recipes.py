"""The recipes: the store conforms, also between hosts and with lost answers; a one-shot host serves and cleans up."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

import pytest

from cloudid_core import Secret, Settings, initialise, run_now
from cloudid_core.effects import MOST_COMMITTED
from cloudid_core.errors import Conflict, OutcomeUnknown, StoreFailed
from cloudid_core.testing import check_host_now
from tests.pages.blocks import python_of

HOST, _, FUNCTION, TRANSACTION = python_of("docs/how-to/recipes.md")
[STORE] = python_of("docs/how-to/write-a-store.md")
RECIPES: Final = (STORE, FUNCTION)
KEY: Final = "5a" * 32


class Engine:
    """Values in memory. A stamp is a digest of the value, as an object store's may be."""

    def __init__(self, down: type[Exception]) -> None:
        self.values: dict[str, bytes] = {}
        self.down = down
        self.lock = threading.Lock()
        self.faults: Iterator[str] = iter(())
        """What goes wrong at the next swaps: "lost" (its answer), "late" (it arrives later), or nothing."""
        self.late: list[tuple[str, str | None, bytes]] = []

    def get(self, name: str) -> tuple[bytes, str] | None:
        value = self.values.get(name)
        return None if value is None else (value, sha256(value).hexdigest())

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def delete(self, name: str) -> None:
        self.values.pop(name, None)

    def swap(self, name: str, stamp: str | None, value: bytes) -> bool:
        fault = next(self.faults, "")
        if fault == "late":
            self.late.append((name, stamp, value))
            raise self.down
        with self.lock:
            found = self.get(name)
            is_current = (found and found[1]) == stamp
            if is_current:
                self.values[name] = value
        if fault == "lost":
            raise self.down
        return is_current


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the page defines."""
    monkeypatch.setenv("CLOUDID_MASTER_KEY", KEY)
    names: dict[str, Any] = {"print": lambda event: None}
    exec("\n\n".join((HOST, *RECIPES)), names)
    return names


@pytest.fixture
def engine(page: dict[str, Any]) -> Engine:
    return Engine(page["EngineDown"])


@pytest.fixture
def store(page: dict[str, Any], engine: Engine) -> Any:
    return page["OptimisticStore"](engine)


def test_the_largest_commit_fits_a_transaction_of_100_operations() -> None:
    names: dict[str, Any] = {}
    exec(TRANSACTION, names)
    keys = [f"{number}" for number in range(MOST_COMMITTED)]
    expects = {key: number % 2 for number, key in enumerate(keys[:60])}
    items = names["transaction"]("t", 7, expects, dict.fromkeys(keys[30:80], b""), tuple(keys[80:]))
    assert len(items) == MOST_COMMITTED + 1 <= 100
    kinds = [kind for item in items for kind in item]
    assert [kinds.count(kind) for kind in ("ConditionCheck", "Put", "Delete")] == [30, 51, 10]
    assert items[0]["ConditionCheck"]["ConditionExpression"] == "attribute_not_exists(entry)"
    assert items[1]["ConditionCheck"]["ExpressionAttributeValues"] == {":expected": {"N": "1"}}
    assert items[-1]["Put"]["Item"]["version"] == {"N": "8"}


def test_the_store_conforms(page: dict[str, Any], store: Any) -> None:
    host = page["OneShotHost"](store)
    check_host_now(host)
    host.http.close()


def test_what_is_replaced_or_deleted_leaves_nothing_behind(store: Any, engine: Engine) -> None:
    first = store.commit({}, {"a": b"1", "b": b"2"}, ())
    store.commit({"a": first}, {"a": b"3"}, ("b",))
    with pytest.raises(Conflict):
        store.commit({"a": first}, {"a": b"4"}, ())
    assert sorted(name.partition("-")[0] for name in engine.values) == ["root", "value"]


def test_a_value_that_is_gone_for_good_is_a_failed_store(store: Any, engine: Engine) -> None:
    store.commit({}, {"a": b"1"}, ())
    engine.delete(next(name for name in engine.values if name.startswith("value-")))
    with pytest.raises(StoreFailed):
        store.read("a")


def test_no_update_is_lost_between_writers(page: dict[str, Any], engine: Engine) -> None:
    """Each adds one to the same entry, many times, in a thread of its own."""
    stores = [page["OptimisticStore"](engine) for _ in range(4)]
    stores[0].commit({}, {"count": b"0"}, ())

    def add(store: Any) -> None:
        for _ in range(25):
            while True:
                entry = store.read("count")
                try:
                    store.commit({"count": entry.version}, {"count": b"%d" % (int(entry.value) + 1)}, ())
                except (Conflict, StoreFailed):
                    continue
                break

    threads = [threading.Thread(target=add, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].read("count").value == b"100"


@pytest.mark.parametrize("fault, written", [("lost", True), ("late", False)])
def test_after_a_lost_answer_the_outcome_no_longer_changes(
    store: Any, engine: Engine, fault: str, written: bool
) -> None:
    engine.faults = iter([fault])
    with pytest.raises(OutcomeUnknown):
        store.commit({"a": 0}, {"a": b"1"}, ())
    assert (store.read("a") is not None) == written
    engine.faults = iter(())
    assert not any(engine.swap(*swap) for swap in engine.late), "it came too late"
    assert (store.read("a") is not None) == written


def test_an_engine_that_is_down_is_a_failed_store(store: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(name: str) -> None:
        raise engine.down

    monkeypatch.setattr(engine, "get", down)
    calls: list[Callable[[], object]] = [
        lambda: store.read("a"),
        lambda: store.list("", "", 1),
        lambda: store.commit({}, {"a": b""}, ()),
    ]
    for call in calls:
        with pytest.raises(StoreFailed):
            call()


def test_each_request_has_a_host_of_its_own(page: dict[str, Any], store: Any, engine: Engine) -> None:
    host = page["OneShotHost"](store)
    root = run_now(initialise(Settings(master_key=Secret(KEY))), host).reveal()
    host.http.close()

    def ask(method: str, path: str, body: object = None, token: str = root) -> tuple[int, Any]:
        content = b"" if body is None else json.dumps(body).encode()
        status, _, answer = page["answer"](
            engine, method, f"/v1/{path}", {"X-Service-Token": token}, content, "127.0.0.1"
        )
        return status, json.loads(answer) if answer else None

    assert ask("GET", "auth/token/lookup-self", token="other")[0] == 403
    status, created = ask("POST", "auth/token/create", {"policies": ["default"], "ttl": "1h"})
    assert status == 200
    token = created["auth"]["client_token"]
    assert ask("GET", "auth/token/lookup-self", token=token)[1]["data"]["policies"] == ["default"]
    before = len(engine.values)
    assert ask("POST", "auth/token/revoke", {"token": token})[0] == 204
    assert ask("GET", "auth/token/lookup-self", token=token)[0] == 403
    for _ in range(2):
        assert page["clean_up"](engine) > 0
    assert len(engine.values) <= before + 5
