"""Options: what a server is started with besides its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from cloudid_core.values.secret import Secret


@frozen(kw_only=True)
class Options:
    """What the command line says, or another application in its place."""

    is_dev: bool = False
    is_prepared: bool = False
    """With `is_dev` and without `provider`: connect the service to its simulated cloud."""
    settings: Path | Mapping[str, Any] | None = None
    """A TOML file; the command line knows nothing else. Other applications may give its tables."""
    listen: str = ""
    provider: str = ""
    root_token: Secret = field(factory=Secret)
