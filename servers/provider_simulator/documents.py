"""Prints the page about the simulator from the docstrings of its modules."""

from __future__ import annotations

from inspect import cleandoc
from typing import Final

from . import control
from .engine import behaviour, ledger

START: Final = """\
# The simulated cloud

A cloud in one process, to try the service out and to test it: it signs machines' identities, answers as the provider
does, and has faults and delays to switch on.

    cloudid simulate [--listen HOST:PORT] [--seed N] [--tls] [--allow-remote]

One address serves the whole cloud: the login service below `/login`, the resource manager below `/arm`, the directory
below `/graph`, each machine's metadata service below `/machines/NAME/metadata`, and the control API below `/simulator`.
The same seed makes the same world. A server uses it with `--provider URL`; with `--dev` a server starts one of its own.

The vendor's libraries work unchanged. They require TLS: with `--tls` the simulator makes a certificate and prints its
path, which clients use as their bundle of trusted certificates (`REQUESTS_CA_BUNDLE`, `SSL_CERT_FILE`). The login
service also answers below `/TENANT`, for libraries whose authority has the tenant as the first segment of its path;
its documents name addresses in the form that they were asked in.

What makes the identity of the machine NAME known to them, and to `cloudid login`; `GET /simulator/world` shows the
machine's `platform_secret` and `arc_key_file`:

| As | Environment |
|---|---|
| a virtual machine | `AZURE_POD_IDENTITY_AUTHORITY_HOST=URL/machines/NAME` |
| an App Service | `IDENTITY_ENDPOINT=URL/machines/NAME/msi/token`, `IDENTITY_HEADER`: the `platform_secret` |
| a server in Arc | `IDENTITY_ENDPOINT=URL/machines/NAME/arc/token`, `IMDS_ENDPOINT=URL/machines/NAME` |

Arc's agent writes the key that it asks for into a file. The simulator writes nothing: put the `platform_secret` into
`arc_key_file`, which clients read only in the folder of the real agent.

Whether it answers as your tenant does, a transcript tells: [record one](../how-to/record-a-tenant.md), and
`cloudid simulate --compare FILE` says where the simulated cloud answers otherwise.

It requires no sign-in at its control API, so it listens on loopback only unless `--allow-remote` is given.

This page is printed by `python -m cloudid_servers.provider_simulator.documents`; a test compares them.
"""


def page() -> str:
    """The page, in Markdown: the docstrings as they are."""
    sections = (("The control API", control), ("Behaviour", behaviour), ("The ledger", ledger))
    parts = [f"## {title}\n\n```text\n{cleandoc(module.__doc__ or '')}\n```\n" for title, module in sections]
    return "\n".join([START, *parts])


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # its purpose
