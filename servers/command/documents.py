"""Writes the printed parts of pages from the tables: `python -m cloudid_servers.command.documents`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from cloudid_core.auth_method import config as auth_method
from cloudid_core.documents import table
from cloudid_core.forms.environment import FALLBACK, OVERRIDE
from cloudid_core.forms.fields import fields_of
from cloudid_core.issuer import FACTS
from cloudid_core.mounts import AUTH, SECRET
from cloudid_core.permissions.table import ROTATE, directory_permissions, role_definition
from cloudid_core.secrets_engine import config as secrets_engine

from ..client import KINDS
from ..settings import settings

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGES: Final = tuple(sorted((*DOCS.glob("reference/*.md"), *DOCS.glob("how-to/*.md"))))
_PART: Final = re.compile(r"(<!-- printed: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
FORMS: Final = (auth_method.Config, secrets_engine.Config)


def variables() -> str:
    """The environment variables that change configurations."""
    lines = ["| Variable | Fallback | Field of `auth/cloud/config` | Field of `cloud/config` |", "|---|---|---|---|"]
    login, engine = ({row.env: row.name for row in fields_of(form) if row.env} for form in FORMS)
    for name in dict.fromkeys((*login, *engine)):
        cells = (OVERRIDE + name, FALLBACK + name, login.get(name), engine.get(name))
        lines.append(f"| {' | '.join(f'`{cell}`' if cell else '' for cell in cells)} |")
    return "\n".join(lines) + "\n"


def identities() -> str:
    """The identities that `cloudid login` looks for."""
    rows = ((f"`{one.name}`", one.doc, ", ".join(f"`{name}`" for name in one.variables)) for one in KINDS)
    return table(("`--identity`", "This machine is", "What is set in its environment"), rows) + "\n"


def facts() -> str:
    """What templates of tokens for other services can name."""
    return table(("`NAME`", "What it is"), ((f"`{name}`", doc) for name, doc in FACTS.items())) + "\n"


PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings.markdown,
    "variables": variables,
    "identities": identities,
    "facts": facts,
    "login_role": partial(role_definition, AUTH, "cloudid logins", "Looks up the machines that log in"),
    "engine_role": partial(role_definition, SECRET, "cloudid engine", "Assigns roles to the principals that it lends"),
    "engine_permissions": partial(directory_permissions, SECRET, "roles with azure_roles", ROTATE),
}


def printed(page: str) -> str:
    """The page with all its printed parts as the tables have them now."""
    return _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(printed(page.read_text()))
        sys.stdout.write(f"{page}\n")
