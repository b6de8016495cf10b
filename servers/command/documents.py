"""Writes the printed parts of the operators' page from the tables: `python -m cloudid_servers.command.documents`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from cloudid_core.auth_method import config as auth_method
from cloudid_core.forms.environment import FALLBACK, OVERRIDE
from cloudid_core.forms.fields import fields_of
from cloudid_core.secrets_engine import config as secrets_engine

from ..settings import settings

PAGE: Final = Path(__file__).parents[2] / "docs" / "operators.md"
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


PARTS: Final = {"settings": settings.markdown, "variables": variables}


def printed(page: str) -> str:
    """The page with all its printed parts as the tables have them now."""
    return _PART.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], page)


if __name__ == "__main__":
    PAGE.write_text(printed(PAGE.read_text()))
    sys.stdout.write(f"{PAGE}\n")
