"""The promises, written once.

They rest on one assumption: after the declared settle time, the directory's look-ups tell the whole truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Final

from cloudid_core.background.journal import UNDER_WAY, Intent
from cloudid_core.credentials.signing_keys import PLUGINS, find_signing_keys
from cloudid_core.effects import Commit
from cloudid_core.leases.record import Lease
from cloudid_core.mounts import MountTable, mount_table
from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.rotation.record import Rotation
from cloudid_core.secrets_engine.roles import Role
from cloudid_core.secrets_engine.static_roles import StaticRole
from cloudid_core.store import keys
from cloudid_core.tokens import find_token
from cloudid_core.wrapping import Wrapped
from cloudid_servers.provider_simulator.engine.ledger import LedgerEntry

from .recorded import RecordedInstallation, is_intent

SECRET_TROUBLE: Final = ("secret:", "provider:", "mount:")
"""How the reasons start of an attempt that could not remove the secret."""
PURGED: Final = "/purged/"
"""Part of the ids of leases whose role deletes permanently."""
LOCKED_OUT: Final = "every persisted root secret is dead"


def check_always(installation: RecordedInstallation) -> None:
    """What holds at every instant, whatever has just gone wrong."""
    assert_background_is_fenced(installation)
    assert_background_expects_what_it_changes(installation)
    assert_not_locked_out(installation)
    assert_root_secrets_work(installation)
    assert_nothing_of_its_own_was_lent(installation)
    assert_nothing_was_lent_too_late(installation)
    assert_no_credential_without_lease(installation)
    assert_credentials_live_as_long_as_promised(installation)
    assert_secrets_die_first(installation)
    assert_identity_tokens_are_believed(installation)
    assert_roles_can_ask_for_tokens(installation)
    assert_static_secrets_work(installation)


def check_in_the_end(installation: RecordedInstallation) -> None:
    """What holds besides once the faults have stopped and the background has come to an end."""
    check_always(installation)
    assert_nobody_lost_the_root(installation)
    assert_all_work_is_done(installation)
    assert_leases_rest_on_what_lives(installation)
    assert_leases_are_known(installation)
    assert_nothing_waits_to_be_purged(installation)
    assert_nothing_leaked(installation)
    assert_ended_credentials_are_dead(installation)


def check_recovery(installation: RecordedInstallation) -> None:
    """What holds when the faults stop: at once, and when the background has come to an end."""
    installation.heal()
    check_always(installation)
    installation.converge()
    check_in_the_end(installation)


def assert_background_is_fenced(installation: RecordedInstallation) -> None:
    """Nothing of the background is committed by a node that has lost the leadership.

    But one that stood still may have something looked for that it made too late. And whoever changes an application's
    certificates takes their turn, which the leader and all others know each other by.
    """
    unfenced = [
        commit
        for commit in installation.in_background
        if keys.LEADER_TERM not in commit.expects
        and not (installation.has_stalled and is_abandonment(commit))
        and not is_turn(commit)
    ]
    assert unfenced == [], "background work commits without its fence"


def assert_background_expects_what_it_changes(installation: RecordedInstallation) -> None:
    """No change that a request has made to a lease or an intent meanwhile is lost; nothing is committed for nothing."""
    assert installation.overwritten == [], "background work does not expect what it changes"
    assert all(commit.puts or commit.deletes for commit in installation.in_background), "a commit changes nothing"


def assert_all_work_is_done(installation: RecordedInstallation) -> None:
    """No lease is left that has expired or is being revoked, and no intent."""
    for lease in leases(installation):
        assert lease.is_alive(installation.clock), f"{lease.id} is still there: {lease.reason}"
    assert [key for key in installation.keys("") if is_intent(key)] == []


def assert_leases_rest_on_what_lives(installation: RecordedInstallation) -> None:
    """A token that is gone, or has no parent any more, has no lease; nor has a mount that is gone, or has lent it to a
    batch token.
    """
    mounts = installation.peek(mount_table(installation.service.context.records)).record
    for lease in leases(installation):
        assert lease.mount_id in {mount.id for mount in mounts.mounts}, f"{lease.id} outlives its mount"
        assert lease.batch_mount_id in mounts.by_id or not lease.batch_mount_id, (
            f"{lease.id} outlives its token's mount"
        )
        token_id = lease.token_id
        while token_id:
            token = installation.peek(find_token(installation.service.context, token_id))
            assert token is not None, f"{lease.id} outlives its token"
            assert token.record.is_alive(installation.clock), f"{lease.id} outlives its token"
            token_id = token.record.parent


def assert_leases_are_known(installation: RecordedInstallation) -> None:
    """A lease has reached its client, or waits to be unwrapped by a token that lives."""
    records = installation.service.context.records
    known = {*installation.answered, *installation.unheard}
    for key in installation.keys("wrapped/"):
        wrapped = installation.peek(records.find(key, Wrapped))
        token = installation.peek(find_token(installation.service.context, key.removeprefix("wrapped/")))
        if wrapped is not None and token is not None and token.record.is_alive(installation.clock):
            known.add(wrapped.record.new_lease)
    assert [lease.id for lease in leases(installation) if lease.id not in known] == [], "no client knows of a lease"


def assert_nothing_was_lent_too_late(installation: RecordedInstallation) -> None:
    """No lease was made of a mount or role, or for a token, that was gone by then."""
    assert installation.lent_too_late == [], "something was lent of what was gone"


def assert_nothing_waits_to_be_purged(installation: RecordedInstallation) -> None:
    """The provider's bin has nothing that was lent to be deleted for good."""
    lent = {answered.client_id for answered in installation.answered.values() if PURGED in answered.lease_id}
    deleted = (gone.item for gone in installation.simulator.world.directory.deleted.values())
    assert [item.id for item in deleted if item.client_id in lent] == []


def assert_secrets_die_first(installation: RecordedInstallation) -> None:
    """An attempt that is over and had no trouble with the secret has killed it, whatever else went wrong."""
    for lease in leases(installation):
        answered = installation.answered.get(lease.id)
        is_over = lease.attempts > 0 and lease.reason != UNDER_WAY
        if answered is not None and is_over and not any(word in lease.reason for word in SECRET_TROUBLE):
            assert not installation.accepts(answered.client_id, answered.client_secret), lease.id


def leases(installation: RecordedInstallation) -> Iterator[Lease]:
    for key in installation.keys(""):
        if key.startswith(keys.LEASES):
            lease = installation.peek(installation.service.context.records.find_fresh(key, Lease))
            assert lease is not None
            yield lease.record


def is_turn(commit: Commit) -> bool:
    """Whether a commit begins or ends the change of a list of certificates, and nothing else."""
    return all(key.startswith(keys.certificates("")) for key in (*commit.expects, *commit.puts, *commit.deletes))


def is_abandonment(commit: Commit) -> bool:
    return bool(commit.puts) and all("/intent/" in key for key in (*commit.puts, *commit.deletes))


def assert_nothing_leaked(installation: RecordedInstallation) -> None:
    """Every object that we made at the provider and that lives is held by a lease, a role, or a rotation."""
    held = frozenset(held_ids(installation))
    assert [made for made in installation.simulator.world.ledger.alive() if not is_held(made, held)] == []


GO_WITH_OTHERS: Final = ("principal", "password", "certificate", "federation")


def is_held(made: LedgerEntry, held: frozenset[str]) -> bool:
    """Principals and passwords come and go with their application; everything else is held by itself."""
    return made.id in held or (made.kind in GO_WITH_OTHERS and not held.isdisjoint(made.of))


def assert_no_credential_without_lease(installation: RecordedInstallation) -> None:
    """Credentials that reached a client have a lease for as long as it may use them."""
    for answered in installation.answered.values():
        if answered.is_counted_on(installation.clock):
            assert installation.store.read(keys.lease(answered.lease_id)), f"no lease {answered.lease_id}"


def assert_ended_credentials_are_dead(installation: RecordedInstallation) -> None:
    """Credentials whose lease is gone no longer work."""
    for answered in installation.answered.values():
        if installation.store.read(keys.lease(answered.lease_id)) is None:
            assert not installation.accepts(answered.client_id, answered.client_secret), answered.lease_id


def assert_credentials_live_as_long_as_promised(installation: RecordedInstallation) -> None:
    """No credentials die early."""
    for answered in installation.answered.values():
        if answered.is_counted_on(installation.clock):
            assert installation.accepts(answered.client_id, answered.client_secret), answered.lease_id


def assert_not_locked_out(installation: RecordedInstallation) -> None:
    """Of the root secrets that are persisted for a mount, the provider accepts at least one."""
    for client_id, secrets in root_secrets(installation):
        assert any(installation.accepts(client_id, secret) for secret in secrets), LOCKED_OUT


def assert_root_secrets_work(installation: RecordedInstallation) -> None:
    """The root secret in use is accepted after every step of a rotation, and now."""
    assert installation.locked_out + installation.dead_roots == [], "a root secret in use is dead"


def assert_nobody_lost_the_root(installation: RecordedInstallation) -> None:
    """What somebody else has removed is no longer in use: the service has gone back to the secret before it."""
    installation.removed_by_others.clear()
    assert installation.dead_roots == [], "a root secret that was removed is still in use"


def assert_nothing_of_its_own_was_lent(installation: RecordedInstallation) -> None:
    """No credential reached a client of an application that the service proves itself with."""
    assert installation.lent_of_its_own == [], "credentials of the service itself were lent"


def assert_identity_tokens_are_believed(installation: RecordedInstallation) -> None:
    """No key signs before the cloud can know it, and none goes before the tokens that it signed, but damaged ones."""
    assert installation.disbelieved == 0, "a key signed before it was known"
    if installation.keys_known_at == inf:
        return
    found = installation.peek(find_signing_keys(installation.service.context.records, PLUGINS))
    assert found is not None
    published = {key.kid for key in found.record.keys}
    last_sent_at = installation.keys_lost_at + installation.service.context.settings.request_deadline
    for accepted in installation.simulator.world.assertions:
        is_ours = accepted["subject"].startswith("plugin-identity:")
        is_lost = accepted["accepted_at"] <= last_sent_at  # what was under way then was signed before
        if is_ours and not is_lost and installation.clock < accepted["accepted_at"] + accepted["lifetime"]:
            assert accepted["kid"] in published, "a token outlives its key"


def assert_roles_can_ask_for_tokens(installation: RecordedInstallation) -> None:
    """What a role keeps for tokens stands at the provider until its end."""
    alive = {made.id for made in installation.simulator.world.ledger.alive()}
    for role in engine_roles(installation):
        kept = role.token_secret
        if kept is not None and installation.clock < kept.ends_at:
            assert kept.provisioned.password_key_id in alive, "what a role keeps is dead"


def assert_static_secrets_work(installation: RecordedInstallation) -> None:
    """What a static role holds is accepted, unless it has run out while nothing could replace it."""
    alive = {made.id for made in installation.simulator.world.ledger.alive()}
    records = installation.service.context.records
    for key in installation.keys("mount/"):
        if "/static-role/" in key:
            role = installation.peek(records.find(key, StaticRole))
            if role is not None and role.record.client_secret:
                _, mount_id, _, name = key.split("/")
                rotation = installation.peek(records.find_fresh(keys.rotation(mount_id, name), Rotation))
                held = rotation.record.key_of(role.record.client_secret) if rotation else None
                assert (held.id if held else "") in alive, "what a static role holds is dead"


def engine_roles(installation: RecordedInstallation) -> Iterator[Role]:
    for key in installation.keys(""):
        if "/role/" in key and _is_engine(installation, key):
            role = installation.peek(installation.service.context.records.find(key, Role))
            if role is not None:
                yield role.record


def root_secrets(installation: RecordedInstallation) -> Iterator[tuple[str, list[str]]]:
    """For each configured mount its client id, and every secret of it that is persisted."""
    records = installation.service.context.records
    for mount, root in installation.roots:
        if root.client_secret:
            rotation = installation.peek(records.find_fresh(keys.rotation(mount.id), Rotation))
            known = [key.secret for key in rotation.record.known_keys] if rotation else []
            yield root.client_id, [secret.reveal() for secret in (root.client_secret, *known)]


def held_ids(installation: RecordedInstallation) -> Iterator[str]:
    """The ids of everything at the provider that one of our records accounts for."""
    records = installation.service.context.records
    roots = installation.taken_over.union(*(secrets for _, secrets in root_secrets(installation)))
    for application in installation.simulator.world.directory.applications.all():
        yield from (password.key_id for password in application.passwords if password.secret in roots)
    for role in engine_roles(installation):
        for provisioned in role.held:
            yield from ids_of(provisioned)
    for key in installation.keys(""):
        if key.startswith(keys.LEASES):
            lease = installation.peek(records.find_fresh(key, Lease))
            assert lease is not None
            yield from ids_of(lease.record.provisioned)
        elif is_intent(key):
            intent = installation.peek(records.find_fresh(key, Intent))
            assert intent is not None
            yield from ids_of(intent.record.provisioned)
        elif key.endswith("/rotation") or key.partition("/static-rotation/")[1]:
            rotation = installation.peek(records.find_fresh(key, Rotation))
            assert rotation is not None
            yield from (key.id for key in rotation.record.known_keys)


def _is_engine(installation: RecordedInstallation, key: str) -> bool:
    mounts = installation.peek(installation.service.context.records.find(keys.MOUNTS, MountTable))
    assert mounts is not None
    mount = mounts.record.by_id.get(key.split("/")[1])
    return mount is not None and mount.kind == "secret"


def ids_of(provisioned: Provisioned) -> Iterator[str]:
    yield from (
        provisioned.application_id,
        provisioned.principal_id,
        provisioned.password_key_id,
        *provisioned.assignments,
    )
    for ids in provisioned.memberships.values():
        yield from (f"{one}/{provisioned.member_id}" for one in ids)
