"""The version of the distribution."""

from typing import Final

VERSION: Final = "0.2.0"
