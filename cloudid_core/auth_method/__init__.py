"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, jws, routes
from .claims import Claims, check_claims, check_lifetime
from .claims import read as read_claims
from .decision import Facts, Needs, decide
from .explain import CHECK, given_facts, may_explain
from .explanation import RULES, Case, Check, Trust, checks_of_token, explanation_of
from .form import LoginForm
from .roles import Role
from .roles import check as check_role
