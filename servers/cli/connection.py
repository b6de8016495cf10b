"""What all client commands share: the service's address, the caller's token, and the output of refusals."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from ..client import (
    KINDS,
    RESOURCE,
    Address,
    Identity,
    NoIdentity,
    NoSuchCommand,
    RequestInterrupted,
    Service,
    ServiceRefused,
    Surroundings,
    TokenOfAnotherAddress,
    Unreachable,
    Untrusted,
    find_identity,
    find_token,
    identity_of_token,
    last_login,
)
from ..terminal import Failed, NoCommand, NotExecutable, printable, show_progress, waiting, without_slashes
from .advice import LOGIN_MOUNT, filled_advice, names_in
from .words import read_secret

EXEC: Final = "--exec"
ADDRESSES: Final = ("CLOUDID_ADDR", "VAULT_ADDR")
TRUST: Final = "check the address, and set CLOUDID_CACERT or VAULT_CACERT to a file with the trusted CA certificates"
FIXES: Final[Mapping[int, str]] = {
    9: "check the clocks of both machines: the certificate is not valid yet",
    10: "renew the certificate of the service and send it SIGHUP, or correct this machine's clock",
    62: "use an address that is in the certificate",
    64: "use an address that is in the certificate",
}
"""By OpenSSL's `X509_V_ERR` codes; all others: `TRUST`."""

F = TypeVar("F", bound=Callable[..., Any])


def with_address(command: F) -> F:
    """Adds the option `--address`, and hands the command an `Address`, with a warning if it is unsafe."""

    @click.option(
        "--address",
        "url",
        default="",
        metavar="URL",
        help="The URL of the service. Default: CLOUDID_ADDR, VAULT_ADDR, the last login's, http://127.0.0.1:8200.",
    )
    @functools.wraps(command)
    def decorated(*args: Any, url: str, **options: Any) -> Any:
        is_named = url or any(os.environ.get(name) for name in ADDRESSES)
        address = Address.of(os.environ, url, "" if is_named else last_login(os.environ).address)
        for warning in address.warnings:
            click.echo(f"warning: {warning}", err=True)
        return command(*args, address=address, **options)

    return decorated  # type: ignore[return-value]


def with_identity(command: F, *, needs_role: bool = True) -> F:
    """Adds the options that say who logs in, and hands the command what answers the `Identity` as `identify`."""

    @click.option("--role", required=needs_role, metavar="NAME", help="The role to log in with.")
    @click.option(
        "--mount",
        default=LOGIN_MOUNT,
        callback=without_slashes,
        metavar="PATH",
        help=f"The path of the auth method. Default: {LOGIN_MOUNT}.",
    )
    @click.option(
        "--identity",
        "kind",
        type=click.Choice([each.name for each in KINDS]),
        metavar="KIND",
        help=f"The kind of identity: {', '.join(each.name for each in KINDS)}. Default: the first that exists.",
    )
    @click.option("--client-id", default="", metavar="ID", help="The client id, if the machine has several identities.")
    @click.option(
        "--resource", default=RESOURCE, metavar="URL", help=f"The audience of the machine's token. Default: {RESOURCE}"
    )
    @click.option(
        "--jwt",
        default="",
        metavar="FILE",
        help="A file with the machine's token, if you have one; - is standard input.",
    )
    @functools.wraps(command)
    def decorated(*args: Any, kind: str | None, client_id: str, resource: str, jwt: str, **options: Any) -> Any:
        def identify() -> Identity:
            if jwt:
                return identity_of_token(read_secret(jwt, "JWT"))
            with waiting("a token of this machine's identity"):
                return find_identity(Surroundings(os.environ), resource, kind or "", client_id)

        return command(*args, identify=identify, **options)

    return decorated  # type: ignore[return-value]


class Starting(click.Command):
    """A command that starts another one; the exit code says, as in a shell, whether that could be started."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NoSuchCommand as failure:
            raise (NotExecutable if failure.is_there else NoCommand)(str(failure)) from None


class Executing(Starting):
    """A command whose option `--exec` takes all that follows: the words of another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if EXEC in args:
            at = args.index(EXEC)
            if at + 1 == len(args):
                raise click.UsageError(f"{EXEC} needs a command", ctx)
            args = [*args[:at], *(f"{EXEC}={word}" for word in args[at + 1 :])]
        return super().parse_args(ctx, args)


executing: Final = click.option(
    EXEC, "command", multiple=True, metavar="CMD...", help="Run this command with it. Must be the last option."
)


def service_of(address: Address) -> Service:
    """The service, asked with the token of the environment or of a file; with none if there is none for it."""
    try:
        return Service(address, find_token(os.environ, address.url, warn), watch=waiting)
    except TokenOfAnotherAddress as refusal:
        warn(str(refusal))
        return Service(address, watch=waiting)


def service_with_token(address: Address) -> Service:
    """As `service_of`; without a token it says where one comes from."""
    service = Service(address, find_token(os.environ, address.url, warn), watch=waiting)
    if not service.token:
        raise Failed("there is no token: run cloudid login --role ROLE, or set CLOUDID_TOKEN or VAULT_TOKEN")
    return service


def warn(text: str) -> None:
    tell(f"warning: {text}")


def tell(text: str) -> None:
    """On standard error, beside the answer, which a script reads."""
    show_progress("")
    click.echo(printable(text), err=True)


@contextmanager
def told(**names: str) -> Iterator[None]:
    """A failure of the block is reported with its cause and its fix. `names` stand for placeholders of the advice."""
    try:
        yield
    except ServiceRefused as refusal:
        raise refused(refusal, names) from None
    except Unreachable as failure:
        fix = "check the address, or set it with --address URL"
        if isinstance(failure, Untrusted):
            fix = FIXES.get(failure.code, TRUST)
        text = f"the service cannot be reached: {failure}"
        raise Failed(f"{text}\nfix: {fix}", document={"errors": [text], "codes": [], "fix": fix}) from None
    except NoIdentity as failure:
        width = max(map(len, failure.tried))
        lines = [f"  {kind.ljust(width)}  {outcome}" for kind, outcome in failure.tried.items()]
        raise Failed(printable("\n".join(["no identity was found on this machine", *lines]))) from None
    except RequestInterrupted as stop:
        tell(what_continues(stop.method, stop.path))
        raise


def what_continues(method: str, path: str) -> str:
    """Say what the service does after Ctrl-C ended the wait for its answer."""
    segments = path.split("/")
    if segments[-1] == "login" or "creds" in segments[-2:-1] or "token" in segments[-2:-1]:
        return f"the service revokes what it created for {path}, because no one received it"
    if path.startswith("sys/leases/revoke"):
        return "the service continues to revoke; cloudid status shows leases that it cannot revoke"
    if method in ("GET", "LIST"):
        return f"the service was only reading {path}, so nothing has changed"
    return f"the service may still make the change: check with cloudid read {path}"


def refused(refusal: ServiceRefused, names: Mapping[str, str]) -> Failed:
    """Return the failure that reports a refusal: its texts, its cause, its fix, and the command that shows more."""
    if not refusal.errors:
        return Failed(f"the service answered {refusal.status} without a reason: perhaps a proxy answered")
    codes = [*refusal.codes, *[""] * len(refusal.errors)]
    lines = [f"{text} ({code})" if code else text for text, code in zip(refusal.errors, codes, strict=False)]
    advice = filled_advice(
        refusal.codes, {**names_in(refusal.path), **{key: name for key, name in names.items() if name}}
    )
    document = {"errors": list(refusal.errors), "codes": list(refusal.codes), **(advice.members if advice else {})}
    return Failed(printable("\n".join([*lines, *(advice.lines if advice else [])])), document=document)
