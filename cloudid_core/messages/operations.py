"""The operations of requests, and the HTTP methods for each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class Operation(Enum):
    """The operation of a request. Several methods may mean the same operation.

    `capability` is the one that it needs, which is also its name in events and audit entries.
    """

    READ = "read"
    LIST = "list"
    WRITE = "update"
    DELETE = "delete"

    def __init__(self, capability: str) -> None:
        self.capability = capability


READ, LIST, WRITE, DELETE = Operation

METHODS: Final[Mapping[Operation, tuple[str, ...]]] = MappingProxyType(
    {
        READ: ("GET", "HEAD"),
        LIST: ("GET", "HEAD", "LIST"),
        WRITE: ("POST", "PUT"),
        DELETE: ("DELETE",),
    }
)
"""The methods of each operation. GET and HEAD with the parameter `list=true` mean a list."""
