"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, routes

__all__ = [
    "config",
    "routes",
]
