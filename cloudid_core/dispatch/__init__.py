"""From a request to its response."""

from ..routing import Exchange
from .audit_entry import probe, response_entries
from .body_limit import UNASKED
from .dispatch import respond
from .request_ids import KEY_SIZE, RequestIds

__all__ = ["KEY_SIZE", "UNASKED", "Exchange", "RequestIds", "probe", "respond", "response_entries"]
