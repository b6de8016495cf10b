"""Machines that start at once, at a provider that admits few reads: a server in one process, over sockets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from cloudid_servers.provider_simulator import Simulator, start
from tests.waiting import PATIENT

from .running import SERVERS, Running, initialise
from .story import RESOURCE, login_form

pytestmark = pytest.mark.one_server

RATE = 3
BUCKET = 13 * RATE
"""Four seconds' reads more than the server counts on: reads may arrive closer together than they were sent."""
MACHINES = BUCKET + 1
"""Too few for a list of the subscription to be worth it."""

SETTINGS = f"""
[server]
listen = "127.0.0.1:0"
store = "store.db"
key_file = "key"
log_level = "error"

[service]
provider_read_rate = {RATE}
"""


@pytest.mark.parametrize("server", SERVERS)
def test_every_new_machine_is_in_with_its_first_login_and_costs_one_read(server: str, tmp_path: Path) -> None:
    """They are more than the provider admits at once. No read is repeated: one that was throttled would be refused."""
    settings = tmp_path / "cloudid.toml"
    with start(Simulator()) as cloud, httpx.Client(**PATIENT) as client:
        forms = [
            login_form(
                cloud.url,
                client.post(
                    f"{cloud.url}/simulator/machines", json={"name": f"new-{number}", "resource_group": f"g-{number}"}
                ).json(),
            )
            for number in range(MACHINES)
        ]
        settings.write_text(SETTINGS)
        root = initialise(server, settings)
        with Running(f"cloudid_servers.{server}", "--settings", str(settings), "--provider", cloud.url) as running:
            world = client.get(f"{cloud.url}/simulator/world").json()
            application = {name: world["applications"][0][name] for name in ("client_id", "client_secret")}
            documents = {
                "config": {**application, "tenant_id": world["tenant"], "resource": RESOURCE, "max_retries": 0},
                "role/far": {"bound_locations": [world["machines"][-1]["location"]]},
            }
            for path, document in documents.items():
                answer = client.post(
                    f"{running.url}/v1/auth/cloud/{path}", json=document, headers={"x-service-token": root}
                )
                assert answer.is_success, answer.text

            def log_in(form: dict[str, str] | None) -> int:
                assert form is not None
                return client.post(f"{running.url}/v1/auth/cloud/login", json={**form, "role": "far"}).status_code

            client.post(f"{cloud.url}/simulator/behaviour", json={"throttle": {"arm_reads": [BUCKET, RATE]}})
            with ThreadPoolExecutor(MACHINES) as pool:
                assert set(pool.map(log_in, forms)) == {200}
        counts = client.get(f"{cloud.url}/simulator/requests").json()
    assert counts["arm_reads"] == {"admitted": MACHINES, "throttled": 0}
