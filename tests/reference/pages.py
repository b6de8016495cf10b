"""The pages below `docs/reference` that are printed from the core's tables: `python -m tests.reference.pages`.

It also prints the parts of other pages that `parts` has.

A page for each component has its routes, the fields of each, and a request that was executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from cloudid_core.advice import ADVICE
from cloudid_core.auth_method import CHECKS
from cloudid_core.catalog import CATALOG
from cloudid_core.errors import Code
from cloudid_core.forms import NOT_OFFERED
from cloudid_core.health import HealthProblem
from cloudid_core.messages import Operation
from cloudid_core.mounts import BUILT_IN, MOUNT_BYTES, default_mounts
from cloudid_core.policies import needs_sudo
from cloudid_core.provider import PROVIDER_CODES
from cloudid_core.routing import LEFT_OUT, LEFT_OUT_HEADERS, VERBS, Component, NoFields, Route

from . import azure, log, metrics, permissions, policy_language, role_grants
from .examples import examples, key_of
from .parts import PAGES, Placeholders, printed
from .tables import fields_table, table

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
PRINTED: Final = "Printed by `make docs` from the tables in the code. Do not edit."

PLACES: Final = {
    (mount.kind, mount.type): mount.path for mount in (*BUILT_IN, *default_mounts(bytes(MOUNT_BYTES)).mounts)
}
"""Where a component is mounted unless somebody moves it."""

COMPONENTS: Final = {
    "system": ("sys", "The service"),
    "tokens": ("auth/token", "Tokens"),
    "issuer": ("identity", "The issuer: identity tokens, and tokens for other services"),
    "auth-method": ("auth/cloud", "The auth method"),
    "secrets-engine": ("cloud", "The secrets engine"),
}
"""The pages of components: name, usual place and title."""

CONVENTIONS: Final = (
    "POST and PUT are equivalent, and so are `LIST` and `GET ?list=true`. The examples are real "
    "responses of a service with a simulated Azure. Long strings are shortened, and empty members of the "
    "envelope are omitted."
)
CODES: Final = (
    'An error is `{"errors": […], "codes": […]}`: each text has a code. A 404 has no `codes`. The first '
    "code is also in the header `X-Service-Error-Code`. No text contains a value that the client sent. "
    "`MOUNT` is the path of the mount, by default `auth/cloud` or `cloud`."
)
PROVIDERS: Final = (
    "Responses of `rotate-root`, `permissions` and `rotation`, and warnings when `config` is read, end "
    "with Azure's own error code if the token may read the mount's `config`. The log has the code of every "
    "failure. cloudid maps the codes in the table to codes of its own. A 403 without a code or with "
    "`AuthorizationFailed`, `Authorization_RequestDenied` or `Forbidden` becomes "
    "`provider_permission_denied`, and so does a 401 without an AADSTS code. 429 becomes "
    "`provider_throttled`, 408 and 500 or higher become `provider_failed`, and every other response becomes "
    "`provider_refused`."
)
PROBLEMS: Final = (
    "Without a token, `sys/health` returns the codes in `problems`. With a token that may read "
    "`sys/health`, it also returns `problem_details`: the text of each problem and its fix. A problem with "
    "which the node can still serve requests changes the status only if the request sets `problemcode`."
)
CHECKED: Final = (
    "The checks in the order in which `explain`, audit entries and role tests show them. Only the checks "
    "that the role and the token require are made. The login is refused with the code of the first that "
    "fails. Checks that need a call to Azure come last."
)
LEFT_OUT_HEADINGS: Final = (
    "A request with one of these headers and without a token is refused with 403, and the text gives the reason."
)
LEFT_OUT_PATHS: Final = (
    "Each path includes everything below it. With a valid token, the response is 404, and its text gives the reason."
)


@cache
def pages() -> Mapping[str, str]:
    """All of them, by file name."""
    components = {PLACES[component.kind, component.type]: component for component in CATALOG}
    parts = {
        name: [f"# {title}", PRINTED, *_component(components[place], place)]
        for name, (place, title) in COMPONENTS.items()
    }
    parts["codes"] = ["# Error codes", PRINTED, CODES, _codes()]
    parts["codes"] += ["## Azure's error codes", PROVIDERS, _provider_codes()]
    parts["problems"] = ["# Health problems", PRINTED, PROBLEMS, _problems()]
    parts["checks"] = ["# Checks of a login", PRINTED, CHECKED, _checks()]
    parts["role-grants"] = ["# What a role grants", PRINTED, *role_grants.page()]
    parts["permissions"] = ["# Azure permissions", PRINTED, *permissions.page()]
    parts["policy-language"] = ["# The policy language", PRINTED, *policy_language.page()]
    parts["azure-compatibility"] = ["# Compatibility with Azure", PRINTED, *azure.page()]
    parts["left-out"] = ["# Differences from Vault", PRINTED]
    parts["left-out"] += ["## Paths", LEFT_OUT_PATHS, table(("path", "reason, or alternative"), _named(LEFT_OUT))]
    parts["left-out"] += ["## Headers", LEFT_OUT_HEADINGS, table(("header", "why"), _named(LEFT_OUT_HEADERS))]
    parts["left-out"] += ["## Fields that are accepted only while they are empty"]
    parts["left-out"] += [table(("field", "why"), _named(NOT_OFFERED))]
    return {f"{name}.md": "\n\n".join(part) + "\n" for name, part in parts.items()}


def _component(component: Component, place: str) -> Iterator[str]:
    yield component.doc
    yield CONVENTIONS
    rows = ((VERBS[route.operation], _path(place, route), _token(place, route)) for route, *_ in _groups(component))
    yield table(("method", "path", "token"), rows)
    shown: dict[type, str] = {NoFields: ""}
    for route, *others in _groups(component):
        heading = f"{VERBS[route.operation]} {place}/{route.path}"
        yield f"## `{heading}`"
        yield route.doc + "".join(f" Also `{place}/{other.path}`." for other in others)
        if route.form in shown:
            if shown[route.form]:
                yield f"Fields: those of `{shown[route.form]}`."
        else:
            shown[route.form] = heading
            yield fields_table(route.form)
        if example := examples().get(key_of(component, route)):
            yield f"```http\n{example.request}\n\n{example.answer}\n```"


def _groups(component: Component) -> list[list[Route]]:
    """Routes, with those that do the same at another path behind the first."""
    groups: dict[object, list[Route]] = {}
    for route in component.routes.routes:
        groups.setdefault((route.operation, route.program, route.form, route.doc), []).append(route)
    return list(groups.values())


def _path(place: str, route: Route) -> str:
    heading = f"{VERBS[route.operation]} {place}/{route.path}"
    anchor = "".join(each for each in heading.lower().replace(" ", "-") if each.isalnum() or each in "-_")
    return f"[`{place}/{route.path}`](#{anchor})"


def _token(place: str, route: Route) -> str:
    """Whether a request needs a token, and one whose policies also grant `sudo` at the path."""
    if route.public:
        return "no"
    path = f"{place}/{route.path}{'/' * (route.operation is Operation.LIST)}"
    return "with `sudo`" if needs_sudo(path) else "yes"


def _codes() -> str:
    """Every code, with its likely cause and its fix, and the command that shows more, if there is one."""
    rows = (
        (f"`{code.wire}`", str(code.status), code.text, row.cause, row.fix, row.command and f"`{row.command}`")
        for code, row in ((code, ADVICE[code]) for code in Code)
    )
    return table(("code", "status", "text", "likely cause", "fix", "see more with"), rows)


def _provider_codes() -> str:
    rows = ((f"`{row.name}`", f"`{row.code.wire}`", row.reason) for row in PROVIDER_CODES)
    return table(("code of the provider", "our code", "why"), rows)


def _checks() -> str:
    rows = {check.name: (f"`{check.name}`", f"`{check.code.wire}`", check.code.text) for check in CHECKS}
    return table(("check", "code", "text"), rows.values())


def _problems() -> str:
    name = Placeholders()
    rows = ((f"`{row.code}`", row.text(name), row.consequence.value, row.remedy_pattern) for row in HealthProblem)
    return table(("code", "text", "until it is fixed", "fix"), rows)


def _named(rows: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((f"`{name}`", why) for name, why in rows.items())


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    (FOLDER / "log.md").write_text(log.page())
    (FOLDER / "metrics.md").write_text(metrics.page())
    for page in PAGES:
        page.write_text(printed(page.read_text()))
