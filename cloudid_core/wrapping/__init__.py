"""Response wrapping: an answer is kept under a token that can be used once."""

from .record import Wrapped
from .wrap import check_waiting, wrapped_answer, wrapping_token

__all__ = ["Wrapped", "check_waiting", "wrapped_answer", "wrapping_token"]
