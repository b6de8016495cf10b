"""The routes below auth/token."""

from . import routes
from .roles import TokenRole
