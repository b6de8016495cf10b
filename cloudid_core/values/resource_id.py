"""Resource ids: `/subscriptions/{guid}/resourceGroups/{group}/providers/{namespace}/{type}/{name}[/{type}/{name}…]`.

They are compared segment by segment, never as substrings.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from attrs import field, frozen

from .folding import fold
from .guid import GUID

VIRTUAL_MACHINE: Final = "Microsoft.Compute/virtualMachines"
SCALE_SET: Final = "Microsoft.Compute/virtualMachineScaleSets"
SCALE_SET_INSTANCE: Final = f"{SCALE_SET}/virtualMachines"
USER_ASSIGNED_IDENTITY: Final = "Microsoft.ManagedIdentity/userAssignedIdentities"

_MESSAGE: Final = "must be a resource id: /subscriptions/…/resourceGroups/…/providers/{namespace}/{type}/{name}"
_LONGEST: Final = 2048
RESOURCE_GROUP: Final = re.compile(r"[\w.()-]{0,89}[\w()-]")
VM_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_])?")
_NAME: Final = re.compile(r"(?!\.{1,2}(?:/|\Z)| )[^/\\?#%\x00-\x1f\x7f]{1,260}(?<! )")
PROVIDER: Final = re.compile(r"/providers/[a-z][a-z0-9.]{0,127}")
"""In lower case: the namespace of a resource provider below the tenant or a resource."""

RESOURCE: Final = re.compile(
    # A second "providers" would start an extension resource, whose segments pair up differently.
    rf"{PROVIDER.pattern}(?:/(?!providers/)[a-z0-9][a-z0-9._-]{{0,127}}/{_NAME.pattern}){{1,16}}"
)
"""In lower case: the path of a resource below a resource group, a subscription, the tenant or another resource."""

_FOLDED_ID: Final = re.compile(
    rf"/subscriptions/{GUID.pattern}/resourcegroups/{RESOURCE_GROUP.pattern}{RESOURCE.pattern}"
)


@frozen
class ResourceId:
    """A resource id in its parts, as given. Ids that differ only in case are equal.

    `types` and `names` correspond: ("virtualMachineScaleSets", "virtualMachines") and ("set", "0").
    """

    subscription: str = field(eq=False)
    resource_group: str = field(eq=False)
    namespace: str = field(eq=False)
    types: tuple[str, ...] = field(eq=False)
    names: tuple[str, ...] = field(eq=False)
    folded: str = field(repr=False)
    """The id in lower case, for comparisons and keys. It is derived from the parts; `parse` already has it."""

    @folded.default
    def _fold(self) -> str:
        return fold("/".join(self._segments()))

    @property
    def type(self) -> str:
        """The namespace and all types, such as "Microsoft.Compute/virtualMachines"."""
        return "/".join((self.namespace, *self.types))

    @property
    def name(self) -> str:
        """The last name, which is the resource's own."""
        return self.names[-1]

    @property
    def path(self) -> str:
        """The URL path, every segment percent-encoded."""
        return "/".join(quote(segment, safe="") for segment in self._segments())

    def is_a(self, wanted: str) -> bool:
        """Return whether the resource has a type. Case is ignored."""
        return fold(self.type) == fold(wanted)

    def _segments(self) -> tuple[str, ...]:
        head = ("", "subscriptions", self.subscription, "resourceGroups", self.resource_group)
        pairs = (segment for pair in zip(self.types, self.names, strict=True) for segment in pair)
        return (*head, "providers", self.namespace, *pairs)


def parse(text: object) -> ResourceId:
    """Parse the id of a resource in a resource group; nothing is decoded, repaired or ignored."""
    lower = folded(text)
    _, _, subscription, _, group, _, namespace, *pairs = str(text).split("/")
    return ResourceId(subscription, group, namespace, tuple(pairs[::2]), tuple(pairs[1::2]), lower)


def folded(text: object) -> str:
    """Return the same as `parse(text).folded`, but faster."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ValueError(_MESSAGE)
    lower = fold(text)
    if not _FOLDED_ID.fullmatch(lower) or not (text.isascii() or text.isprintable()):
        raise ValueError(_MESSAGE)
    return lower


def folded_name(name: str, head: str) -> str:
    """Return the name in lower case, if it is valid in an id that starts with `head`, a folded id up to its last slash.

    `head + folded_name(name, head)` is the same as `folded(head + name)`, but even faster.
    """
    if not _NAME.fullmatch(name) or not (name.isascii() or name.isprintable()) or len(head) + len(name) > _LONGEST:
        raise ValueError(_MESSAGE)
    return fold(name)


def user_assigned_identity(raw: object) -> str:
    """Return the resource id of a user-assigned identity, unchanged."""
    if not parse(raw).is_a(USER_ASSIGNED_IDENTITY):
        raise ValueError(f"must be the resource id of a {USER_ASSIGNED_IDENTITY}")
    return str(raw)


def resource_group(raw: object) -> str:
    """Return the name of a resource group: 1 to 90 letters and digits of any script, `-`, `_`, `.`, `(` and `)`."""
    if not isinstance(raw, str) or not RESOURCE_GROUP.fullmatch(raw):
        raise ValueError("must be the name of a resource group")
    return raw


def vm_name(raw: object) -> str:
    """Return the name of a virtual machine or scale set.

    It has 1 to 128 ASCII letters and digits, with `.`, `_` and `-` inside.
    """
    if not isinstance(raw, str) or not VM_NAME.fullmatch(raw):
        raise ValueError("must be the name of a virtual machine or scale set")
    return raw
