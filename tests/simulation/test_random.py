"""Random lives of an installation: operations, faults, slow and forgetful clouds, clock jumps and restarts, by seed.

`pytest tests/simulation/test_random.py --seeds 10000` goes through more of them; `--seed 17` replays one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final, TypeAlias

import pytest

from cloudid_core.errors import CloudidError
from cloudid_core.provider import PROOFS
from cloudid_core.secrets_engine.token_secret import LIFE as TOKEN_SECRET_LIFE
from cloudid_core.testing import Crashed, Fault, FaultKind
from tests.engines import engine_config
from tests.installation import SETTLE_TIME

from .invariants import check_always, check_in_the_end
from .operations import (
    ROLES,
    TAKEN_AWAY,
    TOGETHER,
    TOKEN_ROLES,
    TOKEN_SCOPE,
    Operation,
    altered,
    change_static_proofs,
    copy_of,
    delete_kept_role,
    delete_static_role,
    die_amid_rotation,
    end_token,
    federated,
    forget_leases,
    furnished,
    issue_to_nobody,
    kept_role,
    leave_children,
    leave_static_secret,
    let_tokens_end,
    lose_audit_device,
    lose_outcome,
    lose_the_new_root_secret,
    move,
    of_lost_key,
    operator_credentials,
    planned_twice,
    prove_login_method_as,
    purge,
    reach_quota,
    renew_keys,
    renew_token,
    roll_over,
    root_of_engine,
    rotate,
    rotate_often,
    rotate_static_role,
    wrap_for_nobody,
    write_configuration,
    write_static_role,
)
from .recorded import RecordedInstallation

STEPS: Final = 14
REPLAY: Final = "pytest tests/simulation/test_random.py --seed {seed}"

TROUBLES: Final[tuple[dict[str, Any], ...]] = (
    {"delay": 1000.0, "drop": True},
    {"status": 503},
    {"status": 403, "code": "Denied"},
)
LATE: Final = {place: [0, SETTLE_TIME] for place in ("reads", "lists", "bin")}
CLOUDS: Final = (
    {"preset": "immediate"},
    {"preset": "realistic"},
    {"preset": "realistic", "delays": LATE},
    {"preset": "realistic", "delays": LATE, "upsert": 501},
)
"""The last two are as slow as one may be: a look that finds nothing proves nothing before the settle time. The last one
has no upsert besides, which would tell the truth at once."""

Step: TypeAlias = Callable[[RecordedInstallation, Random], object]


def live(seed: int) -> RecordedInstallation:
    """A whole life; the same for the same seed."""
    dice = Random(seed)
    installation = copy_of(dice.choice((furnished, furnished, planned_twice, federated))(), seed)
    installation.behave(**dice.choice(CLOUDS))
    for _ in range(STEPS):
        if dice.random() < 0.7:
            installation.trouble = Fault(len(installation.trace) + dice.randrange(60), dice.choice(list(FaultKind)))
        try:
            dice.choice(LIFE)(installation, dice)
        except Crashed:
            installation.restart()
        except CloudidError:
            pass
        check_always(installation)
    installation.trouble = None
    installation.heal()
    prove_login_method_as(installation, 0)  # until then a static role of its application has nothing rotated
    installation.advance(2 * SETTLE_TIME)
    installation.converge()
    check_in_the_end(installation)
    return installation


def issue(installation: RecordedInstallation, dice: Random) -> None:
    installation.ask("GET", f"cloud/creds/{dice.choice(ROLES)}")


def issue_several(installation: RecordedInstallation, dice: Random) -> None:
    installation.ask_all([f"cloud/creds/{dice.choice(ROLES)}" for _ in range(3)])


def revoke_one(installation: RecordedInstallation, dice: Random) -> None:
    if installation.answered:
        lease_id = dice.choice(sorted(installation.answered))
        installation.revoke(lease_id, {"sync": dice.random() < 0.7})


def renew_one(installation: RecordedInstallation, dice: Random) -> None:
    """A renewal also shortens a lease where limits have become tighter: who is not answered counts on nothing more."""
    if installation.answered:
        lease_id, increment = dice.choice(sorted(installation.answered)), dice.randrange(1, 10_000)
        installation.count_on(lease_id, increment)
        is_answered = False
        try:
            reply = installation.ask("PUT", "sys/leases/renew", {"lease_id": lease_id, "increment": increment})
            is_answered = reply.status < 500
        finally:
            if not is_answered:
                installation.count_on(lease_id, 0)


def revoke_all(installation: RecordedInstallation, dice: Random) -> None:
    installation.revoke_below("cloud/creds")


def issue_while_it_is_taken_away(installation: RecordedInstallation, dice: Random) -> None:
    """An operator changes or removes role, mount or configuration amid the issue."""
    role = dice.choice(ROLES)
    method, path, body, gone = dice.choice(TAKEN_AWAY)
    if "mounts" not in path:  # `replace_engine` brings a new one
        installation.give_back("/kept/")
        at = len(installation.trace) + dice.randrange(60)
        installation.take_away_meanwhile(at, gone.format(role), method, path.format(role), body)
    try:
        installation.ask("GET", f"cloud/creds/{role}")
    finally:  # the host may be killed meanwhile
        installation.give_back("/kept/")
        installation.meanwhile_at = None
        installation.closed.clear()


def ask_together(installation: RecordedInstallation, dice: Random) -> None:
    """Operators and clients, who may ask for the same thing."""
    requests = [dice.choice(TOGETHER) for _ in range(2)]
    requests.append(dice.choice((*TOGETHER, *requests, *requests)))
    try:
        installation.ask_together(requests)
    finally:
        installation.give_back("")


def break_down(installation: RecordedInstallation, dice: Random) -> None:
    """Parts of the cloud fail or hang until they are healed."""
    families = dice.choice([("arm",), ("graph",), ("arm", "graph"), ("login",)])
    installation.fail(*families, **dice.choice(TROUBLES))


def heal(installation: RecordedInstallation, dice: Random) -> None:
    installation.heal()


def replace_engine(installation: RecordedInstallation, dice: Random) -> None:
    """Disable the engine, and enable another one at its path, with the same credentials and roles."""
    _, secret = root_of_engine(installation)
    installation.taken_over.add(secret)
    installation.disable("cloud")
    installation.ask("POST", "sys/mounts/cloud", {"type": "cloud"})
    write_configuration(installation, secret)


def use_second_engine(installation: RecordedInstallation, dice: Random) -> None:
    """It has the applications of the first: one to prove itself with, one for a role and a static role."""
    own = operator_credentials(installation, 0)
    installation.taken_over.add(own["client_secret"])
    pointing = {
        "application_object_id": installation.scene["applications"][1]["object_id"],
        "token_scopes": TOKEN_SCOPE,
        "proof": dice.choice(sorted(PROOFS)),
    }
    installation.ask("POST", "sys/mounts/second", {"type": "cloud"})
    installation.ask("POST", "second/config", {**engine_config(installation), **own})
    installation.ask("POST", "second/roles/existing", pointing)
    installation.ask("POST", "second/static-roles/app", {**pointing, "rotation_period": 86_400})
    installation.ask_all(["second/creds/existing", "second/token/existing"])


def rotate_in_second_engine(installation: RecordedInstallation, dice: Random) -> None:
    use_second_engine(installation, dice)
    for path in ("second/rotate-root", "second/rotate-role/app"):
        installation.ask("POST", path, {"force": dice.random() < 0.5})
    installation.advance(400)
    installation.tick()


def disable_second_engine(installation: RecordedInstallation, dice: Random) -> None:
    """An operator has just written another root secret. The one that it has is left."""
    try:
        installation.ask("POST", "second/config", operator_credentials(installation, 0))
    finally:
        secrets = (root.client_secret for mount, root in installation.roots if mount.path == "second")
        installation.taken_over.update(secret.reveal() for secret in secrets if secret)
    installation.disable("second")
    installation.advance(200)
    installation.tick()


def reconcile(installation: RecordedInstallation, dice: Random) -> None:
    """It finds nothing that a record lists, whatever is under way."""
    installation.ask("POST", f"{dice.choice(['cloud', 'second'])}/reconcile", {"max": 100})


def tidy(installation: RecordedInstallation, dice: Random) -> None:
    """And lets leases live for another time, and has entries sealed under a new key."""
    installation.ask("POST", "sys/mounts/cloud/tune", {"max_lease_ttl": dice.choice(["30m", "768h"])})
    for path in ("sys/leases/tidy", "auth/token/tidy", "sys/rotate"):
        installation.ask("POST", path)
    installation.tick()


def write_role(installation: RecordedInstallation, dice: Random) -> None:
    kept_role(installation, dice.choice([(0,), (1,), (0, 1)]))


def change_login_method(installation: RecordedInstallation, dice: Random) -> None:
    """It proves itself as the engine does, or as the application that a role points at."""
    prove_login_method_as(installation, dice.randrange(2))


def point_elsewhere(installation: RecordedInstallation, dice: Random) -> None:
    """A role points at one of the operators' applications, or is refused."""
    target = dice.choice(installation.scene["applications"][:2])["object_id"]
    installation.ask("POST", "cloud/roles/existing", {"application_object_id": target, "ttl": "1h"})


def give_tokens(installation: RecordedInstallation, dice: Random) -> None:
    """A role gives tokens from now on, or no more."""
    role = dice.choice(TOKEN_ROLES)
    installation.ask("POST", f"cloud/roles/{role}", {"token_scopes": dice.choice([TOKEN_SCOPE, TOKEN_SCOPE, ""])})


def ask_for_tokens(installation: RecordedInstallation, dice: Random) -> None:
    installation.ask_all([f"cloud/token/{dice.choice(TOKEN_ROLES)}" for _ in range(3)])


def wait_until_secrets_for_tokens_are_old(installation: RecordedInstallation, dice: Random) -> None:
    installation.give_back("")
    installation.advance(dice.choice([TOKEN_SECRET_LIFE / 2 + 1, TOKEN_SECRET_LIFE + 1]))
    installation.tick()


def lose_signing_keys(installation: RecordedInstallation, dice: Random) -> None:
    """Until what is broken is healed."""
    installation.damage_signing_keys(dice.choice((altered, of_lost_key)))


def automate(installation: RecordedInstallation, dice: Random) -> None:
    installation.ask("POST", "cloud/config", {"rotation_period": dice.choice([0, 60, 3600, 86_400])})


def wait(installation: RecordedInstallation, dice: Random) -> None:
    """From a second to a day, and a round of background work."""
    installation.advance(dice.choice([1.0, 30.0, 120.0, SETTLE_TIME, 3700.0, 100_000.0]))
    installation.tick()


def kill(installation: RecordedInstallation, dice: Random) -> None:
    installation.restart()


def told(operation: Operation) -> Step:
    """An operation as a step, that is the same whatever the dice say."""
    return lambda installation, _: operation(installation)


LIFE: Final[tuple[Step, ...]] = (
    issue,
    issue,
    issue_several,
    issue_while_it_is_taken_away,
    ask_together,
    ask_together,
    revoke_one,
    renew_one,
    revoke_all,
    break_down,
    heal,
    heal,
    replace_engine,
    use_second_engine,
    rotate_in_second_engine,
    rotate_in_second_engine,
    disable_second_engine,
    reconcile,
    reconcile,
    tidy,
    write_role,
    change_login_method,
    change_login_method,
    point_elsewhere,
    give_tokens,
    give_tokens,
    ask_for_tokens,
    ask_for_tokens,
    wait_until_secrets_for_tokens_are_old,
    lose_signing_keys,
    automate,
    wait,
    wait,
    kill,
    *map(
        told,
        (
            change_static_proofs,
            delete_kept_role,
            delete_static_role,
            die_amid_rotation,
            end_token,
            forget_leases,
            issue_to_nobody,
            leave_children,
            leave_static_secret,
            let_tokens_end,
            lose_audit_device,
            lose_outcome,
            lose_the_new_root_secret,
            move,
            purge,
            reach_quota,
            renew_keys,
            renew_token,
            roll_over,
            rotate,
            rotate_often,
            rotate_static_role,
            wrap_for_nobody,
            write_static_role,
        ),
    ),
)
"""What happens; twice what should happen more often."""


def test_lives(seeds: range) -> None:
    """Nothing is leaked, lost or locked out, in any of many lives."""
    go_through_lives(seeds, live, REPLAY)


def go_through_lives(seeds: range, live: Callable[[int], object], replay: str) -> None:
    for seed in seeds:
        try:
            live(seed)
        except BaseException as failure:
            failure.add_note("replay with: " + replay.format(seed=seed))
            raise


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_tells_the_same_life(seed: int) -> None:
    assert live(seed).transcript() == live(seed).transcript()
