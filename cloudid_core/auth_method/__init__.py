"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, routes
from .checks import CHECKS, Source
from .claims import Claims
from .decision import Case, Needs, Trust, decide
from .form import LoginForm
from .given import GivenFacts, GivenMachine, given_facts
from .roles import Role
from .roles import check as check_role
from .verification import UnknownKey, verify_login_jwt

__all__ = [
    "CHECKS",
    "Case",
    "Claims",
    "GivenFacts",
    "GivenMachine",
    "LoginForm",
    "Needs",
    "Role",
    "Source",
    "Trust",
    "UnknownKey",
    "check_role",
    "config",
    "decide",
    "given_facts",
    "routes",
    "verify_login_jwt",
]
