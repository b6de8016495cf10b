"""`cloudid connect azure`: from the features that are wished to a tenant that grants them, and the proof of it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen

from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import CHECK, FEATURES, Api, Feature, features_of
from cloudid_core.values.secret import Secret

from ..client import RESOURCE, Address, Service, ServiceRefused
from ..settings import http_address
from ..terminal import Exit, Failed, Output, show_progress, table, with_output, without_slashes
from ..transcripts import Tenant, record
from .connection import service_with_token, tell, told, with_address
from .words import read_secret

GRAPH: Final = "00000003-0000-0000-c000-000000000000"
OWNED: Final = "Application.ReadWrite.OwnedBy"
PAUSE: Final = 5.0
MARKS: Final = {True: "✓", None: "?", False: "✗"}
UNSEEN: Final = "the tenant may show it late; to be sure, run this command again in a quarter of an hour"
LATE: Final = "what was granted just now can take minutes to be known everywhere: run this command again"


@click.group("connect")
def connect() -> None:
    """Give the service its rights in a tenant, and prove them."""


@connect.command("azure")
@click.argument("mount", default="auth/cloud", callback=without_slashes)
@click.option("--tenant", default="", metavar="ID", help="The tenant.")
@click.option(
    "--subscription", "subscriptions", multiple=True, metavar="ID", help="Where machines are, or roles are assigned."
)
@click.option("--feature", "wished", multiple=True, metavar="WORDS", help="A feature, by words of its name.")
@click.option("--client-id", default="", metavar="ID", help="The application that the commands made.")
@click.option("--client-secret", default="", metavar="FILE", help="Its secret; - is standard input.")
@click.option(
    "--wait", type=float, default=0.0, metavar="SECONDS", help="Ask again so long while something is missing."
)
@click.option("--record", "transcript", metavar="FILE", help="Record what the tenant answers; everything is removed.")
@click.option("--resource-group", default="", metavar="NAME", help="With --record: an empty one to work in.")
@click.option("--machine", default="", metavar="ID", help="With --record: the resource id of a machine to look up.")
@click.option("--provider", default="", metavar="URL", help="With --record: a simulated cloud, to try it.")
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
    machine: str,
    provider: str,
    address: Address,
    output: Output,
) -> int:
    """Connect a mount with a tenant of Azure.

    Without --client-id it prints the commands of az that make an application with the rights that the features need,
    and no others; the last one hands the secret to this command. With --client-id it writes the configuration of the
    mount (MOUNT: auth/cloud, or a secrets engine like cloud), asks the provider through the service what the
    application may do, and prints commands for what is missing. If the provider gives no token, the mount gets back the
    configuration from before, unless its secret cannot be read. Exit code 1: something is missing or unknown.

    With --record it needs no server: it does once with the tenant all that a service does, and writes what the tenant
    answers, without ids and secrets. FILE.store tells what is to be removed: after a crash, run it again.
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
        place = Tenant(tenant, subscriptions[0], resource_group, client_id, _secret(client_secret), machine)
        return _record(place, Path(transcript), provider, output)
    kind = AUTH if mount.startswith("auth/") else SECRET
    features = _features(kind, wished or _asked("features", "name", [each.name for each in features_of(kind)]))
    tenant = tenant or _asked("tenants", "id")[0]
    plan = Plan(mount, tenant, subscriptions or _asked("subscriptions", "id"), features)
    if kind == SECRET and not plan.subscriptions:
        raise click.UsageError("a secrets engine needs a subscription")
    if not client_id:
        click.echo("\n".join(plan.commands()))
        return Exit.DONE
    with told(mount=plan.mount):
        service = service_with_token(address)
        found = _tried(service, plan, client_id, _secret(client_secret) if client_secret else Secret(), wait)
    rows, mending = list(found.rows()), list(found.mending(client_id))
    if found.unknown:
        names = ", ".join(found.unknown)
        tell(f"warning: this client does not know these permissions and prints no command for them: {names}")
    lines = [table(rows, ("", "what", "found")), *(["", *mending, f"# {LATE}"] if mending else [])]
    output.text(
        "\n".join(lines), {"proof": [dict(zip(("granted", "what", "found"), row, strict=True)) for row in rows]}
    )
    return Exit.DONE if all(mark == MARKS[True] for mark, *_ in rows) else Exit.FAILED


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
        click.echo(f"nothing is seen of what an interrupted run made, and {store} stays: {UNSEEN}", err=True)
    lends = steps["credentials"] == 200
    if not lends:
        click.echo("no credentials could be made: the transcript holds the refusals of the tenant", err=True)
    return Exit.DONE if is_gone and lends else Exit.FAILED


def _asked(what: str, each: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """What a person answers; in a pipe nobody does."""
    option = f"--{what[:-1]}"
    if not sys.stdin.isatty():
        raise click.UsageError(f"give {option}, once for each {each}{': ' if known else ''}{'; '.join(known)}")
    for number, name in enumerate(known, 1):
        click.echo(f"{number:3} {name}", err=True)
    said = click.prompt(f"{what}, with commas between" + (" (numbers)" if known else ""), err=True).split(",")
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
            raise click.UsageError(f"{words!r} is in the name of {len(fits)} features of these: {names}")
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

    @property
    def name(self) -> str:
        return f"cloudid {self.mount.replace('/', ' ')}"

    @property
    def scopes(self) -> list[str]:
        return [f"/subscriptions/{each}" for each in self.subscriptions]

    def needs(self, api: Api) -> list[str]:
        """The least permissions of the features."""
        return sorted({need.any_of[0] for each in self.features for need in each.needs if need.api is api})

    def configuration(self, client_id: str, secret: Secret) -> dict[str, str]:
        more = {"resource": RESOURCE} if self.mount.startswith("auth/") else {"subscription_id": self.subscriptions[0]}
        return {"tenant_id": self.tenant, "client_id": client_id, "client_secret": secret.reveal(), **more}

    def commands(self) -> Iterator[str]:
        """All that make the application and grant its rights; the last one continues with the configuration."""
        yield f"# as an administrator, after: az login --tenant {shlex.quote(self.tenant)}"
        yield "set -eu"
        yield f"APP=$(az ad app create --display-name {shlex.quote(self.name)} --query appId -o tsv)"
        yield "PRINCIPAL=$(az ad sp create --id $APP --query id -o tsv)"
        yield from self.grants(self.needs(Api.RESOURCES), self.scopes)
        yield from self.consents(self.needs(Api.DIRECTORY))
        features = [each.name for each in self.features if each.name != CHECK] or [CHECK]
        again = ["cloudid", "connect", "azure", self.mount, "--tenant", self.tenant]
        again += [word for each in self.subscriptions for word in ("--subscription", each)]
        again += [word for each in features for word in ("--feature", each)]
        yield "az ad app credential reset --id $APP --display-name cloudid --query password -o tsv |"
        yield f"  {shlex.join(again)} --client-id $APP --client-secret - --wait 300"

    def grants(self, actions: Sequence[str], scopes: Sequence[str]) -> Iterator[str]:
        """A custom role of these actions, assigned at these scopes. Its name is that of no other set of them."""
        if not actions:
            return
        name = f"{self.name} {sha256(json.dumps([actions, scopes]).encode()).hexdigest()[:8]}"
        role = {"Name": name, "Description": "What cloudid needs", "AssignableScopes": scopes, "Actions": actions}
        yield f"az role definition create -o none --role-definition {shlex.quote(json.dumps(role))}"
        for scope in scopes:
            yield (
                f"az role assignment create -o none --role {shlex.quote(name)} --scope {shlex.quote(scope)}"
                " --assignee-object-id $PRINCIPAL --assignee-principal-type ServicePrincipal"
            )

    def consents(self, permissions: Sequence[str]) -> Iterator[str]:
        """Application permissions in the directory, and an administrator's consent."""
        for each in permissions:
            query = shlex.quote(f"appRoles[?value=='{each}'].id")
            role = f"az ad sp show --id {GRAPH} --query {query} -o tsv"
            yield f"az ad app permission add --id $APP --api {GRAPH} --api-permissions $({role})=Role"
        if OWNED in permissions:
            yield "az ad app owner add --id $APP --owner-object-id $PRINCIPAL"
        if permissions:
            yield "az ad app permission admin-consent --id $APP"


@frozen
class Proof:
    """What the provider answered: for each scope the answer of `permissions`."""

    plan: Plan
    answers: Mapping[str, Mapping[str, Any]]
    warnings: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        """Whether the provider gave a token, for the directory or for a subscription."""
        needs = [need for scope in self.answers for need in self._needs(scope)]
        knows_directory = any(answer["directory"] is not None for answer in self.answers.values())
        return knows_directory or any(need["granted"] is not None for need in needs)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Token, directory and each subscription, then each feature."""
        first = next(iter(self.answers.values()))
        known = first["directory"] is not None
        yield MARKS[self.is_accepted or None], "token", "accepted" if self.is_accepted else " ".join(self.warnings)
        found = ", ".join(first["directory"] or ()) or "no permissions"
        yield MARKS[known or None], "directory", found if known else "unknown"
        for scope in self.plan.scopes:
            needs = [need for need in self._needs(scope) if need["api"] == Api.RESOURCES.value]
            missing = [need["any_of"][0] for need in needs if need["granted"] is False]
            unknown = next((need["reason"] for need in needs if need["granted"] is None), "")
            mark = MARKS[False if missing else None if unknown else True]
            yield mark, scope, f"missing: {', '.join(sorted({*missing}))}" if missing else unknown or "granted"
        for each in self.plan.features:
            granted = [need["granted"] for scope in self.answers for need in self._needs(scope, each.name)]
            yield MARKS[False if False in granted else None if None in granted else True], each.name, each.doc

    def mending(self, client_id: str) -> Iterator[str]:
        """The commands that grant what is missing."""
        missing = [
            (scope, need)
            for scope in self.answers
            for need in self._needs(scope)
            if need["granted"] is False and _is_known(need)
        ]
        directory = sorted({need["any_of"][0] for _, need in missing if need["api"] == Api.DIRECTORY.value})
        if missing:
            yield f"APP={shlex.quote(client_id)}"
            yield "PRINCIPAL=$(az ad sp show --id $APP --query id -o tsv)"
        for scope in self.answers:
            actions = {need["any_of"][0] for at, need in missing if at == scope and need["api"] == Api.RESOURCES.value}
            yield from self.plan.grants(sorted(actions), [scope])
        yield from self.plan.consents(directory)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The permissions that the service calls missing and that this client's own table does not have."""
        needs = [need for scope in self.answers for need in self._needs(scope)]
        return tuple(sorted({str(need["any_of"][0]) for need in needs if not _is_known(need)}))

    def _needs(self, scope: str, feature: str = "") -> list[Mapping[str, Any]]:
        names = [feature] if feature else [each.name for each in self.plan.features]
        return [need for each in self.answers[scope]["features"] if each["feature"] in names for need in each["needs"]]


def _is_known(need: Mapping[str, Any]) -> bool:
    """Whether this client's own table has a permission: a service could name any, and choose its own rights so."""
    return any(
        need["api"] == known.api.value and tuple(need["any_of"]) == known.any_of
        for kind in FEATURES
        for feature in features_of(kind)
        for known in feature.needs
    )


def _tried(service: Service, plan: Plan, client_id: str, secret: Secret, wait: float) -> Proof:
    """The proof of a configuration. If the provider gives no token for it, the mount gets back what it had before."""
    path = f"{plan.mount}/config"
    identity = {"tenant_id": plan.tenant, "client_id": client_id}
    fields = plan.configuration(client_id, secret) if secret else identity
    before = _configured(service, path, fields)
    service.write(path, fields)
    found: Proof | None = None
    try:
        found = _proof(service, plan, identity, wait)
    finally:
        if (found is None or not found.is_accepted) and before != fields:
            _restore(service, path, before)
    return found


def _configured(service: Service, path: str, fields: Iterable[str]) -> dict[str, Any]:
    """What some fields are now. `None`: it cannot be read, as most secrets; no field: nothing is configured."""
    try:
        data = service.read(path)["data"]
    except ServiceRefused as refusal:
        if refusal.status == 404:
            return {}
        data = {}
    return {name: data.get(name) for name in fields}


def _restore(service: Service, path: str, before: Mapping[str, Any]) -> None:
    if None in before.values():
        tell(f"{path} stays as it was written just now: what it had before cannot be read")
    elif before:
        service.write(path, before)
        tell(f"the provider gave no token: {', '.join(before)} in {path} are again what they were before")


def _proof(service: Service, plan: Plan, identity: Mapping[str, str], wait: float) -> Proof:
    """What the provider says, asked again for so many seconds while something is missing."""
    until = time.monotonic() + wait
    while True:
        # with a new token: one from before holds what was granted then
        service.write(f"{plan.mount}/config", identity)
        answers = {scope: service.read(f"{plan.mount}/permissions", scope=scope) for scope in plan.scopes or [""]}
        said = dict.fromkeys(str(each) for answer in answers.values() for each in answer.get("warnings") or ())
        proof = Proof(plan, {scope: answer["data"] for scope, answer in answers.items()}, tuple(said))
        if time.monotonic() >= until or all(mark == MARKS[True] for mark, *_ in proof.rows()):
            show_progress("")
            return proof
        show_progress("not everything that was granted is known everywhere yet ...")
        time.sleep(PAUSE)
