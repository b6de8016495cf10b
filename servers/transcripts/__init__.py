"""Transcripts: what a provider answered to the calls of the core, without ids and secrets, and comparisons."""

from .comparing import differences
from .recording import TranscriptRefused, read
from .story import Tenant, record

__all__ = ["Tenant", "TranscriptRefused", "differences", "read", "record"]
