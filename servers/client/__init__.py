"""What clients need: who this machine is, requests to the service, and where tokens are kept.

It prints nothing; the commands that people type are elsewhere.
"""

from ..web import Unreachable, Untrusted
from .agent import LOGIN, Agent, Kept
from .commands import STOPS, NoSuchCommand, exit_code, require_program, run_command
from .identity import GIVEN, KINDS, RESOURCE, Identity, NoIdentity, Surroundings, find_identity, identity_of_token
from .service import Address, RequestInterrupted, Service, ServiceRefused, is_same_address
from .tokens import Login, TokenOfAnotherAddress, find_token, last_login, store_login
from .variables import AZURE, TERRAFORM, dotenv, variables_of
from .variables import TOKENS as TOKEN_VARIABLES
