"""The routes below auth/token."""

from . import routes
from .existing import hard_end
from .roles import TokenRole
