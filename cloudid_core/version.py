"""The version of the distribution."""

from typing import Final

VERSION: Final = "0.1.0"
