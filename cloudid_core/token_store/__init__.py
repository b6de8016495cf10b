"""The routes below auth/token."""

from . import routes

__all__ = ["routes"]
