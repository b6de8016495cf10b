"""The end of a mount: dead at once, then undone at the provider, then wiped; whatever happens meanwhile."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from cloudid_core.background.loop import Handler
from cloudid_core.context import queue
from cloudid_core.context.queue import Job
from cloudid_core.credentials import RootCredential
from cloudid_core.deadline import Deadline
from cloudid_core.errors import CloudidError
from cloudid_core.leases.retirement import wipe_mount
from cloudid_core.mounts import MountTable
from cloudid_core.rotation.advance import advance
from cloudid_core.store import keys
from cloudid_core.testing import Crashed, FaultKind, every_fault
from tests.engines import engine_config
from tests.logins import configure_logins, log_in
from tests.simulation.invariants import assert_background_expects_what_it_changes, check_in_the_end
from tests.simulation.operations import copy_of, furnished, operator_credentials, planned_twice, with_leases
from tests.simulation.recorded import RecordedInstallation

from ..secrets_engine.interleaving import interleaved

CRASHES = frozenset({FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER})


def table(service: RecordedInstallation) -> MountTable:
    found = service.peek(service.service.context.records.find(keys.MOUNTS, MountTable))
    assert found is not None
    return found.record


def disable(service: RecordedInstallation, path: str = "sys/mounts/cloud") -> None:
    service.give_back("")
    service.must("DELETE", path)


def assert_wiped(service: RecordedInstallation, mount_id: str) -> None:
    assert service.keys(keys.mount(mount_id)) == []
    assert table(service).with_storage(mount_id) is None
    check_in_the_end(service)


def test_leases_and_kept_applications_go_before_the_storage() -> None:
    """The configuration is there for as long as it is needed to undo something."""
    service = copy_of(with_leases())
    mount = table(service).by_path["cloud"]
    leases = list(service.answered)
    disable(service)
    assert service.store.read(keys.config(mount.id))
    for lease_id in leases:
        assert service.ask("PUT", "sys/leases/renew", {"lease_id": lease_id}).status == 400
    disabled_at = service.clock
    service.converge()
    assert service.clock < disabled_at + 1800, "nobody waited for the leases to run out"
    assert_wiped(service, mount.id)
    assert service.ask("LIST", "sys/leases/lookup").status == 404


def test_nothing_is_wiped_while_a_request_may_be_alive_that_found_the_mount() -> None:
    service = RecordedInstallation()
    mount = table(service).by_path["cloud"]
    disable(service)
    service.tick()
    assert mount.id in table(service).retired
    service.advance(service.settings.request_deadline)
    service.tick()
    assert mount.id in table(service).retired
    service.converge()
    assert_wiped(service, mount.id)


def test_while_a_lease_cannot_be_revoked_the_mount_stays_as_it_is() -> None:
    """It stays retired until the provider removes its objects."""
    service = copy_of(with_leases())
    mount = table(service).by_path["cloud"]
    provider, service.provider = service.provider, None
    disable(service)
    for _ in range(4):
        service.advance(max(1.0, service.tick() - service.clock))
    assert mount.id in table(service).retired
    assert service.store.read(keys.config(mount.id))
    service.must("POST", "sys/mounts/cloud", {"type": "cloud"})
    service.provider = provider
    service.converge()
    assert_wiped(service, mount.id)
    assert "cloud" in table(service).by_path


def test_the_tokens_of_an_authentication_method_end_with_it() -> None:
    """And so do their children and their leases."""
    service = copy_of(furnished())
    rule = (
        'path "cloud/creds/fresh" { capabilities = ["read"] }\npath "auth/token/create" { capabilities = ["update"] }'
    )
    service.must("PUT", "sys/policies/acl/app", {"policy": rule})
    token = login(service)
    child = service.must("POST", "auth/token/create", {}, token).auth["client_token"]
    for each in (token, child):
        service.must("GET", "cloud/creds/fresh", token=each)
    mount = table(service).by_path["auth/cloud"]
    disable(service, "sys/auth/cloud")
    for each in (token, child):
        assert service.ask("GET", "auth/token/lookup-self", token=each).status == 403
    service.converge()
    assert_wiped(service, mount.id)
    assert len(service.keys(keys.TOKENS)) == 1, "only the root token is left"
    assert service.ask("LIST", "sys/leases/lookup").status == 404


def test_the_end_of_an_authentication_method_without_tokens_commits_nothing_for_them() -> None:
    service = copy_of(furnished())
    disable(service, "sys/auth/cloud")
    service.converge()
    assert service.in_background
    assert_background_expects_what_it_changes(service)


def login(service: RecordedInstallation) -> str:
    """The token of a machine."""
    machine = configure_logins(service, token_policies="app")
    token: str = log_in(service, machine)["client_token"]
    return token


def disable_and_wipe(service: RecordedInstallation) -> None:
    disable(service)
    for _ in range(6):
        again = service.tick()
        service.advance(max(1.0, again - service.clock))


def test_a_crash_anywhere_only_delays_the_end_of_a_mount() -> None:
    """After a restart the background continues where it was; no provider object and no entry is left."""
    start = RecordedInstallation()
    configured(start)
    for number, service in enumerate(every_fault(disable_and_wipe, lambda: copy_of(start), kinds=CRASHES)):
        mount_id = table(service).by_path["cloud"].id
        try:
            disable_and_wipe(service)
        except Crashed:
            service.restart()
        except CloudidError:
            pytest.fail(f"run {number} met more than its crash")
        if mount_id in table(service).by_id:
            disable(service)
        service.converge()
        assert_wiped(service, mount_id)
    assert number > 50


def configured(service: RecordedInstallation) -> None:
    """One role that keeps an application, and one lease."""
    service.must("POST", "cloud/config", engine_config(service))
    role = {"application_object_id": service.scene["applications"][1]["object_id"], "ttl": "1h"}
    service.must("POST", "cloud/roles/existing", role)
    service.must("GET", "cloud/creds/existing")
    service.converge()


def test_a_rotation_that_is_given_up_while_its_mount_is_wiped_leaves_no_secret() -> None:
    """One lane looks for what is left. Before each of its effects, another gives the new secret to the journal."""
    start = RecordedInstallation()
    start.must("POST", "cloud/config", engine_config(start))
    for at in count():
        service, mount_id = retired_while_rotating(start)
        give_up = partial(do_now, service, queue.ROTATION, advance)
        _, effects = interleaved(service, wipe_mount(job(service, queue.MOUNT)), {at: [give_up]})
        if at >= effects:
            break
        service.converge()
        assert_wiped(service, mount_id)
    assert at > 5


def retired_while_rotating(start: RecordedInstallation) -> tuple[RecordedInstallation, str]:
    """A copy whose engine is disabled before its new root secret is proven, when only the background works on it."""
    service = copy_of(start)
    mount_id = table(service).by_path["cloud"].id
    service.behave(delays={"sign_in": 1000})
    assert service.ask("POST", "cloud/rotate-root", x_service_deadline="5").status == 202
    disable(service)
    service.advance(service.settings.request_deadline + service.settings.request_grace + 1)
    return service, mount_id


def do_now(service: RecordedInstallation, kind: str, handler: Handler) -> None:
    service.perform(handler(job(service, kind)))


def job(service: RecordedInstallation, kind: str) -> Job:
    """The only due work of a kind, as the background would begin it now."""
    (key,) = service.due(kind)
    _, _, mount_id, ref = queue.parse(key)
    return Job(
        context=service.context,
        key=key,
        mount_id=mount_id,
        ref=ref,
        now=service.clock,
        deadline=Deadline(service.clock + 60),
        fence=queue.NO_FENCE,
    )


@pytest.mark.parametrize("path", ["cloud", "auth/cloud"])
def test_a_former_root_secret_goes_with_its_mount(path: str) -> None:
    """The operator has written another one over it. That one stays: it is not the service's."""
    service = copy_of(planned_twice())
    service.must("POST", f"{path}/rotate-root")
    service.advance(400)
    service.tick()
    former = root_of(service, path).client_secret.reveal()
    own = operator_credentials(service, 0)
    service.taken_over.add(own["client_secret"])
    service.must("POST", f"{path}/config", own)
    assert service.has(own["client_id"], former)
    service.give_back("")
    assert service.ask("DELETE", f"sys/{'' if path.startswith('auth/') else 'mounts/'}{path}").status == 204
    assert not service.has(own["client_id"], former)
    service.converge()
    check_in_the_end(service)
    assert service.accepts(**own)


def test_a_former_root_secret_that_another_mount_uses_stays() -> None:
    service = copy_of(planned_twice())
    service.must("POST", "cloud/rotate-root")
    former = root_of(service, "cloud")
    secret = former.client_secret.reveal()
    service.must("POST", "auth/cloud/config", {"client_secret": secret, "rotation_period": 0})
    service.must("POST", "cloud/config", {"client_secret": operator_credentials(service, 0)["client_secret"]})
    disable(service)
    service.converge()
    assert service.accepts(former.client_id, secret)


def test_a_mount_whose_configuration_was_deleted_is_gone_at_once() -> None:
    """Its last root secret is left: there is nothing to remove it with."""
    service = copy_of(planned_twice())
    service.must("POST", "auth/cloud/rotate-root")
    service.advance(400)
    service.tick()
    for path in ("auth/cloud/config", "sys/auth/cloud"):
        assert service.ask("DELETE", path).status == 204


def root_of(service: RecordedInstallation, path: str) -> RootCredential:
    return next(root for mount, root in service.roots if mount.path == path)


def test_disabling_a_mount_twice_ends_it_once() -> None:
    """The second request finds nothing to do."""
    service = RecordedInstallation()
    first, second = (service.spawn(service.asking("DELETE", "sys/mounts/cloud")) for _ in range(2))
    service.settle()
    assert (first.result().status, second.result().status) == (204, 204)
    assert len([key for key in service.keys(keys.DUE) if "/mount/" in key]) == 1
