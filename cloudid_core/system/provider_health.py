"""Failures of Azure, as health and metrics report them, and what they affect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..caches import Caches
from ..health import HealthProblem, Occurrence
from ..metrics import Numbers, put
from ..provider import Family, Trouble, troubles
from ..values import rfc3339

SERVICES: Final[Mapping[Family, str]] = {
    Family.LOGIN: "Microsoft Entra ID's token endpoint",
    Family.RESOURCE_MANAGER: "Azure Resource Manager",
    Family.DIRECTORY: "Microsoft Graph",
}
LOGINS: Final[Mapping[Family, str]] = {
    Family.LOGIN: "logins of new machines, rotation of the credential",
    Family.RESOURCE_MANAGER: "logins of new machines",
    Family.DIRECTORY: "logins that need groups, rotation of the credential",
}
"""What a failing family affects in an auth method."""
CREDENTIALS: Final[Mapping[Family, str]] = {
    Family.LOGIN: "new credentials, revocations, rotation",
    Family.RESOURCE_MANAGER: "new credentials with role assignments, their revocations",
    Family.DIRECTORY: "new credentials, revocations, rotation",
}
"""What a failing family affects in a secrets engine."""


def provider_problems(caches: Caches) -> Mapping[HealthProblem, Sequence[Occurrence]]:
    """Return the problems with Azure that health currently reports."""
    problems: dict[HealthProblem, list[Occurrence]] = {}
    for trouble in troubles(caches):
        problem, occurrence = _problem_of(trouble)
        problems.setdefault(problem, []).append(occurrence)
    return problems


def _problem_of(trouble: Trouble) -> tuple[HealthProblem, Occurrence]:
    facts = {"since": rfc3339.show(trouble.since), "reason": trouble.reason}
    if trouble.family is Family.KEYS:
        return HealthProblem.SIGNING_KEYS_OUTDATED, {**facts, "tenant": trouble.mount}
    affected = (LOGINS if trouble.mount.startswith("auth/") else CREDENTIALS)[trouble.family]
    facts |= {"mount": trouble.mount, "affected": affected}
    if trouble.is_refused:
        return HealthProblem.CREDENTIAL_REFUSED, {**facts, "credential": trouble.credential.replace("_", " ")}
    service = SERVICES[trouble.family]
    if trouble.access is not None:
        service = f"{trouble.access.value} {service}"
    return HealthProblem.PROVIDER_FAILING, {**facts, "service": service}


def put_troubles(numbers: Numbers, caches: Caches) -> None:
    failing = {("" if each.family is Family.KEYS else each.mount, each.family.value) for each in troubles(caches)}
    for labels in sorted(failing):
        put(numbers, "cloudid_provider_failing", 1, labels)
