"""The check at a renewal: would the role, as it is now, still admit the machine that it gave the token to?

The token's record contains what the login proved. Azure is queried as in a login: through the same caches, lists and
budget. If the answer cannot be determined, the token is renewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..caches import JwtCaches
from ..context import Context, Recheck
from ..deadline import Deadline
from ..effects import Now
from ..errors import Code, Refused
from ..mounts import Mount, mount_table
from ..provider import PROVIDER_FAILURES, refusal_of
from ..values import SCALE_SET, VIRTUAL_MACHINE
from .checks import EACH
from .claims import APP, Claims, NamedMachine, named_machine
from .decision import NO_FACTS, Case, Needs, Trust, plan_of
from .form import LoginForm
from .login import asked_facts
from .snapshot import read_snapshot

PATIENCE: Final = 10.0
"""Seconds to wait for Azure, or half of the remaining time if that is shorter.

Afterwards the token is renewed.
"""


async def recheck(
    context: Context, mount: Mount, principal_id: str, metadata: Mapping[str, str], deadline: Deadline
) -> Recheck:
    """Refuse with `NO_LONGER_ADMITTED` and the code of the check that a login would fail, if the role requires it."""
    snapshot = await read_snapshot(context, await mount_table(context.records), mount.id, metadata["role"])
    role = snapshot.stored_role
    if not role.recheck_on_renewal:
        return Recheck()
    claims = _claims(principal_id, metadata, context.caches)
    form = LoginForm(
        subscription_id=metadata.get("subscription_id", ""), resource_group_name=metadata.get("resource_group_name", "")
    )
    unknown = [Code.ROLE_NEWER_THAN_NODE.wire] if role.unknown_bounds else []
    unknowable = set() if claims.identity else {Code.BOUND_IDENTITY_MISMATCH}

    def fail(code: Code) -> None:
        if code not in unknowable:
            raise Refused(Code.NO_LONGER_ADMITTED, code.wire)
        unknown.append(code.wire)

    case = Case(claims=claims, trust=Trust("", "", frozenset(), 0.0, EACH), bounds=role.bounds, form=form)
    plan = plan_of(case)
    for check in plan.by_token:
        if not check.holds(case):
            fail(check.code_of(case))
    needs = Needs(machine=plan.needs_machine, groups=plan.needs_groups)
    try:
        now = await Now()
        client = snapshot.client(Deadline(min(now + PATIENCE, (now + deadline.at) / 2)))
        case.facts = await asked_facts(client, claims, NO_FACTS, needs)
    except (Refused, *PROVIDER_FAILURES) as failure:
        return Recheck(snapshot.expects, (*unknown, refusal_of(failure).code.wire))
    if case.known_machine is not None and case.known_machine.unread:
        unknowable.add(case.known_machine.unread)
    for check in plan.by_facts:
        if not check.holds(case):
            fail(check.code_of(case))
    return Recheck(snapshot.expects, tuple(unknown))


def _claims(principal_id: str, metadata: Mapping[str, str], caches: JwtCaches) -> Claims:
    """Return the stored claims of the login's token. Groups are not stored: Entra ID has them."""
    return Claims(
        issuer="",
        audiences=(),
        tenant_id="",
        principal_id=principal_id,
        expires_at=0,
        valid_from=0,
        app_id=metadata.get("app_id", ""),
        groups=frozenset(),
        groups_overflow=True,
        token_type=metadata.get("jwt_type", APP),
        machine=_machine(metadata, caches),
        identity=metadata.get("identity_id", ""),
    )


def _machine(metadata: Mapping[str, str], caches: JwtCaches) -> NamedMachine | None:
    """Return the machine that the login named. A virtual machine of a scale set has two names."""
    group = "/subscriptions/{subscription_id}/resourceGroups/{resource_group_name}/providers"
    for name, form in (
        ("resource_id", "{resource_id}"),
        ("vm_name", f"{group}/{VIRTUAL_MACHINE}/{{vm_name}}"),
        ("vmss_name", f"{group}/{SCALE_SET}/{{vmss_name}}"),
    ):
        if name in metadata:
            return named_machine(form.format_map(metadata), caches)
    return None
