"""The authentication method: a machine presents its signed identity, and gets a service token if a role admits it."""

from . import config, jws, routes
from .checks import CHECKS, TOKEN_CHECKS
from .claims import Claims
from .claims import read as read_claims
from .decision import Case, Facts, Needs, Trust, admit, plan_of, run
from .explain import CHECK, given_facts, may_explain
from .explanation import ExplainedCheck, checks_of_token, explanation_of
from .form import LoginForm
from .roles import Role
from .roles import check as check_role
