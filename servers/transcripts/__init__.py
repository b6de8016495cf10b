"""Transcripts: what a provider answered to the calls of the core, without ids and secrets, and comparisons."""

from .comparing import differences
from .recording import Recorder, TranscriptRefused, read
from .story import Tenant, record

__all__ = ["Recorder", "Tenant", "TranscriptRefused", "differences", "read", "record"]
