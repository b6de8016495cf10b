"""Transcripts: what a provider answered to the calls of the core, without ids and secrets, and comparisons."""

from .comparing import differences, unlike_the_tables
from .recording import TranscriptRefused, read
from .story import Tenant, record
