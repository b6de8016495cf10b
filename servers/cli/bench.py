"""`cloudid bench`: how many logins this machine verifies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import fields_dict

from cloudid_core.auth_method import Role
from cloudid_core.effects import HttpRequest, HttpResponse
from cloudid_core.errors import CloudidError

from .. import web
from ..bench import (
    Contender,
    Figure,
    Subject,
    ask_for,
    available_cpus,
    draw,
    environment,
    environment_text,
    measure,
    measure_processes,
    own,
    pyjwt,
    raw_rsa,
    synthetic,
    verification,
)
from ..machine import settle, why_unreadable
from ..terminal import Failed, Output, Unusable, with_output
from .words import read_secret

TOKENS: Final = 512
ROUNDS: Final = 5
SECONDS: Final = 15.0
"""Of the contenders in one process. Signing tokens and starting processes takes some more."""
FLEET: Final = 10_000
LABELS: Final = {
    "raw_rsa": "RSA signature alone",
    "pyjwt": "PyJWT decode",
    "cold": "cloudid, new token",
    "cached": "cloudid, known token",
}
TIMEOUT: Final = 30.0


@click.command("bench")
@click.option(
    "--groups", type=click.IntRange(1, 200), default=8, show_default=True, help="Groups of a synthetic token."
)
@click.option(
    "--key-bits", type=click.Choice(["2048", "3072", "4096"]), default="2048", show_default=True, help="RSA key size."
)
@click.option("--jwt", "jwt_file", metavar="FILE", help="Use the token in this file (-: standard input) instead.")
@click.option("--jwks", metavar="FILE|URL", help="The key set that verifies the token of --jwt.")
@click.option(
    "--bound", "bounds", multiple=True, metavar="NAME=VALUE", help="A bound of the role, such as group_ids=ID."
)
@click.option("--processes", type=click.IntRange(1, 256), help="Processes at a time. Default: one for each core.")
@click.option("--against", metavar="URL", help="Log in at this running service instead, with --jwt and --role.")
@click.option("--role", default="", help="The role for --against.")
@click.option("--mount", default="auth/cloud", show_default=True, help="The mount for --against.")
@click.option("--connections", type=click.IntRange(1, 256), default=8, show_default=True, help="Logins at a time.")
@click.option(
    "--seconds", type=click.FloatRange(0.1, 40), default=SECONDS, show_default=True, help="How long to measure."
)
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw the rates.")
@with_output()
def bench(
    groups: int,
    key_bits: str,
    jwt_file: str | None,
    jwks: str | None,
    bounds: Sequence[str],
    processes: int | None,
    against: str | None,
    role: str,
    mount: str,
    connections: int,
    seconds: float,
    svg: Path | None,
    output: Output,
) -> None:
    """Measure how many logins this machine verifies.

    By default, tokens are synthetic: signed with a new key, with the claims of a managed identity. The command verifies
    each of them as a login does, and shows the RSA signature alone and PyJWT for comparison. It uses one process, then
    one process per core, and takes less than a minute.

    With --against it logs in at a running service instead. Every login creates a token there.
    """
    token = read_secret(jwt_file, "jwt").reveal().strip() if jwt_file else ""
    if against is not None:
        if not (token and role):
            raise click.UsageError("--against needs --jwt and --role")
        _ask_service(f"{against.rstrip('/')}/v1/{mount.strip('/')}/login", role, token, seconds, connections, output)
        return
    if bool(token) != bool(jwks):
        raise click.UsageError("--jwt and --jwks belong together")
    try:
        chosen = own(token, _key_set(jwks), _bounds(bounds)) if jwks else synthetic(TOKENS, groups, int(key_bits))
        contenders: dict[str, Contender[Any]] = {
            "raw_rsa": raw_rsa(chosen),
            "pyjwt": pyjwt(chosen),
            "cold": verification(chosen, is_cached=False),
            "cached": verification(chosen, is_cached=True),
        }
        contenders["cold"].step(contenders["cold"].items[0])
    except (CloudidError, ValueError) as error:
        raise Failed(f"the token cannot be verified: {error}") from None
    settle()
    figures = measure(contenders, ROUNDS, seconds)
    count = processes or len(available_cpus())
    together = measure_processes(chosen, count)
    _show(chosen, figures, count, together, output)
    if svg is not None:
        rates = {LABELS[name]: figure.per_second for name, figure in figures.items()}
        svg.write_text(
            draw("Tokens a second, one core", rates, [chosen.origin, environment_text(environment())]), "utf-8"
        )


def _show(subject: Subject, figures: Mapping[str, Figure], processes: int, together: float, output: Output) -> None:
    facts = environment()
    rows = [{"what": LABELS[name], **figure.as_json()} for name, figure in figures.items()]
    sentence = sentence_of(figures["cold"].per_second, together)
    data = {
        "tokens": subject.origin,
        "figures": {name: figure.as_json() for name, figure in figures.items()},
        "processes": {"count": processes, "per_second": round(together, 1)},
        "summary": sentence,
        "environment": facts,
    }
    lines = [subject.origin, environment_text(facts), ""]
    lines += [f"{'':22}{'a second':>11}{'us':>9}{'p50 us':>9}{'p99 us':>9}{'spread':>8}"]
    for row in rows:
        lines.append(
            f"{row['what']:22}{row['per_second']:>11,.0f}{row['microseconds']:>9.1f}{row['p50']:>9.1f}"
            f"{row['p99']:>9.1f}{row['spread']:>7.0%}"
        )
    lines += [f"{f'{processes} processes':22}{together:>11,.0f}", "", sentence]
    output.text("\n".join(lines), data)


def sentence_of(per_core: float, together: float) -> str:
    """Return the figures as one sentence for people."""
    return (
        f"This machine verifies {per_core:,.0f} logins a second per core; "
        f"a fleet of {FLEET:,} machines boots in {max(0.1, FLEET / together):,.1f} s."
    )


def _ask_service(url: str, role: str, token: str, seconds: float, connections: int, output: Output) -> None:
    body = json.dumps({"role": role, "jwt": token}).encode()

    def login() -> HttpResponse:
        return web.send(HttpRequest("POST", url, {"content-type": "application/json"}, body), TIMEOUT)

    try:
        asked = ask_for(seconds, connections, login)
    except (web.Unreachable, ValueError) as error:
        raise Failed(f"{url} cannot be reached: {error}") from None
    if asked.refused:
        raise Failed(f"a login was refused after {asked.count}: {asked.refused}")
    found, rate = asked.as_json(), asked.per_second
    sentence = (
        f"The service answers {rate:,.0f} logins a second to {connections} clients; "
        f"a fleet of {FLEET:,} machines boots in {FLEET / rate:,.0f} s."
    )
    output.text(f"p50 {found['p50_ms']} ms, p99 {found['p99_ms']} ms\n{sentence}", {**found, "summary": sentence})


def _key_set(place: str) -> str:
    """Return the text of a key set. Raises `Unusable`, or `ValueError` if it is not text."""
    if place.startswith(("https://", "http://")):
        try:
            answer = web.send(HttpRequest("GET", place), TIMEOUT)
        except web.Unreachable as error:
            raise Unusable(f"{place} cannot be read: {error}") from None
        if answer.status != 200:
            raise Unusable(f"{place} cannot be read: status {answer.status}")
        return answer.body.decode()
    try:
        return Path(place).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise Unusable(f"{place} cannot be read: {why_unreadable(error)}") from None


def _bounds(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the bounds of a role, from the values of `--bound`."""
    lists: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name if name.startswith("bound_") else f"bound_{name}"
        if not equals or name not in fields_dict(Role):
            raise click.UsageError(f"--bound {word}: give NAME=VALUE with the name of a bound of a role")
        lists[name] = (*lists.get(name, ()), value)
    return lists
