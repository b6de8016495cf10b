"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, routes
from .claims import Claims, check_claims, check_lifetime
from .decision import Needs, decide
from .explain import CHECK, GivenFacts, GivenMachine, given_facts, may_explain
from .explanation import RULES, Case, Check, checks_of_token, explanation_of
from .form import LoginForm
from .roles import Role
from .roles import check as check_role
from .verification import UnknownKey, verify_login_jwt
