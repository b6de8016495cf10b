"""Names that credentials have in an environment, and files with lines of NAME=value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..typed import typed

AZURE: Final = {
    "client_id": "AZURE_CLIENT_ID",
    "client_secret": "AZURE_CLIENT_SECRET",
    "tenant_id": "AZURE_TENANT_ID",
    "subscription_id": "AZURE_SUBSCRIPTION_ID",
}
"""Where Azure's libraries look for credentials."""
TERRAFORM: Final = {name: variable.replace("AZURE_", "ARM_", 1) for name, variable in AZURE.items()}
"""Where Terraform's and Pulumi's providers for Azure look for them: they read no `AZURE_*`."""
TOKENS: Final = ("CLOUDID_TOKEN", "VAULT_TOKEN")
"""Where clients look for a token of the service, in this order."""
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "client_token": TOKENS,
    "access_token": ("ACCESS_TOKEN",),
    **{name: (variable, TERRAFORM[name]) for name, variable in AZURE.items()},
}
"""By the member of an answer, every variable that holds it."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-][A-Za-z0-9_.~-]*")
"""What a shell and every reader of such files take as it is, which ids and Azure's secrets are."""


def variables_of(issued: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold the members of an answer; empty members have none."""
    return {
        variable: value for name, variables in NAMES.items() if (value := issued.get(name)) for variable in variables
    }


def dotenv(variables: Mapping[str, str]) -> str:
    """Return lines of NAME=value, which systemd, a shell and readers of .env files take."""
    return "".join(f"{name}={_quoted(value)}\n" for name, value in variables.items())


def _quoted(value: str) -> str:
    """Quote only where a shell needs it: `docker run --env-file` takes quotes for a part of the value."""
    return value if _PLAIN.fullmatch(value) else typed(value)
