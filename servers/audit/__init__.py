"""Audit devices of a server, the verifier of what they wrote, and what a token did by it."""

from .devices import Devices, Report
from .files import make_folder
from .trace import Trace
