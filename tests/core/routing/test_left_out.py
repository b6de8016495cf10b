"""Paths of existing services that are left out: each is said to be, and none is forgotten."""

from __future__ import annotations

from typing import Final

import pytest

from cloudid_core.catalog import CATALOG
from cloudid_core.mounts import BUILT_IN
from cloudid_core.routing.left_out import LEFT_OUT, reason_of
from tests.installation import Installation
from tests.tokens import new_token

THEIRS: Final = """
    audit audit/a audit-hash/a auth auth/a auth/a/tune capabilities capabilities-accessor capabilities-self
    config/auditing/request-headers config/auditing/request-headers/a config/control-group config/cors
    config/reload/a config/state/sanitized config/ui/custom-messages config/ui/headers config/ui/headers/a
    control-group/authorize control-group/request decode-token events/subscribe/a experiments external-keys/configs
    generate-recovery-token/attempt generate-root generate-root/attempt generate-root/update
    generate-root-token/attempt ha-status health host-info in-flight-req init internal/counters/activity
    internal/counters/entities internal/counters/requests internal/counters/tokens internal/inspect/request
    internal/inspect/router/a internal/specs/openapi internal/ui/mounts internal/ui/mounts/a internal/ui/namespaces
    internal/ui/resultant-acl key-status leader leases leases/count leases/lookup leases/lookup/a leases/renew
    leases/renew/a leases/revoke leases/revoke/a leases/revoke-force/a leases/revoke-prefix/a leases/tidy
    license/status locked-users locked-users/a/unlock/b loggers loggers/a managed-keys/a metrics mfa/validate
    monitor mounts mounts/a mounts/a/tune namespaces namespaces/a namespaces/api-lock/lock plugins/catalog
    plugins/catalog/auth/a plugins/pins plugins/reload/backend plugins/runtimes/catalog policies/acl policies/acl/a
    policies/detailed/acl policies/egp policies/password policies/password/a policies/password/a/generate
    policies/rgp policy policy/a pprof pprof/heap quotas/config quotas/lease-count quotas/lease-count/a
    quotas/rate-limit quotas/rate-limit/a raw/a rekey/backup rekey/init rekey/update rekey/verify
    rekey-recovery-key/init remount remount/status/a renew renew/a replication/status revoke revoke/a revoke-force/a
    revoke-prefix/a rotate rotate/config rotate/keyring rotate/keyring/config rotate/recovery/init rotate/root
    rotate/root/init seal seal-status sealwrap/rewrap step-down storage/raft/configuration storage/raft/join
    storage/raft/snapshot sync/config tools/hash tools/random unseal utilization-report version-history
    workflows/manage wrapping/lookup wrapping/pubkey wrapping/rewrap wrapping/unwrap wrapping/wrap
""".split()
"""The paths below `sys` that existing services have, by their documentation; `a` and `b` stand for names."""

ELSEWHERE: Final = ("cubbyhole/a", "identity/entity", "identity/entity/id/a", "identity/group", "identity/mfa/method")
ROUTES: Final = {mount.path: CATALOG.of(mount).routes for mount in BUILT_IN}


def is_offered(path: str) -> bool:
    first, _, rest = path.partition("/")
    return first in ROUTES and bool(ROUTES[first].at(rest))


@pytest.mark.parametrize("path", [*(f"sys/{path}" for path in THEIRS), *ELSEWHERE])
def test_a_path_of_existing_services_is_offered_or_left_out_for_a_reason(path: str) -> None:
    assert is_offered(path) is not bool(reason_of(path))


@pytest.mark.parametrize("path", LEFT_OUT)
def test_what_is_left_out_is_not_there_and_says_why(path: str) -> None:
    """To whom a good token lets ask; without one all paths answer alike."""
    world = Installation()
    for asked in (path, f"{path}/more"):
        for method in ("GET", "PUT", "LIST"):
            reply = world.ask(method, asked)
            assert reply.status == 404
            assert LEFT_OUT[path] in reply.body["errors"][0]
        assert world.ask("GET", asked, token="").body["errors"] == ["permission denied"]
        assert world.ask("GET", asked, token=new_token(world, policies=["default"])).body["errors"] == [
            "permission denied"
        ]
    assert not is_offered(path)


def test_a_path_that_nobody_has_has_no_reason() -> None:
    assert reason_of("sys/nothing") == reason_of("") == ""
    assert Installation().ask("GET", "sys/nothing").body == {"errors": ["unsupported path"]}


def test_reasons_know_of_the_page_and_of_every_store() -> None:
    """They said that there are no web pages, and no store but SQLite and PostgreSQL."""
    assert 'the setting "ui"' in reason_of("sys/config/ui/headers")
    assert not [path for path, why in LEFT_OUT.items() if "no web pages" in why]
    assert not [path for path, why in LEFT_OUT.items() if "PostgreSQL" in why and "etcd" not in why]
