"""Audit devices of a server, and the verifier of what they wrote (`python -m cloudid_servers.audit verify FILE`)."""

from .devices import Devices, Report
from .files import make_folder

__all__ = [
    "Devices",
    "Report",
    "make_folder",
]
