"""Documents: the reference pages, printed from the tables that the service itself runs on.

`python -m cloudid_core.documents` prints the page that is kept as `docs/reference/routes.md`, and with the argument
`openapi` the same as an OpenAPI document.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from attrs import NOTHING, Factory

from .auth_method import RULES
from .catalog import CATALOG
from .errors import Code
from .forms import NOT_OFFERED, Field, fields_of
from .health import HealthProblem, Placeholders
from .messages import Operation
from .mounts import BUILT_IN
from .openapi import document_of, generic_place, paths_of
from .policies import needs_sudo
from .provider import PROVIDER_CODES
from .routing import LEFT_OUT, VERBS, Component, NoFields, Route
from .settings import Settings
from .values import Secret

PROBLEMS: Final = (
    "Without a token `problems` has the codes. A token that may read `sys/health` also gets `problem_details`: the "
    "text of each occurrence and what mends it. A problem with which the node serves changes the status only where "
    "`problemcode` asks for that."
)


PROVIDER_CODES_TOLD: Final = (
    "What `rotate-root`, `permissions` and `rotation` answer, and warnings at a read of `config`, end with the "
    "provider's own code, if the token may read `config` of the mount. The log has the code of every failure. These "
    "codes have one of ours; any other is `provider_permission_denied` with status 401 or 403 of the provider, "
    "`provider_throttled` with 429, `provider_failed` with 408 and from 500 on, and otherwise `provider_refused`."
)


CHECKED: Final = (
    "In the order in which `explain`, audit entries and tests of roles show them. A login meets those that its role "
    "and its token ask for, and is refused with the code of the first that fails; those that need the provider's word "
    "come last."
)


LEFT_OUT_PATHS: Final = (
    "Each stands for itself and for all that is below it. With a good token the answer is 404, and its text has the "
    "reason."
)


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def fields_table(form: type) -> str:
    """The fields of a form or record: name, type, default, environment variable, meaning."""
    return table(("field", "type", "default", "environment", "meaning"), map(_field_row, fields_of(form)))


def _field_row(field: Field) -> tuple[str, ...]:
    name = f"`{field.name}`" + (f" (`{field.old_name}`)" if field.old_name else "")
    default = "required" if field.required else _default(field)
    return name, field.kind.name, default, f"`CLOUD_{field.env}`" if field.env else "", field.doc


def _default(field: Field) -> str:
    if field.default is NOTHING or isinstance(field.default, Factory):  # type: ignore[arg-type]
        return ""
    shown = "" if isinstance(field.default, Secret) else field.kind.show(field.default)
    return f"`{shown}`" if shown not in ("", []) else "empty"


def routes_table(component: Component) -> str:
    """The routes of a component, relative to its mount."""
    return table(
        ("method", "path", "token", "what it does"),
        (
            (VERBS[route.operation], f"`{route.path}`", _token(component, route), route.doc)
            for route in component.routes.routes
        ),
    )


def _token(component: Component, route: Route) -> str:
    """Whether a request needs a token, and one whose policies also grant `sudo` at the path."""
    if route.public:
        return "no"
    path = next((mount.path for mount in BUILT_IN if mount.type == component.type), component.type)
    return "with `sudo`" if needs_sudo(f"{path}/{route.path}{'/' * (route.operation is Operation.LIST)}") else "yes"


def codes_table() -> str:
    """Every error code, with its status and text."""
    return table(("code", "status", "text"), ((f"`{code.wire}`", str(code.status), code.text) for code in Code))


def provider_codes_table() -> str:
    """The provider's codes that have a code of ours."""
    return table(
        ("code of the provider", "our code", "why"),
        ((f"`{row.name}`", f"`{row.code.wire}`", row.reason) for row in PROVIDER_CODES),
    )


def checks_table() -> str:
    """Every check of a login, as explanations show them."""
    return table(
        ("check", "code", "text"), ((f"`{rule.name}`", f"`{rule.code.wire}`", rule.code.text) for rule in RULES)
    )


def left_out_table() -> str:
    """The paths that are left out, and why."""
    return table(("path", "why, or what instead"), ((f"`{path}`", why) for path, why in LEFT_OUT.items()))


def not_offered_table() -> str:
    """The fields that ask for what is not offered here, and why."""
    return table(("field", "why"), ((f"`{name}`", why) for name, why in NOT_OFFERED.items()))


def problems_table() -> str:
    """Every problem that health tells, with what it means and what mends it."""
    name = Placeholders()
    rows = ((f"`{row.code}`", row.text(name), row.consequence.value, row.remedy(name)) for row in HealthProblem)
    return table(("code", "text", "until it is mended", "what mends it"), rows)


def reference() -> str:
    """The whole page."""
    parts = [
        "# Reference",
        "Printed by `python -m cloudid_core.documents` from the tables that the service runs on; a test compares.",
        "POST and PUT are the same, and so are `LIST` and `GET ?list=true`. All paths are below `/v1/`.",
        "For tools: `GET sys/internal/specs/openapi` answers all of it as an OpenAPI 3.1 document.",
    ]
    for component in CATALOG:
        parts += [f"## {component.kind} component `{component.type}`", component.doc, routes_table(component)]
        forms = {route.form: route for route in component.routes.routes if route.form is not NoFields}
        for form, route in forms.items():
            parts += [f"### Fields of `{VERBS[route.operation]} {route.path}`", fields_table(form)]
    parts += ["## Paths of existing services that are left out", LEFT_OUT_PATHS, left_out_table()]
    parts += ["## Fields of existing services that are accepted only while they are empty", not_offered_table()]
    parts += ["## Checks of a login", CHECKED, checks_table()]
    parts += ["## Settings of the service", fields_table(Settings), "## Error codes", codes_table()]
    parts += ["### Codes of the cloud provider", PROVIDER_CODES_TOLD, provider_codes_table()]
    parts += ["## Problems of `sys/health`", PROBLEMS, problems_table()]
    return "\n\n".join(parts) + "\n"


def openapi() -> str:
    """The interface as an OpenAPI document, with parameters for the paths of mounts."""
    built_in = {(mount.kind, mount.type): mount.path for mount in BUILT_IN}
    return document_of(
        paths_of(each, built_in.get((each.kind, each.type)) or generic_place(each.kind, each.type)) for each in CATALOG
    )


if __name__ == "__main__":
    print(openapi() if sys.argv[1:] == ["openapi"] else reference(), end="")  # noqa: T201  # that is what it is for
