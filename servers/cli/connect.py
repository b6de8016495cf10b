"""`cloudid connect azure`: grant a mount the permissions of the chosen features in a tenant, and check them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen

from cloudid_core.errors import Code
from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import CHECK, FEATURES, Api, Feature, Need, features_of
from cloudid_core.values.secret import Secret

from ..client import RESOURCE, Address, Service, ServiceRefused
from ..settings import http_address
from ..terminal import Exit, Failed, Output, show_progress, table, with_output, without_slashes
from ..transcripts import Tenant, record
from ..typed import typed
from .connection import service_with_token, tell, told, with_address
from .words import read_secret

GRAPH: Final = "00000003-0000-0000-c000-000000000000"
OWNED: Final = "Application.ReadWrite.OwnedBy"
PAUSE: Final = 5.0
MARKS: Final = {True: "✓", None: "?", False: "✗"}
NOT_WISHED: Final = "–"
"""The mark of a permission that is not granted, and was not requested."""
NOT_YET: Final = frozenset({Code.PROVIDER_SECRET_REFUSED.wire, Code.PROVIDER_APPLICATION_UNKNOWN.wire})
"""Codes of refusals that pass by themselves when application and secret were made just now."""
UNTOLD: Final = "not reported by the service"
UNSEEN: Final = "Azure may show objects late, so run this command again in 15 minutes to be sure"
LATE: Final = "new permissions can take minutes to take effect: run this command again"


@click.group("connect")
def connect() -> None:
    """Connect a mount to a tenant."""


@connect.command("azure")
@click.argument("mount", default="auth/cloud", callback=without_slashes)
@click.option("--tenant", default="", metavar="ID", help="The tenant's id.")
@click.option(
    "--subscription",
    "subscriptions",
    multiple=True,
    metavar="ID",
    help="A subscription that has the machines, or in which roles are assigned.",
)
@click.option(
    "--feature", "wished", multiple=True, metavar="WORDS", help="A feature to grant permissions for: part of its name."
)
@click.option("--client-id", default="", metavar="ID", help="The client id of the app registration.")
@click.option(
    "--client-secret", default="", metavar="FILE", help="The file with its client secret; - is standard input."
)
@click.option(
    "--wait", type=float, default=0.0, metavar="SECONDS", help="How long to retry while a permission is missing."
)
@click.option(
    "--record", "transcript", metavar="FILE", help="Record the tenant's answers to FILE, then delete what was created."
)
@click.option("--resource-group", default="", metavar="NAME", help="With --record: an empty resource group to use.")
@click.option("--machine", "machines", multiple=True, metavar="ID", help="With --record: a machine's resource id.")
@click.option("--group", default="", metavar="ID", help="With --record: a group to add a member to.")
@click.option("--directory-role", default="", metavar="NAME", help="With --record: a directory role to assign.")
@click.option("--app-role", default="", metavar="API/ROLE", help="With --record: an app role to assign, as two ids.")
@click.option("--provider", default="", metavar="URL", help="With --record: a simulated Azure to use instead.")
@with_address
@with_output()
def azure(
    mount: str,
    tenant: str,
    subscriptions: tuple[str, ...],
    wished: tuple[str, ...],
    client_id: str,
    client_secret: str,
    wait: float,
    transcript: str | None,
    resource_group: str,
    machines: tuple[str, ...],
    group: str,
    directory_role: str,
    app_role: str,
    provider: str,
    address: Address,
    output: Output,
) -> int:
    """Connect a mount to an Azure tenant.

    MOUNT is auth/cloud (the default) or a secrets engine like cloud. Connecting takes two steps:

    Without --client-id, the command prints `az` commands that create an app registration with only the permissions that
    the features need. The last of them pipes the client secret into this command.

    With --client-id, it writes the mount's configuration, shows what the app registration may do, and prints commands
    that grant missing permissions. If Azure refuses a token, the configuration is not changed. The exit code is 1 if
    Azure refuses a token, or if a permission is missing or unknown. With --client-id and no --feature, no permission
    counts as missing.

    With --record, the command makes each of cloudid's calls to the tenant once, and writes the answers to FILE without
    ids and secrets. It needs no server. After a crash, run it again: FILE.store remembers what has to be deleted.
    """
    if transcript:
        if not (tenant and subscriptions and resource_group and client_id and client_secret):
            raise click.UsageError(
                "--record needs --tenant, --subscription, --resource-group, --client-id and --client-secret"
            )
        try:
            provider = provider and http_address(provider)
        except ValueError as error:
            raise click.UsageError(f"--provider {error}") from None
        proof = (client_id, _secret(client_secret))
        named = (group, directory_role, app_role)
        place = Tenant(tenant, subscriptions[0], resource_group, *proof, machines, *named)
        return _record(place, Path(transcript), provider, output)
    kind = AUTH if mount.startswith("auth/") else SECRET
    plan = _plan(kind, mount, tenant, subscriptions, wished, is_alone=bool(client_id) and not wished)
    if not client_id:
        click.echo("\n".join(plan.commands()))
        return Exit.DONE
    secret = _secret(client_secret) if client_secret else Secret()
    with told(mount=plan.mount):
        service, until = service_with_token(address), time.monotonic() + wait
        _write(service, plan, client_id, secret, until)
        found = _proof(service, plan, client_id, until)
    rows, mending = list(found.rows()), list(found.mending(client_id))
    if found.unknown:
        names = ", ".join(found.unknown)
        tell(
            f"warning: this version of cloudid does not know these permissions, and prints no command for them: {names}"
        )
    lines = [table(rows, ("", "what", "found")), *(["", *mending, f"# {LATE}"] if mending else [])]
    output.text(
        "\n".join(lines), {"proof": [dict(zip(("granted", "what", "found"), row, strict=True)) for row in rows]}
    )
    return Exit.DONE if found.is_enough else Exit.FAILED


def _plan(
    kind: str, mount: str, tenant: str, subscriptions: tuple[str, ...], wished: Sequence[str], *, is_alone: bool
) -> Plan:
    """Return what is to be connected; what no option says is asked for, but for a mount that has it already."""
    if is_alone:
        return Plan(mount, tenant, subscriptions, features_of(kind), is_wished=False)
    features = _features(kind, wished or _asked("features", "name", [each.name for each in features_of(kind)]))
    tenant = tenant or _asked("tenants", "id")[0]
    plan = Plan(mount, tenant, subscriptions or _asked("subscriptions", "id"), features)
    if kind == SECRET and not plan.subscriptions:
        raise click.UsageError("a secrets engine needs a subscription")
    return plan


def _record(tenant: Tenant, file: Path, provider: str, output: Output) -> int:
    def write(line: dict[str, Any]) -> None:
        show_progress(line["step"])
        click.echo(json.dumps(line), lines)

    with file.open("w", encoding="utf-8") as lines:
        store = file.with_name(f"{file.name}.store")
        steps, is_gone = record(tenant, store, write, provider)
        show_progress("")
    output.rows([{"step": step, "status": status} for step, status in steps.items()], ("step", "status"))
    if not is_gone:
        click.echo(f"objects of an interrupted run were not found, so {store} is kept: {UNSEEN}", err=True)
    lends = steps["credentials"] == 200
    if not lends:
        click.echo("no credentials could be issued: the transcript has the tenant's errors", err=True)
    return Exit.DONE if is_gone and lends else Exit.FAILED


def _asked(what: str, each: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Prompt for a value. In a pipe, require the option instead."""
    option = f"--{what[:-1]}"
    if not sys.stdin.isatty():
        raise click.UsageError(f"{option} is required, once for each {each}{': ' if known else ''}{'; '.join(known)}")
    for number, name in enumerate(known, 1):
        click.echo(f"{number:3} {name}", err=True)
    said = click.prompt(f"{what}, separated by commas" + (" (numbers)" if known else ""), err=True).split(",")
    words = [word.strip() for word in said]
    numbered = {str(number): name for number, name in enumerate(known, 1)}
    return tuple(numbered.get(word, word) for word in words)


def _features(kind: str, wished: Sequence[str]) -> tuple[Feature, ...]:
    """Those of these words, and the one that lets the service ask what it may do."""
    known = features_of(kind)
    found = [each for each in known if each.name == CHECK]
    for words in wished:
        fits = [each for each in known if each.name == words] or [each for each in known if words in each.name]
        if len(fits) != 1:
            names = "; ".join(each.name for each in known)
            raise click.UsageError(
                f"{words!r} matches {len(fits)} of these features, and must match exactly one: {names}"
            )
        found += [each for each in fits if each not in found]
    return tuple(found)


def _secret(name: str) -> Secret:
    secret = read_secret(name, "client secret")
    if not secret:  # an empty one stands for a managed identity
        raise Failed(f"the secret in {name} is empty")
    return secret


@frozen
class Plan:
    """What is to be connected, and the commands that do it."""

    mount: str
    tenant: str
    subscriptions: tuple[str, ...]
    features: tuple[Feature, ...]
    is_wished: bool = True
    """Whether the features were named; otherwise they are all that there are, and none has to be granted."""

    @property
    def name(self) -> str:
        return f"cloudid {self.mount.replace('/', ' ')}"

    @property
    def scopes(self) -> list[str]:
        return [f"/subscriptions/{each}" for each in self.subscriptions]

    def needs(self, api: Api) -> list[str]:
        """The least permissions of the features."""
        return sorted({need.any_of[0] for each in self.features for need in each.needs if need.api is api})

    def configuration(self, client_id: str, secret: Secret) -> dict[str, Any]:
        """Return the fields to write: those that were given, and that the service proves them first."""
        fields = {"client_id": client_id, "client_secret": secret.reveal(), "tenant_id": self.tenant}
        if not self.mount.startswith("auth/"):
            fields["subscription_id"] = next(iter(self.subscriptions), "")
        elif secret and self.tenant:
            fields["resource"] = RESOURCE
        return {**{name: value for name, value in fields.items() if value}, "verify": True}

    def commands(self) -> Iterator[str]:
        """All that make the application and grant its rights; the last one continues with the configuration."""
        login = " ".join(
            typed("az", "login", "--tenant", self.tenant).split()
        )  # quotes do not hold a line of a comment
        yield f"# as an administrator, after: {login}"
        yield "set -eu"
        yield f"APP=$(az ad app create --display-name {typed(self.name)} --query appId -o tsv)"
        yield "PRINCIPAL=$(az ad sp create --id $APP --query id -o tsv)"
        yield from self.grants(self.needs(Api.RESOURCES), self.scopes)
        yield from self.consents(self.needs(Api.DIRECTORY))
        features = [each.name for each in self.features if each.name != CHECK] or [CHECK]
        again = ["cloudid", "connect", "azure", self.mount, "--tenant", self.tenant]
        again += [word for each in self.subscriptions for word in ("--subscription", each)]
        again += [word for each in features for word in ("--feature", each)]
        yield "az ad app credential reset --id $APP --display-name cloudid --query password -o tsv |"
        yield f"  {typed(*again)} --client-id $APP --client-secret - --wait 300"

    def grants(self, actions: Sequence[str], scopes: Sequence[str]) -> Iterator[str]:
        """A custom role of these actions, assigned at these scopes. Its name is that of no other set of them."""
        if not actions:
            return
        name = f"{self.name} {sha256(json.dumps([actions, scopes]).encode()).hexdigest()[:8]}"
        role = {"Name": name, "Description": "What cloudid needs", "AssignableScopes": scopes, "Actions": actions}
        yield f"az role definition create -o none --role-definition {typed(json.dumps(role))}"
        for scope in scopes:
            yield (
                f"az role assignment create -o none --role {typed(name)} --scope {typed(scope)}"
                " --assignee-object-id $PRINCIPAL --assignee-principal-type ServicePrincipal"
            )

    def consents(self, permissions: Sequence[str]) -> Iterator[str]:
        """Application permissions in the directory, and an administrator's consent."""
        for each in permissions:
            query = typed(f"appRoles[?value=='{each}'].id")
            role = f"az ad sp show --id {GRAPH} --query {query} -o tsv"
            yield f"az ad app permission add --id $APP --api {GRAPH} --api-permissions $({role})=Role"
        if OWNED in permissions:
            yield "az ad app owner add --id $APP --owner-object-id $PRINCIPAL"
        if permissions:
            yield "az ad app permission admin-consent --id $APP"


@frozen
class Verdict:
    """Whether a permission of this client's own table is granted; `None`: it is not known, for this reason."""

    need: Need
    granted: bool | None
    reason: str = ""


@frozen
class Proof:
    """What Azure grants: for each scope the answer of `permissions`.

    Names of permissions come from this client's own table. A service that was taken over could name any, and choose its
    own rights so.
    """

    plan: Plan
    answers: Mapping[str, Mapping[str, Any]]

    @property
    def is_enough(self) -> bool:
        return not self.plan.is_wished or all(mark == MARKS[True] for mark, *_ in self.rows())

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Token, directory and each subscription, then each feature."""
        yield MARKS[True], "token", "accepted"
        directory = next(iter(self.answers.values()))["directory"]
        yield MARKS[True if directory is not None else None], "directory", _named(directory)
        if self.plan.is_wished:
            yield from map(self._row_of_scope, self.plan.scopes)
        yield from map(self._row_of_feature, self.plan.features)

    def _row_of_scope(self, scope: str) -> tuple[str, str, str]:
        verdicts = [one for one in self._verdicts(scope) if one.need.api is Api.RESOURCES]
        missing = {one.need.any_of[0] for one in verdicts if one.granted is False}
        if missing:
            return MARKS[False], scope, f"missing: {', '.join(sorted(missing))}"
        reason = next((one.reason for one in verdicts if one.granted is None), "")
        return MARKS[None if reason else True], scope, reason or "granted"

    def _row_of_feature(self, feature: Feature) -> tuple[str, str, str]:
        verdicts = [one for scope in self.answers for one in self._verdicts(scope, feature)]
        if any(one.granted is False for one in verdicts):
            wished = MARKS[False], feature.name, feature.doc
            return wished if self.plan.is_wished else (NOT_WISHED, feature.name, "not granted")
        reason = next((one.reason for one in verdicts if one.granted is None), "")
        return MARKS[None if reason else True], feature.name, reason or "granted"

    def mending(self, client_id: str) -> Iterator[str]:
        """The commands that grant what is missing, at the scopes that the caller named."""
        missing = {
            scope: [one.need for one in self._verdicts(scope) if one.granted is False] for scope in self.plan.scopes
        }
        if not self.plan.is_wished or not any(missing.values()):
            return
        yield f"APP={typed(client_id)}"
        yield "PRINCIPAL=$(az ad sp show --id $APP --query id -o tsv)"
        for scope, needs in missing.items():
            actions = {need.any_of[0] for need in needs if need.api is Api.RESOURCES}
            yield from self.plan.grants(sorted(actions), [scope])
        every = [need for needs in missing.values() for need in needs]
        yield from self.plan.consents(sorted({need.any_of[0] for need in every if need.api is Api.DIRECTORY}))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The permissions that the service asks for and that this client's own table does not have."""
        names = [each.name for each in self.plan.features]
        told = [
            need
            for answer in self.answers.values()
            for each in answer["features"]
            if each["feature"] in names
            for need in each["needs"]
        ]
        known = {(need.api.value, need.any_of) for need in KNOWN}
        return tuple(sorted({str(need["any_of"][0]) for need in told if _key(need) not in known}))

    def _verdicts(self, scope: str, *features: Feature) -> Iterator[Verdict]:
        """What the service says of each permission that these features need; without any, all of the plan."""
        told = {each["feature"]: each["needs"] for each in self.answers[scope]["features"]}
        for feature in features or self.plan.features:
            for need in feature.needs:
                said = [one for one in told.get(feature.name, ()) if _key(one) == (need.api.value, need.any_of)]
                yield from [Verdict(need, one["granted"], one["reason"]) for one in said] or [
                    Verdict(need, None, UNTOLD)
                ]


KNOWN: Final = tuple(need for kind in FEATURES for feature in features_of(kind) for need in feature.needs)
"""Every permission of this client's own table."""


def _key(need: Mapping[str, Any]) -> tuple[object, tuple[str, ...]]:
    return need["api"], tuple(need["any_of"])


def _named(directory: Sequence[str] | None) -> str:
    """The granted permissions in the directory that are in this client's own table, and how many others there are."""
    if directory is None:
        return "unknown"
    own = {name for need in KNOWN if need.api is Api.DIRECTORY for name in need.any_of}
    names = [name for name in directory if name in own]
    others = len(directory) - len(names)
    return ", ".join([*names, *([f"{others} that cloudid does not use"] if others else [])]) or "no permissions"


def _write(service: Service, plan: Plan, client_id: str, secret: Secret, until: float) -> None:
    """Write the configuration, which the service proves first. What may pass by itself is tried until this time."""
    path = f"{plan.mount}/config"
    while True:
        try:
            service.write(path, plan.configuration(client_id, secret))
        except ServiceRefused as refusal:
            if not NOT_YET.intersection(refusal.codes) or time.monotonic() >= until:
                tell(f"nothing was written: {path} is unchanged")
                raise
        else:
            return
        show_progress("Azure does not accept the app registration or its secret yet ...")
        time.sleep(PAUSE)


def _proof(service: Service, plan: Plan, client_id: str, until: float) -> Proof:
    """What Azure grants, looked up until this time while something is missing."""
    while True:
        # with a new token: one from before holds what was granted then
        service.write(f"{plan.mount}/config", {"client_id": client_id})
        answers = {scope: service.read(f"{plan.mount}/permissions", scope=scope) for scope in plan.scopes or [""]}
        for warning in dict.fromkeys(str(each) for answer in answers.values() for each in answer.get("warnings") or ()):
            tell(f"warning: {warning}")
        proof = Proof(plan, {scope: answer["data"] for scope, answer in answers.items()})
        if time.monotonic() >= until or proof.is_enough:
            show_progress("")
            return proof
        show_progress("some permissions have not taken effect yet ...")
        time.sleep(PAUSE)
