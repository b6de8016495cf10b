"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, routes
from .claims import Claims, check_claims
from .decision import Needs, decide
from .explain import CHECK, GivenFacts, GivenMachine, given_facts
from .explanation import RULES, Case, explanation_of
from .form import LoginForm
from .roles import Role
from .roles import check as check_role
from .verification import UnknownKey, verify_login_jwt
