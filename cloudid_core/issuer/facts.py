"""What is proven of a login, and templates: which of it a token says, and under which names."""

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
    "oid": "object id of the principal",
    "tenant_id": "its directory",
    "app_id": "client id of its application",
    "jwt_type": "`app` or `user`",
    "identity_id": "resource id of the user-assigned identity",
    "subscription_id": "of the machine",
    "resource_group_name": "of the machine",
    "vm_name": "name of the virtual machine",
    "vmss_name": "name of the scale set",
    "resource_id": "of a machine that is neither",
    "location": "of the machine, if the provider was asked",
    "role": "the role of the login",
    "mount_accessor": "where the login was: it stays when the mount is moved",
}
"""All names that a template can use. What the login did not prove is not there."""

RESERVED: Final = frozenset(
    "acr amr at_hash aud auth_time azp c_hash cnf exp iat iss jti namespace nbf nonce sub".split()
)
"""Claims that no template gives: the service does, or nobody."""

LONGEST: Final = 2048
MOST_NAMES: Final = 32
SAMPLE: Final = dict.fromkeys(FACTS, "x")
_NAME: Final = re.compile(r"\{\{([^{}]*)\}\}(\s*:)?")


def facts_of(token: Token, mount: Mount) -> dict[str, str]:
    """What the login that gave a token has proven."""
    proven = {**(token.metadata or {}), "oid": token.principal_id, "mount_accessor": mount.accessor}
    return {name: proven[name] for name in FACTS if name in proven}


def claims_of(template: str, facts: Mapping[str, str]) -> dict[str, Any]:
    """The claims that a template makes of facts; all of them without one. `ValueError`: it is no template.

    Each name is replaced by a whole JSON text, so no fact can change anything but its own claim.
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
            "must be a JSON object, or one in base64, with {{NAME}} for values, where NAME is one of "
            + ", ".join(FACTS)
        ) from None
    if not RESERVED.isdisjoint(claims):
        raise ValueError("must not give any of the claims " + ", ".join(sorted(RESERVED)))
    return text


TEMPLATE: Final = FieldType("template", _template)
