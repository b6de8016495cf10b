"""What the verification of a login costs, as a multiple of the RSA verification in it.

    python -m benchmarks.login_verification [--json] [--tokens N] [--rounds N] [--own-groups]

Contenders take turns in one process, whose garbage collector is set as that of a server. Of each the median over all
rounds counts, each as a multiple of the `raw_rsa` of its round, shown in microseconds of CPU for a token.
The cache of signatures is empty when a round starts, but for `verify_warm`.

    raw_rsa      the signature alone, by the `cryptography` library
    pyjwt        PyJWT's decode, with audience and issuer
    verify_cold  token to decision, seen for the first time: signature, claims, time, audience, issuer, and bounds that
                 the token itself proves: subscription, resource group, group
    verify_warm  the same when the signature has held before
    login        the whole login program on a host in memory, from a call that found its route to the committed token;
                 each token is seen for the first time, and what the provider says about the machines, which its role
                 asks for, is known
    request      the same with all that surrounds it: from the bytes of POST /v1/auth/cloud/login to those of its answer
    request_warm  the same when the signature has held before
"""

from __future__ import annotations

import argparse
import gc
import json
from statistics import median
from time import process_time, time
from typing import Any, Final

from jwt.algorithms import RSAAlgorithm

from cloudid_core import run_now
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.login import log_in
from cloudid_core.context.context import Context
from cloudid_core.deadline import Deadline
from cloudid_core.forms.fields import parse
from cloudid_core.mounts import MountTable, View, mount_table
from cloudid_core.routing.exchange import Exchange
from cloudid_core.routing.routes import Call
from cloudid_core.store.records import Found
from cloudid_servers.bench import Contender, Subject
from cloudid_servers.bench import contenders as contenders_of_tokens
from cloudid_servers.machine import settle

from .fleet import AUDIENCE, Fleet, Member, open_login, raise_fleet
from .report import environment, environment_text, tell

TOKENS: Final = 2048
ROUNDS: Final = 15
UNLIMITED: Final = {"bound_service_principal_ids": (), "bound_scale_sets": (), "bound_locations": ()}
"""Bounds that the token does not prove. They are left out here, because Azure confirms them."""
BOUNDS: Final = {"verify_cold": 1.5, "verify_warm": 0.22, "login": 2.9}
"""Multiples of `raw_rsa` that are not to be exceeded: they guard what was reached, on a machine with other work too."""


def contenders(fleet: Fleet) -> dict[str, Contender[Any]]:
    return {
        "raw_rsa": raw_rsa(fleet),
        "pyjwt": contenders_of_tokens.pyjwt(subject_of(fleet)),
        "verify_cold": verification(fleet, is_warm=False),
        "verify_warm": verification(fleet, is_warm=True),
        "login": login(fleet),
        "request": request(fleet, is_warm=False),
        "request_warm": request(fleet, is_warm=True),
    }


def subject_of(fleet: Fleet) -> Subject:
    """Return the tokens of a fleet under its role, without the bounds that Azure has to confirm."""
    published = [{"kid": key_id, **json.loads(RSAAlgorithm.to_jwk(key))} for key_id, key in fleet.keys.items()]
    return Subject(
        tokens=tuple(member.token for member in fleet.members),
        jwks=json.dumps({"keys": published}),
        tenant_id=fleet.tenant_id,
        audience=AUDIENCE,
        issuer=fleet.issuer,
        bounds={**fleet.role, **UNLIMITED},
        now=time(),
        origin="a fleet",
    )


def raw_rsa(fleet: Fleet) -> Contender[Any]:
    return contenders_of_tokens.raw_rsa(subject_of(fleet))


def verification(fleet: Fleet, *, is_warm: bool) -> Contender[Any]:
    forms = {member.token: member.form for member in fleet.members}
    return contenders_of_tokens.verification(subject_of(fleet), is_cached=is_warm, form_of=forms.__getitem__)


def login(fleet: Fleet) -> Contender[Any]:
    service, host = open_login(fleet, fact_max_age=86_400)
    context = service.context
    mounts = run_now(mount_table(context.records), host)
    calls: list[Call] = []
    store = host.store.copy()

    def receive_all() -> None:
        host.store = store.copy()
        context.caches.signatures.clear()
        calls[:] = [call_of(member, context, mounts) for member in fleet.members]
        gc.collect()

    def log_in_all(all_of_them: list[Call]) -> None:
        for call in all_of_them:
            answer = run_now(log_in(call), host)
            assert answer.auth is not None

    return Contender([calls], log_in_all, receive_all)


def call_of(member: Member, context: Context, mounts: Found[MountTable]) -> Call:
    """Return the call that dispatch creates for a member's request."""
    body = json.loads(member.request.body)
    now = time()
    exchange = Exchange(
        request=member.request,
        request_id="",
        time=now,
        deadline=Deadline(now + 3600),
        mount=mounts.record.by_path["auth/cloud"],
        body=body,
        view=View(mounts, mounts.expected, is_fresh=False),
    )
    return Call(context, exchange, parse(LoginForm, body))


def request(fleet: Fleet, *, is_warm: bool) -> Contender[Any]:
    service, host = open_login(fleet, fact_max_age=86_400)

    def answer_all(members: tuple[Member, ...]) -> None:
        for member in members:
            answer = run_now(service.work_on(service.begin(member.request)), host)
            assert answer.status == 200, answer.body

    prepare = gc.collect if is_warm else service.context.caches.signatures.clear
    return Contender([fleet.members], answer_all, prepare)


def run(tokens: int = TOKENS, rounds: int = ROUNDS, *, own_groups: bool = False) -> tuple[Fleet, dict[str, float]]:
    """Run the whole benchmark. Return the fleet, and the microseconds for a token of each contender."""
    tell("signing tokens")
    fleet = raise_fleet(tokens, own_groups=own_groups)
    all_of_them = contenders(fleet)
    settle()
    return fleet, measure(all_of_them, rounds, tokens)


def measure(rounds: dict[str, Contender[Any]], count: int, tokens: int) -> dict[str, float]:
    """Return the microseconds for a token of each contender: the median of its ratios to `raw_rsa` in each round.

    The pace of a shared machine changes from round to round, and less within one.
    """
    taken: list[dict[str, float]] = []
    for number in range(count + 1):
        tell(f"round {number} of {count}" if number else "warming up")
        taken.append({name: seconds(contender) for name, contender in rounds.items()})
    tell("")
    raw = median(each["raw_rsa"] for each in taken[1:]) / tokens * 1e6
    return {name: raw * median(each[name] / each["raw_rsa"] for each in taken[1:]) for name in rounds}


def seconds(contender: Contender[Any]) -> float:
    contender.prepare()
    start = process_time()
    contender.run()
    return process_time() - start


def ratio(figures: dict[str, float], name: str) -> float:
    """Return a contender as a multiple of `raw_rsa`."""
    return figures[name] / figures["raw_rsa"]


def as_json(figures: dict[str, float]) -> str:
    """Return figures, ratios and environment as one JSON object."""
    return json.dumps(
        {
            **{f"{name}_us": round(figure, 2) for name, figure in figures.items()},
            "ratios": {name: round(ratio(figures, name), 3) for name in figures},
            "environment": environment(),
        },
        indent=1,
    )


def table(figures: dict[str, float], fleet: Fleet) -> str:
    length = median(len(member.token) for member in fleet.members)
    lines = [f"{len(fleet.members)} tokens of {length:.0f} bytes, RS256 with 2048 bits, eight groups each"]
    lines += [environment_text(environment()), ""]
    lines.append(f"{'':12} {'us':>8} {'x raw':>7}   bound")
    for name, figure in figures.items():
        bound = f"{BOUNDS[name]:>7.2f}" if name in BOUNDS else ""
        lines.append(f"{name:12} {figure:8.2f} {ratio(figures, name):7.2f} {bound}".rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.login_verification", description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print figures, ratios and environment as one JSON object")
    parser.add_argument("--tokens", type=int, default=TOKENS, help=f"distinct tokens ({TOKENS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--own-groups", action="store_true", help="each machine is in groups of its own")
    options = parser.parse_args()
    fleet, figures = run(options.tokens, options.rounds, own_groups=options.own_groups)
    print(as_json(figures) if options.json else table(figures, fleet))


if __name__ == "__main__":
    main()
