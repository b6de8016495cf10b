"""What clients need: who this machine is, requests to the service, where tokens are kept, and cures for refusals.

It prints nothing; the commands that people type are elsewhere.
"""

from .agent import LOGIN, Agent, Kept
from .commands import STOPS, NoSuchCommand, exit_code, run_command
from .cures import CURES, Cure, cure_of
from .identity import KINDS, RESOURCE, Identity, Kind, NoIdentity, Surroundings, find_identity, identity_of_token
from .paths import MOUNTABLE, fields_at, is_secret, route_at
from .service import Address, Service, ServiceRefused
from .tokens import VARIABLES, find_token, store_token
from .web import Unreachable

__all__ = [
    "CURES",
    "KINDS",
    "LOGIN",
    "MOUNTABLE",
    "RESOURCE",
    "STOPS",
    "VARIABLES",
    "Address",
    "Agent",
    "Cure",
    "Identity",
    "Kept",
    "Kind",
    "NoIdentity",
    "NoSuchCommand",
    "Service",
    "ServiceRefused",
    "Surroundings",
    "Unreachable",
    "cure_of",
    "exit_code",
    "fields_at",
    "find_identity",
    "find_token",
    "identity_of_token",
    "is_secret",
    "route_at",
    "run_command",
    "store_token",
]
