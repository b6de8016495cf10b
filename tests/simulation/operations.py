"""The operations that are proven, each as a client would ask for it, and the installations that they start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from cloudid_core.context import queue
from cloudid_core.context.keyring import PUBLISHED_AHEAD
from cloudid_core.credentials import ISSUERS
from cloudid_core.credentials.signing_keys import LONGEST_MAX_AGE
from cloudid_core.secrets_engine.token_secret import LIFE, OVERLAP
from cloudid_core.store import keys
from cloudid_core.testing import Crashed
from cloudid_servers.provider_simulator.world.access import permit
from tests.engines import EVERYTHING, app_roles, engine_config, grants
from tests.installation import ISSUER, ROOT, SETTLE_TIME
from tests.logins import LOGIN, login_config, login_form
from tests.tokens import write_policy

from .invariants import PURGED, root_secrets
from .recorded import RecordedInstallation

Operation: TypeAlias = Callable[[RecordedInstallation], object]
ROLES: Final = ("fresh", "existing", "kept")
TOKEN_ROLES: Final = ("existing", "kept")
TOKEN_SCOPE: Final = "https://graph.microsoft.com/.default"
MOST_LEASES: Final = 1
MOST_TRIES: Final = 10
TAKEN_AWAY: Final = (
    ("DELETE", "cloud/roles/{}", None, "cloud/creds/{}/"),
    ("DELETE", "sys/mounts/cloud", None, "cloud/creds/"),
    ("POST", "cloud/roles/{}", {"ttl": "2h"}, "nothing"),
    ("POST", "cloud/config", {"root_password_ttl": "60d"}, "nothing"),
)
"""What an operator takes away or changes while a role lends: request, and how the ids start of what it had lent."""
TOGETHER: Final = (
    *(("GET", f"cloud/{path}", None) for path in ("creds/existing", "creds/kept", "token/existing", "token/kept")),
    ("POST", "cloud/roles/existing", {"token_scopes": ""}),
    ("POST", "cloud/roles/existing", {"token_scopes": TOKEN_SCOPE}),
    ("POST", "cloud/roles/existing", {"token_scopes": TOKEN_SCOPE, "proof": "certificate"}),
    ("DELETE", "cloud/roles/existing", None),
    ("POST", "cloud/roles/kept", {"azure_groups": "[]"}),
    ("DELETE", "cloud/roles/kept", None),
    ("POST", "cloud/static-roles/app", {"proof": "secret"}),
    ("POST", "cloud/static-roles/app", {"proof": "certificate"}),
    ("DELETE", "cloud/static-roles/app?remove_secret=true", None),
    ("POST", "cloud/static-creds/app/token", None),
    ("POST", "cloud/rotate-role/app", None),
    ("POST", "cloud/rotate-role/app", {"force": True}),
    ("POST", "cloud/rotate-root", None),
    ("POST", "cloud/rotate-root", {"force": True}),
    ("POST", "cloud/config", {"root_password_ttl": "60d"}),
)
"""What several may ask at the same time."""
SIGN_IN_DELAY: Final = 5000
"""Seconds after which a slow secret is accepted: the service has given it up by then."""
KEY_DOCUMENTS: Final = tuple(f"{issuer.path.removeprefix('/v1/')}/.well-known/keys" for issuer in ISSUERS)
BY_A_TOKEN: Final = "cloud/creds/existing"
"""What a federated engine can only do with an identity token."""
DUTY: Final = 150.0
"""Seconds after which the duty of a host that is gone has run out."""


@cache
def furnished() -> RecordedInstallation:
    """An installation whose engine is configured, with a role of each kind; to be copied, not to be used."""
    installation = RecordedInstallation()
    write_configuration(installation, installation.scene["applications"][0]["client_secret"])
    for role in ROLES:
        installation.must("GET", f"cloud/roles/{role}")
    installation.converge()
    return installation


def write_configuration(installation: RecordedInstallation, secret: str) -> None:
    """Configure the engine, and write a role of each kind."""
    world = installation.scene
    other = world["applications"][1]
    roles = msgspec.json.encode(grants(installation)).decode()
    ours = {"directory_roles": [{"role_name": "Directory Readers"}], "app_roles": app_roles(installation, 0)}
    apis = app_roles(installation, 0, 1)
    groups = msgspec.json.encode([{"object_id": world["groups"][0]["id"]}]).decode()
    ceiling = {**EVERYTHING, "allowed_directory_roles": ["Directory Readers"], "allowed_app_roles": apis}
    installation.ask("POST", "cloud/config", {**engine_config(installation), **ceiling, "client_secret": secret})
    installation.ask("POST", "cloud/roles/fresh", {"azure_roles": roles, "azure_groups": groups, **ours, "ttl": "1h"})
    installation.ask("POST", "cloud/roles/existing", {"application_object_id": other["object_id"], "ttl": "1h"})
    installation.ask("POST", "cloud/roles/kept", {"azure_roles": roles, **ours, "persist_app": True, "ttl": "1h"})


@cache
def with_leases() -> RecordedInstallation:
    """The same with a lease of each kind."""
    installation = copy_of(furnished())
    for role in ROLES:
        installation.must("GET", f"cloud/creds/{role}")
    return installation


@cache
def giving_tokens() -> RecordedInstallation:
    """The furnished installation, whose roles of one application give access tokens too."""
    installation = copy_of(furnished())
    for role in TOKEN_ROLES:
        installation.must("POST", f"cloud/roles/{role}", {"token_scopes": TOKEN_SCOPE})
    return installation


@cache
def with_token_secrets() -> RecordedInstallation:
    """The same after each has given one, and so has a secret of its own; and credentials."""
    return after_a_token_each(giving_tokens())


@cache
def with_static_role(proof: str = "secret") -> RecordedInstallation:
    """The furnished installation with a static role, whose key is replaced every day."""
    installation = copy_of(furnished())
    write_static_role(installation, proof)
    installation.must("POST", "cloud/static-creds/app/token")
    installation.converge()
    return installation


def with_static_certificate() -> RecordedInstallation:
    return with_static_role("certificate")


def with_static_federation() -> RecordedInstallation:
    return with_static_role("federated_credential")


def write_static_role(installation: RecordedInstallation, proof: str = "secret") -> None:
    target = installation.scene["applications"][1]["object_id"]
    fields = {"application_object_id": target, "rotation_period": 86_400, "token_scopes": TOKEN_SCOPE, "proof": proof}
    installation.ask("POST", "cloud/static-roles/app", fields)
    installation.tick()


def change_static_proofs(installation: RecordedInstallation) -> None:
    """To each other kind while the one before it still works, and tokens are asked for meanwhile."""
    for proof in ("certificate", "federated_credential", "secret"):
        write_static_role(installation, proof)
        installation.ask("POST", "cloud/static-creds/app/token")
    installation.advance(400)
    installation.tick()


def rotate_static_role(installation: RecordedInstallation) -> None:
    """Rotate on request, and again before the first secret is gone, and let the old ones go."""
    for _ in range(2):
        installation.ask("POST", "cloud/rotate-role/app", {"force": True})
    installation.advance(400)
    installation.tick()


def delete_static_role(installation: RecordedInstallation) -> None:
    """In the middle of a rotation, with all its secrets."""
    installation.ask("POST", "cloud/rotate-role/app")
    installation.ask("DELETE", "cloud/static-roles/app?remove_secret=true")
    installation.tick()


def leave_static_secret(installation: RecordedInstallation) -> None:
    """Delete a static role whose secret goes on."""
    secret = installation.ask("GET", "cloud/static-creds/app")
    if secret.status != 200:
        return
    installation.taken_over.add(secret.data["client_secret"])
    installation.ask("DELETE", "cloud/static-roles/app")
    installation.tick()


@cache
def giving_tokens_without_secrets(proof: str = "federated_credential") -> RecordedInstallation:
    """The furnished installation, whose roles of one application prove themselves by something else."""
    installation = copy_of(giving_tokens())
    for role in TOKEN_ROLES:
        installation.must("POST", f"cloud/roles/{role}", {"proof": proof})
    return installation


def giving_tokens_by_certificates() -> RecordedInstallation:
    return giving_tokens_without_secrets("certificate")


@cache
def with_federated_credentials() -> RecordedInstallation:
    return after_a_token_each(giving_tokens_without_secrets())


@cache
def with_certificates() -> RecordedInstallation:
    return after_a_token_each(giving_tokens_by_certificates())


def after_a_token_each(installation: RecordedInstallation) -> RecordedInstallation:
    installation = copy_of(installation)
    for role in TOKEN_ROLES:
        installation.must("GET", f"cloud/token/{role}")
        installation.must("GET", f"cloud/creds/{role}")
    return installation


@cache
def login_method() -> RecordedInstallation:
    """An installation whose authentication method is configured."""
    installation = RecordedInstallation()
    installation.must("POST", "auth/cloud/config", login_config(installation))
    return installation


@cache
def planned() -> RecordedInstallation:
    """The furnished installation, whose root secret is rotated every day."""
    installation = copy_of(furnished())
    installation.must("POST", "cloud/config", {"rotation_period": 86_400})
    return installation


@cache
def planned_twice() -> RecordedInstallation:
    """Both components use the same application with secrets of their own, and rotate them every day."""
    installation = copy_of(planned())
    own = {**operator_credentials(installation, 0), "rotation_period": 86_400}
    installation.must("POST", "auth/cloud/config", {**login_config(installation), **own})
    return installation


def operator_credentials(installation: RecordedInstallation, number: int) -> dict[str, str]:
    """A new secret of one of the cloud's applications, which may do what a root application may."""
    simulated = installation.simulator.world
    application = simulated.directory.application_of(installation.scene["applications"][number]["client_id"])
    assert application is not None
    principal = simulated.directory.principal_of(application.client_id)
    assert principal is not None
    permit(simulated, principal.id, reading=True, writing=True)
    now = installation.clock
    password = simulated.directory.add_password(application, "operator", now, now + 10**8)
    return {"client_id": application.client_id, "client_secret": password.secret}


def prove_login_method_as(installation: RecordedInstallation, number: int) -> None:
    """Let the login method prove itself as an application of the cloud; the role `existing` points at number 1."""
    own = operator_credentials(installation, number)
    installation.ask("POST", "auth/cloud/config", {**login_config(installation), **own})


@cache
def federated() -> RecordedInstallation:
    """The engine has no secret: it proves itself with identity tokens."""
    installation = copy_of(furnished())
    mount = installation.must("GET", "sys/mounts").data["cloud/"]
    federation = {
        "client_id": installation.scene["applications"][0]["client_id"],
        "issuer": f"{ISSUER}/v1/identity/oidc/plugins",
        "subject": f"plugin-identity:root:secret:{mount['accessor']}",
        "audience": "api://AzureADTokenExchange",
    }
    installation.cloud("POST", "/simulator/federations", federation)
    audience = {"client_secret": "", "identity_token_audience": federation["audience"], "identity_token_ttl": 86_400}
    installation.must("POST", "cloud/config", audience)
    installation.must("GET", "cloud/creds/existing")
    return installation


@cache
def published() -> RecordedInstallation:
    """The same, but the cloud cannot reach the service: it reads what is published."""
    installation = copy_of(federated())
    installation.restart(publishes_to="https://documents.test")
    installation.tick()
    return installation


def copy_of(original: RecordedInstallation, seed: int = 0) -> RecordedInstallation:
    """An independent installation in the same state, whose host has just started and taken over the duty.

    It draws nothing that was drawn for the original.
    """
    twin = RecordedInstallation.copy_of(original, original.seed + 1 + seed)
    twin.answered, twin.unheard = dict(original.answered), set(original.unheard)
    twin.advance(DUTY)
    twin.tick()
    return twin


def issue(role: str) -> Operation:
    return lambda installation: installation.ask("GET", f"cloud/creds/{role}")


def give_token(role: str) -> Operation:
    return lambda installation: installation.ask("GET", f"cloud/token/{role}")


def wait_for_proof(installation: RecordedInstallation) -> None:
    """What is made for the first token is accepted long after the request for it has ended."""
    installation.behave(delays={"sign_in": 600})
    for _ in range(3):
        installation.ask("GET", "cloud/token/existing")
        installation.advance(300)


def replace_token_secrets(installation: RecordedInstallation) -> None:
    """Tokens are asked for when the secrets for them are old, and the old ones go."""
    installation.give_back("")
    installation.advance(LIFE / 2 + 1)
    for role in TOKEN_ROLES:
        installation.ask("GET", f"cloud/token/{role}")
    installation.advance(OVERLAP + 1)
    installation.tick()


def change_proofs(installation: RecordedInstallation) -> None:
    """From what they are to secrets, and tokens are asked for with those."""
    for role in TOKEN_ROLES:
        installation.ask("POST", f"cloud/roles/{role}", {"proof": "secret"})
        installation.ask("GET", f"cloud/token/{role}")
    installation.tick()


def stop_giving_tokens(installation: RecordedInstallation) -> None:
    for role in TOKEN_ROLES:
        installation.ask("POST", f"cloud/roles/{role}", {"token_scopes": ""})
    installation.tick()


def delete_roles_that_give_tokens(installation: RecordedInstallation) -> None:
    """Credentials of the role's own application end with it, the others live on."""
    installation.give_back("/kept/")
    for role in TOKEN_ROLES:
        installation.ask("DELETE", f"cloud/roles/{role}")
    installation.tick()


def issue_to_nobody(installation: RecordedInstallation) -> None:
    """The answer could not be written: its host says so."""
    installation.ask_and_hang_up("cloud/creds/fresh")
    installation.tick()


def disable(installation: RecordedInstallation) -> None:
    """Take the whole engine away, with all that it holds."""
    installation.disable("cloud")
    installation.advance(200)
    installation.tick()


def rotate_login_method(installation: RecordedInstallation) -> None:
    installation.ask("POST", "auth/cloud/rotate-root")
    installation.advance(400)
    installation.tick()


def revoke(installation: RecordedInstallation) -> None:
    """Revoke everything that was answered."""
    for lease_id in installation.answered:
        installation.revoke(lease_id)
    installation.tick()


def become_what_a_role_points_at(installation: RecordedInstallation) -> None:
    """Nothing more is lent of that application, and what was lent can be revoked."""
    prove_login_method_as(installation, 1)
    installation.ask("GET", "cloud/creds/existing")
    target = installation.scene["applications"][1]["object_id"]
    installation.ask("POST", "cloud/roles/another", {"application_object_id": target})
    installation.ask("GET", "cloud/creds/another")
    revoke(installation)


def revoke_in_the_background(installation: RecordedInstallation) -> None:
    """Have everything revoked that was answered, and work it off."""
    for lease_id in installation.answered:
        installation.revoke(lease_id, {"sync": False})
    installation.tick()


def revoke_below_a_path(installation: RecordedInstallation) -> None:
    installation.revoke_below("cloud/creds")
    installation.tick()


def revoke_while_the_resource_manager_hangs(installation: RecordedInstallation) -> None:
    """The directory works: secrets are dead after the first attempt, although no answer is a success."""
    installation.fail("arm", delay=1000, drop=True)
    for lease_id in installation.answered:
        if "/fresh/" in lease_id:
            installation.give_back(lease_id)
            reply = installation.ask("PUT", f"sys/leases/revoke/{lease_id}", x_service_deadline="20")
            assert reply.status >= 300
            if not installation.is_struck:
                installation.assert_dead(lease_id)
    installation.heal()


def disable_while_the_cloud_refuses(installation: RecordedInstallation) -> None:
    """The path is free at once. A new root secret is written where the mount is retiring, and all is removed."""
    mounts = installation.ask("GET", "sys/mounts")
    secret = next(iter(root_secrets(installation)))[1][0]
    accessor = mounts.data["cloud/"]["accessor"] if mounts.status == 200 else ""
    installation.give_back("")
    installation.fail("arm", "graph", status=403, code="Denied")
    reply = installation.ask("DELETE", "sys/mounts/cloud")
    assert reply.status != 204
    installation.ask("POST", "sys/mounts/cloud", {"type": "cloud"})
    installation.heal()
    installation.ask("POST", f"sys/retiring/{accessor}/config", {"client_secret": secret})
    installation.advance(200)
    installation.tick()


def move(installation: RecordedInstallation) -> None:
    """To another path, where the engine lends, and back: however often the operator has to ask."""
    try:
        installation.ask("POST", "sys/remount", {"from": "cloud", "to": "moved"})
        installation.ask_all([f"moved/creds/{role}" for role in ROLES])
    finally:
        bring_back(installation)
        installation.give_back("moved/")  # they end with what is ended below the path that the engine has then


def bring_back(installation: RecordedInstallation) -> None:
    """The operator mends what is broken, until nothing is at the other path."""
    for _ in range(MOST_TRIES):
        try:
            installation.heal()
            reply = installation.ask("POST", "sys/remount", {"from": "moved", "to": "cloud"})
        except Crashed:
            installation.restart()
        else:
            if reply.status == 400:
                return
    raise AssertionError("the engine does not come back")


def renew_keys(installation: RecordedInstallation) -> None:
    """Others seal what is written, and make the tokens of later on."""
    installation.ask("POST", "sys/rotate")
    installation.ask("POST", "sys/rotate/tokens")
    installation.ask("GET", "cloud/creds/fresh")
    installation.pass_time(PUBLISHED_AHEAD)
    borrow(installation)


def expire(installation: RecordedInstallation) -> None:
    """Let all leases run out, and work them off."""
    installation.advance(3700)
    installation.tick()


def renew(installation: RecordedInstallation) -> None:
    for lease_id in installation.answered:
        installation.ask("PUT", "sys/leases/renew", {"lease_id": lease_id, "increment": 7200})


def rotate(installation: RecordedInstallation) -> None:
    """Rotate the root secret, and let the old one go."""
    installation.ask("POST", "cloud/rotate-root")
    installation.advance(400)
    installation.tick()


def lose_the_new_root_secret(installation: RecordedInstallation) -> None:
    """It is removed at the provider before the old one goes: the service goes back to the old one."""
    client_id, before = root_of_engine(installation)
    installation.ask("POST", "cloud/rotate-root")
    _, after = root_of_engine(installation)
    if after != before and installation.accepts(client_id, before):
        installation.remove_root_secret(client_id, after)
    installation.advance(400)
    installation.tick()


def root_of_engine(installation: RecordedInstallation) -> tuple[str, str]:
    """The client id and secret that it is configured with; empty if it has none."""
    roots = (root for mount, root in installation.roots if mount.path == "cloud" and mount.retired_at is None)
    return next(((root.client_id, root.client_secret.reveal()) for root in roots), ("", ""))


def rotate_often(installation: RecordedInstallation) -> None:
    """While the cloud learns so late of a secret that it does not find the one to be removed."""
    installation.ask("POST", "cloud/config", {"rotation_period": 60})
    installation.behave(delays={place: [SETTLE_TIME - 10, SETTLE_TIME] for place in ("reads", "writes")})
    try:
        for _ in range(4):
            installation.advance(61)
            installation.tick()
        installation.ask("POST", "cloud/config", {"rotation_period": 0})
    finally:
        installation.behave(delays={"reads": 0, "writes": 0})


def purge(installation: RecordedInstallation) -> None:
    """Lend what is deleted for good, and end it."""
    own = {"azure_roles": msgspec.json.encode(grants(installation)).decode(), "permanently_delete": True}
    installation.ask("POST", "cloud/roles/purged", own)
    installation.ask("GET", "cloud/creds/purged")
    for lease_id in [known for known in installation.answered if PURGED in known]:
        installation.revoke(lease_id)
    installation.tick()


def follow_plans(installation: RecordedInstallation) -> None:
    """Let the root secrets be rotated by their plans, and the old ones go."""
    installation.advance(86_401)
    installation.tick()
    installation.advance(400)
    installation.tick()


def roll_over(installation: RecordedInstallation) -> None:
    """Let a day go by, in which a signing key is followed by the next one, and prove it to the cloud."""
    installation.give_back("")
    installation.advance(86_401)
    installation.tick()
    installation.ask("GET", "cloud/creds/existing")


def roll_over_twice(installation: RecordedInstallation) -> None:
    """Two days, in which keys are published, sign and are followed."""
    for _ in range(2):
        roll_over(installation)
        installation.tick()
        installation.tick()


def altered(value: bytes) -> bytes:
    """What was sealed, with one bit of it turned."""
    return value[:-1] + bytes([value[-1] ^ 1])


def of_lost_key(value: bytes) -> bytes:
    """What was sealed under a key that the ring does not have."""
    return b"\xff\xff\xff\xff" + value[4:]


def damage_signing_keys(spoil: Callable[[bytes], bytes]) -> Operation:
    """Documents and tokens are asked for, and the next key is due. Then an operator has other keys made."""

    def operation(installation: RecordedInstallation) -> None:
        installation.give_back("")
        installation.damage_signing_keys(spoil)
        installation.advance(86_401)
        installation.tick()
        refused = [*(installation.ask("GET", path) for path in KEY_DOCUMENTS), installation.ask("GET", BY_A_TOKEN)]
        assert installation.is_struck or {tuple(reply.codes) for reply in refused} == {("entry_damaged",)}
        installation.heal()
        installation.tick()
        installation.advance(LONGEST_MAX_AGE + 1)
        statuses = [installation.ask("GET", path).status for path in (*KEY_DOCUMENTS, BY_A_TOKEN)]
        assert installation.is_struck or statuses == [200, 200, 200], "damaged keys cannot be replaced"

    return operation


def kept_role(installation: RecordedInstallation, subscriptions: tuple[int, ...], name: str = "kept") -> None:
    """Write a persisted role that reads some of the subscriptions, and has other memberships if it reads the second."""
    world = installation.scene
    scopes = [f"/subscriptions/{world['subscriptions'][number]}" for number in subscriptions]
    groups = [{"object_id": world["groups"][0]["id"]}] if 1 in subscriptions else []
    role = {
        "azure_roles": [{"role_name": "Reader", "scope": scope} for scope in scopes],
        "azure_groups": groups,
        "directory_roles": [{"role_name": "Directory Readers"}] if 0 in subscriptions else [],
        "app_roles": app_roles(installation, *subscriptions),
        "persist_app": True,
        "ttl": "1h",
    }
    installation.ask("POST", f"cloud/roles/{name}", role)


def change_kept_role(installation: RecordedInstallation) -> None:
    """Another assignment and a group, and the old assignment goes."""
    kept_role(installation, (1,))
    installation.tick()


def new_kept_role(installation: RecordedInstallation) -> None:
    kept_role(installation, (0,), "another")


def delete_kept_role(installation: RecordedInstallation) -> None:
    """Give up a role with its application, and so all passwords of it."""
    installation.give_back("/kept/")
    installation.ask("DELETE", "cloud/roles/kept")
    installation.tick()


def borrow(installation: RecordedInstallation, parent: str = ROOT, role: str = "fresh", **fields: object) -> str:
    """A new token asks for credentials; its text, empty if it could not be made."""
    asked_at = installation.clock
    created = installation.ask("POST", "auth/token/create", {"policies": ["root"], **fields}, parent)
    if created.status != 200:
        return ""
    token: str = created.auth["client_token"]
    reply = installation.ask("GET", f"cloud/creds/{role}", token=token)
    if reply.status == 200:
        installation.hang_on(reply.body["lease_id"], asked_at + (created.auth["lease_duration"] or inf))
    return token


def end_token(installation: RecordedInstallation) -> None:
    """Revoke the token that asked for credentials, and with it its child."""
    token = borrow(installation)
    borrow(installation, token, "existing")
    installation.give_back("")
    installation.ask("POST", "auth/token/revoke", {"token": token})
    installation.tick()


def let_tokens_end(installation: RecordedInstallation) -> None:
    """A token ends with its child; another one, which had nothing, is swept away."""
    borrow(installation, borrow(installation, ttl="10m"), "existing", ttl="5m")
    installation.ask("POST", "auth/token/create", {"ttl": "5m"})
    installation.advance(700)
    installation.tick()
    installation.ask("POST", "auth/token/tidy")
    installation.advance(30)
    installation.tick()


def renew_token(installation: RecordedInstallation) -> None:
    """Credentials live as long as their token, which is renewed."""
    before, asked_at = set(installation.answered), installation.clock
    token = borrow(installation, ttl="10m")
    if installation.ask("POST", "auth/token/renew-self", {"increment": "30m"}, token).status == 200:
        for lease_id in installation.answered.keys() - before:
            installation.hang_on(lease_id, asked_at + 1800)
    for seconds in (700, 1200):
        installation.advance(seconds)
        installation.tick()


def leave_children(installation: RecordedInstallation) -> None:
    """The token ends with its credentials; its child lives on, with those of its own."""
    token = borrow(installation)
    installation.give_back("")
    borrow(installation, token, "existing")
    installation.ask("POST", "auth/token/revoke-orphan", {"token": token})
    installation.tick()


def borrow_by_login(installation: RecordedInstallation) -> None:
    """A machine logs in and asks for credentials; then its method is disabled."""
    for role in ("service", "batch"):
        reply = installation.ask(
            "POST", LOGIN, {**login_form(installation, machine_of(installation)), "role": role}, ""
        )
        if reply.status == 200:
            installation.ask("GET", "cloud/creds/existing", token=reply.auth["client_token"])
    installation.give_back("")
    installation.die_after_commit("DELETE", "sys/auth/cloud")
    installation.advance(200)
    installation.tick()


def machine_of(installation: RecordedInstallation) -> Any:
    return installation.scene["machines"][0]


@cache
def with_logins() -> RecordedInstallation:
    """The furnished installation, whose machine may log in for a token of each type."""
    installation = copy_of(furnished())
    own = {**login_config(installation), **operator_credentials(installation, 0)}
    installation.must("POST", "auth/cloud/config", own)
    policy = write_policy(installation, "borrower", ("cloud/creds/*", ["read"]))
    bound = {"bound_subscription_ids": machine_of(installation)["subscription"], "token_policies": policy}
    for kind in ("service", "batch"):
        installation.must("POST", f"auth/cloud/role/{kind}", {**bound, "token_type": kind, "token_ttl": "30m"})
    return installation


def wrap_for_nobody(installation: RecordedInstallation) -> None:
    """Nobody unwraps the credentials: they end with the token that wraps them."""
    installation.ask("GET", "cloud/creds/fresh", x_service_wrap_ttl="60")
    installation.advance(61)
    installation.tick()


def reach_quota(installation: RecordedInstallation) -> None:
    """Several ask at the same time, and only as many get credentials as may."""
    reply = installation.ask("POST", "sys/quotas/lease-count/few", {"path": "cloud", "max_leases": MOST_LEASES})
    before = set(installation.leases())
    installation.ask_all(["cloud/creds/existing"] * (MOST_LEASES + 2))
    made = set(installation.leases()) - before
    assert reply.status != 204 or len(made) <= MOST_LEASES, "a quota is exceeded"
    installation.ask("DELETE", "sys/quotas/lease-count/few")


def forget_leases(installation: RecordedInstallation) -> None:
    """Drop leases while the cloud refuses; their objects are removed all the same."""
    installation.give_back("")
    installation.fail("arm", "graph", status=403, code="Denied")
    for lease_id in installation.answered:
        installation.ask("PUT", f"sys/leases/revoke-force/{lease_id}")
    installation.tick()
    installation.heal()
    installation.tick()


def lose_outcome(installation: RecordedInstallation) -> None:
    """Nobody can tell whether the lease was written, so it is ended."""
    installation.lost_outcome = keys.LEASES
    issue("existing")(installation)
    installation.lost_outcome = ""
    installation.tick()


def lose_audit_device(installation: RecordedInstallation) -> None:
    """What cannot be recorded is not answered, and what was made for it ends."""
    installation.ask("PUT", "sys/audit/file", {"type": "file", "options": {"file_path": "/var/log/audit.log"}})
    installation.is_deaf = True
    installation.ask("GET", "cloud/creds/fresh")
    installation.is_deaf = False
    installation.tick()


def die_amid_disable(installation: RecordedInstallation) -> None:
    installation.give_back("")
    installation.die_after_commit("DELETE", "sys/mounts/cloud")
    installation.advance(200)
    installation.tick()


def die_amid_issue(installation: RecordedInstallation) -> None:
    """What the host has sent arrives as late as it may, and shows as late as it may."""
    installation.behave(delays={place: [SETTLE_TIME, SETTLE_TIME] for place in ("reads", "lists")})
    asked_at, installation.dies_before = installation.clock, "/addPassword"
    with suppress(Crashed):
        issue("existing")(installation)
    installation.dies_before = ""
    installation.restart()
    installation.advance(asked_at + installation.settings.request_deadline + SETTLE_TIME + 1 - installation.clock)
    installation.tick()


def revoke_what_is_not_found_yet(installation: RecordedInstallation) -> None:
    """A replica has not learned of the application that it is to delete: the lease stays until it has."""
    issue("fresh")(installation)
    installation.fail("graph", path=".*/applications/", method="DELETE", status=404, code="Request_ResourceNotFound")
    revoke(installation)
    installation.heal()


def die_amid_rotation(installation: RecordedInstallation) -> None:
    installation.die_after_commit("POST", "cloud/rotate-root")
    installation.advance(400)
    installation.tick()


def follow_plan_while_the_cloud_refuses(installation: RecordedInstallation) -> None:
    installation.advance(86_401)
    installation.fail("graph", status=403, code="Denied")
    installation.tick()
    installation.heal()


def rotate_slowly(installation: RecordedInstallation, *meanwhile: Operation) -> None:
    """The new secret takes longer to be accepted than the service waits."""
    installation.behave(delays={"sign_in": [SIGN_IN_DELAY, SIGN_IN_DELAY]})
    try:
        installation.ask("POST", "cloud/rotate-root")
        for happen in meanwhile:
            happen(installation)
        for _ in range(3):
            installation.advance(2000)
            installation.tick()
    finally:
        installation.behave(delays={"sign_in": 0})


def change_configuration(installation: RecordedInstallation) -> None:
    """The operator configures another secret."""
    secret = operator_credentials(installation, 0)["client_secret"]
    installation.advance(SIGN_IN_DELAY)
    installation.taken_over.add(secret)
    installation.ask("POST", "cloud/config", {"client_secret": secret})


def drop_what_no_record_knows(installation: RecordedInstallation) -> None:
    """Entries of background work whose records are gone."""
    mount = installation.mount()
    names = (keys.due(installation.clock, kind, mount.id, "gone") for kind in queue.KINDS)
    installation.store.commit({}, dict.fromkeys(names, b""), ())
    installation.tick()


OPERATIONS: Final[Mapping[str, tuple[Callable[[], RecordedInstallation], Operation]]] = MappingProxyType(
    {
        "issue a fresh principal": (furnished, issue("fresh")),
        "issue a password of an existing application": (furnished, issue("existing")),
        "issue a password of a persisted application": (furnished, issue("kept")),
        "give the first token of an existing application": (giving_tokens, give_token("existing")),
        "give the first token of a persisted application": (giving_tokens, give_token("kept")),
        "give the first token by a federated credential": (giving_tokens_without_secrets, give_token("existing")),
        "give the first token of a persisted application by one": (giving_tokens_without_secrets, give_token("kept")),
        "change the proofs of roles": (with_federated_credentials, change_proofs),
        "delete roles with federated credentials": (with_federated_credentials, delete_roles_that_give_tokens),
        "disable an engine with federated credentials": (with_federated_credentials, disable),
        "wait for what is made for the first token": (giving_tokens, wait_for_proof),
        "give the first token by a certificate": (giving_tokens_by_certificates, give_token("existing")),
        "replace the certificates for tokens": (with_certificates, replace_token_secrets),
        "change certificates to secrets": (with_certificates, change_proofs),
        "delete roles with certificates": (with_certificates, delete_roles_that_give_tokens),
        "disable an engine with certificates": (with_certificates, disable),
        "replace the secrets for tokens": (with_token_secrets, replace_token_secrets),
        "stop giving tokens": (with_token_secrets, stop_giving_tokens),
        "delete roles that give tokens": (with_token_secrets, delete_roles_that_give_tokens),
        "disable an engine that gives tokens": (with_token_secrets, disable),
        "renew": (with_leases, renew),
        "revoke": (with_leases, revoke),
        "revoke in the background": (with_leases, revoke_in_the_background),
        "revoke below a path": (with_leases, revoke_below_a_path),
        "revoke while the resource manager hangs": (with_leases, revoke_while_the_resource_manager_hangs),
        "disable the engine while the cloud refuses": (with_leases, disable_while_the_cloud_refuses),
        "expire": (with_leases, expire),
        "move the engine": (with_leases, move),
        "renew the keys of the service": (with_leases, renew_keys),
        "become what a role points at": (with_leases, become_what_a_role_points_at),
        "rotate the root secret": (furnished, rotate),
        "lose the new root secret": (furnished, lose_the_new_root_secret),
        "rotate the root secret often": (furnished, rotate_often),
        "purge what was lent": (furnished, purge),
        "write a new persisted role": (furnished, new_kept_role),
        "change a persisted role": (furnished, change_kept_role),
        "delete a persisted role": (with_leases, delete_kept_role),
        "end the token that asked": (furnished, end_token),
        "let tokens end": (furnished, let_tokens_end),
        "renew the token that asked": (furnished, renew_token),
        "leave the children of a token": (furnished, leave_children),
        "borrow by logins, and disable their method": (with_logins, borrow_by_login),
        "wrap credentials for nobody": (furnished, wrap_for_nobody),
        "reach a quota": (furnished, reach_quota),
        "forget leases": (with_leases, forget_leases),
        "lose the outcome of an issue": (furnished, lose_outcome),
        "lose an audit device": (furnished, lose_audit_device),
        "die while the engine is disabled": (with_leases, die_amid_disable),
        "die amid an issue": (furnished, die_amid_issue),
        "revoke what is not found yet": (furnished, revoke_what_is_not_found_yet),
        "die while the root secret is rotated": (furnished, die_amid_rotation),
        "drop what no record knows": (furnished, drop_what_no_record_knows),
        "rotate by a plan while the cloud refuses": (planned, follow_plan_while_the_cloud_refuses),
        "rotate to a secret that is never accepted": (furnished, rotate_slowly),
        "change the configuration while a secret is proven": (
            furnished,
            lambda installation: rotate_slowly(installation, change_configuration),
        ),
        "disable the engine while a secret is proven": (
            furnished,
            lambda installation: rotate_slowly(installation, disable),
        ),
        "issue to a client that is gone": (furnished, issue_to_nobody),
        "disable the engine": (with_leases, disable),
        "rotate the root secret by a plan": (planned, follow_plans),
        "rotate two root secrets of one application by plans": (planned_twice, follow_plans),
        "roll signing keys over": (federated, roll_over),
        "roll published signing keys over": (published, roll_over_twice),
        "lose signing keys by a changed record": (federated, damage_signing_keys(altered)),
        "lose signing keys with the key that sealed them": (federated, damage_signing_keys(of_lost_key)),
        "lose published signing keys": (published, damage_signing_keys(altered)),
        "issue with an identity token": (federated, issue("fresh")),
        "write a static role": (furnished, write_static_role),
        "rotate a static role": (with_static_role, rotate_static_role),
        "rotate a static role by its plan": (with_static_role, follow_plans),
        "delete a static role": (with_static_role, delete_static_role),
        "leave the secret of a static role": (with_static_role, leave_static_secret),
        "disable an engine with a static role": (with_static_role, disable),
        "write a static role with a certificate": (furnished, partial(write_static_role, proof="certificate")),
        "write a static role with a federation": (furnished, partial(write_static_role, proof="federated_credential")),
        "rotate the certificate of a static role": (with_static_certificate, rotate_static_role),
        "rotate the federation of a static role by its plan": (with_static_federation, follow_plans),
        "delete a static role with a certificate": (with_static_certificate, delete_static_role),
        "delete a static role with a federation": (with_static_federation, delete_static_role),
        "change the proofs of a static role": (with_static_role, change_static_proofs),
        "disable an engine with a static certificate": (with_static_certificate, disable),
        "rotate the root secret of a login method": (login_method, rotate_login_method),
    }
)
"""Each with the installation that it starts from."""
