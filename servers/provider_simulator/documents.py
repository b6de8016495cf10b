"""Documents: the page about the simulator, from what its own modules say."""

from __future__ import annotations

from inspect import cleandoc
from typing import Final

from . import behaviour, control, ledger

START: Final = """\
# The simulated cloud

Printed by `python -m servers.provider_simulator.documents`; a test compares them.

    python -m servers.provider_simulator [--listen HOST:PORT] [--seed N]

One address is the whole cloud: the login host below `/login`, the resource manager below `/arm`, the directory below
`/graph`, each machine's metadata service below `/machines/NAME/metadata`, and the control API below `/simulator`. The
same seed makes the same world. A server uses it with `--provider URL`; with `--dev` it starts one of its own.

The vendor's identity libraries work against a machine's metadata service: set `AZURE_POD_IDENTITY_AUTHORITY_HOST` to
`URL/machines/NAME`.
"""


def page() -> str:
    """The page, in Markdown: each module's own words, laid out as they are there."""
    sections = (("The control API", control), ("Behaviour", behaviour), ("The ledger", ledger))
    parts = [f"## {title}\n\n```text\n{cleandoc(module.__doc__ or '')}\n```\n" for title, module in sections]
    return "\n".join([START, *parts])


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # that is what it is for
