"""The proven facts of a login, and templates that choose which of them a token contains, and under which names."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..forms import FieldType
from ..mounts import Mount
from ..tokens import Token
from ..values import coercion, json_text

FACTS: Final[Mapping[str, str]] = {
    "oid": "object id of the service principal",
    "tenant_id": "its directory",
    "app_id": "client id of its app registration",
    "jwt_type": "`app` or `user`",
    "identity_id": "resource id of the user-assigned identity",
    "subscription_id": "of the machine",
    "resource_group_name": "of the machine",
    "vm_name": "name of the virtual machine",
    "vmss_name": "name of the scale set",
    "resource_id": "of a machine that is neither a virtual machine nor in a scale set",
    "location": "of the machine, if the login looked it up in Azure",
    "role": "the role of the login",
    "mount_accessor": "id of the mount of the login, which does not change when the mount is moved",
}
"""All names that a template can use. Facts that the login did not prove are omitted."""

RESERVED: Final = frozenset(
    "acr amr at_hash aud auth_time azp c_hash cnf exp iat iss jti namespace nbf nonce sub".split()
)
"""Claims that no template can set, because the service sets them or they are not allowed."""

LONGEST: Final = 2048
MOST_NAMES: Final = 32
SAMPLE: Final = dict.fromkeys(FACTS, "x")
_NAME: Final = re.compile(r"\{\{([^{}]*)\}\}(\s*:)?")


def facts_of(token: Token, mount: Mount) -> dict[str, str]:
    """Return what the login behind a token has proven."""
    proven = {**(token.metadata or {}), "oid": token.principal_id, "mount_accessor": mount.accessor}
    return {name: proven[name] for name in FACTS if name in proven}


def claims_of(template: str, facts: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims that a template selects from facts, or all facts without a template.

    Raise `ValueError` for an invalid template.

    Each name is replaced by a complete JSON text, so a fact can only change its own claim.
    """
    if not template:
        return dict(facts)
    text = template if template.lstrip().startswith("{") else b64decode(template, validate=True).decode()
    claims = json_text.decode(_NAME.sub(lambda name: _quoted(name, facts), text))
    if not isinstance(claims, dict):
        raise ValueError("must be a JSON object")
    return claims


def _quoted(name: re.Match[str], facts: Mapping[str, str]) -> str:
    if name[1].strip() not in FACTS or name[2]:
        raise ValueError
    return msgspec.json.encode(facts.get(name[1].strip(), "")).decode()


def _template(raw: object) -> str:
    text = coercion.text(raw)
    if len(text) > LONGEST or text.count("{{") > MOST_NAMES:
        raise ValueError(f"must have at most {LONGEST} characters, and {MOST_NAMES} names")
    try:
        claims = claims_of(text, SAMPLE)
    except ValueError:
        raise ValueError(
            "must be a JSON object, plain or base64-encoded, with {{NAME}} for values, where NAME is one of "
            + ", ".join(FACTS)
        ) from None
    if not RESERVED.isdisjoint(claims):
        raise ValueError("must not set any of the claims " + ", ".join(sorted(RESERVED)))
    return text


TEMPLATE: Final = FieldType("template", _template)
