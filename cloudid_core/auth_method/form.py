"""The form of a login: the role, the token, and the machine that the caller claims to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import define

from ..errors import Code, Problem, Refused
from ..forms import TEXT, setting
from ..values import GUID, NAME, RESOURCE_GROUP, VM_NAME, name, resource_group, resource_id, vm_name
from ..values.guid import guid


@define(kw_only=True)  # frozen, it would cost twice as much to make, and every login makes one
class LoginForm:
    """The form of a login. Of the three names of a machine, the first one given is compared: scale set, VM, id.

    Empty fields are not compared, because the signed claim names the machine. Only a role that binds machines requires
    subscription and resource group, once the mount has accepted the token.
    """

    role: str = setting(TEXT, "", "Name of the role.", required=True)
    jwt: str = setting(TEXT, "", "The machine's signed token.", required=True, repr=False)
    subscription_id: str = setting(TEXT, "", "Subscription of the machine. Required if the role binds machines.")
    resource_group_name: str = setting(TEXT, "", "Resource group of the machine. Required if the role binds machines.")
    vm_name: str = setting(TEXT, "", "Name of the virtual machine. Ignored if `vmss_name` is given.")
    vmss_name: str = setting(TEXT, "", "Name of the machine's scale set.")
    resource_id: str = setting(TEXT, "", "Resource id of the machine. Ignored if `vm_name` or `vmss_name` is given.")

    @property
    def named_by(self) -> str:
        """Return the field that names the machine. Empty: none does."""
        return (self.vmss_name and "vmss_name") or (self.vm_name and "vm_name") or (self.resource_id and "resource_id")


_USUAL: Final = re.compile(
    "\n".join((NAME.pattern, *(f"(?:{each.pattern})?" for each in (GUID, RESOURCE_GROUP, VM_NAME))))
)
"""Role, subscription, resource group and virtual machine, a line each: checks the usual form at once. No name can hold
the end of a line.
"""
_GRAMMARS: Final[Mapping[str, Callable[[object], object]]] = MappingProxyType(
    {
        "role": name,
        "subscription_id": guid,
        "resource_group_name": resource_group,
        "vmss_name": vm_name,
        "vm_name": vm_name,
        "resource_id": resource_id.folded,
    }
)


def validate(form: LoginForm) -> None:
    """Refuse names that break their grammar. Names that the login ignores are not checked."""
    names = f"{form.role}\n{form.subscription_id}\n{form.resource_group_name}\n{form.vm_name}"
    if not (form.vmss_name or form.resource_id) and _USUAL.fullmatch(names):
        return
    problems: list[Problem] = []
    for member in ("role", "subscription_id", "resource_group_name", form.named_by):
        value = getattr(form, member, "")
        try:
            if value or member == "role":
                _GRAMMARS[member](value)
        except ValueError as error:
            problems.append(Problem(Code.FIELD_INVALID, f'"{member}" {error}'))
    if problems:
        raise Refused.because(problems)
