"""One service may be used by several threads at a time, each of which runs its programs to their end."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, Final

from cloudid_core import MemoryStore, Request, Secret, Service, Settings, initialise, open_service, run_now
from tests.core.never_waits import NeverWaits

THREADS: Final = 8
ROUNDS: Final = 25
SETTINGS: Final = Settings(master_key=Secret("5a" * 32))


class LockedStore(MemoryStore):
    """A store that threads share: one commit or list at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def list(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        with self._lock:
            return super().list(prefix, after, limit)

    def commit(self, expects: Mapping[str, int], puts: Mapping[str, bytes], deletes: Any) -> int:
        with self._lock:
            return super().commit(expects, puts, deletes)


def ask(service: Service, host: NeverWaits, method: str, path: str, token: str, body: object = None) -> tuple[int, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    response = run_now(service.handle(Request(method, f"/v1/{path}", {"x-service-token": token}, content)), host)
    return response.status, json.loads(response.body) if response.body else None


def test_eight_threads_use_one_service() -> None:
    host = NeverWaits()
    host.store = LockedStore()
    run_now(initialise(SETTINGS, Secret("root")), host)
    service = run_now(open_service(SETTINGS), host)
    failures: list[object] = []
    request_ids: list[str] = []

    def work(number: int) -> None:
        try:
            for round_ in range(ROUNDS):
                form = {"display_name": f"t{number}-{round_}", "policies": ["default"]}
                status, made = ask(service, host, "POST", "auth/token/create", "root", form)
                assert status == 200, made
                token = made["auth"]["client_token"]
                status, own = ask(service, host, "GET", "auth/token/lookup-self", token)
                assert own["data"]["display_name"] == f"token-t{number}-{round_}"
                assert ask(service, host, "POST", "auth/token/revoke-self", token)[0] == 204
                assert ask(service, host, "GET", "auth/token/lookup-self", token)[0] == 403
                request_ids.extend((made["request_id"], own["request_id"]))
                if not number:
                    run_now(service.tick(), host)
        except Exception as failure:  # noqa: BLE001  # shown below, in the test's thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(set(request_ids)) == 2 * THREADS * ROUNDS
