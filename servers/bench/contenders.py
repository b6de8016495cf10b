"""Ways to verify a token, from the signature alone to the whole decision."""

from __future__ import annotations

import gc
from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import jwt
from attrs import evolve, frozen
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from cloudid_core import Secret, Settings
from cloudid_core.auth_method.checks import NEEDED, TOKEN_CHECKS
from cloudid_core.auth_method.decision import Case, Trust, Verified, admit, plan_of, run
from cloudid_core.auth_method.form import LoginForm
from cloudid_core.auth_method.roles import Role
from cloudid_core.auth_method.verification import verify_login_jwt
from cloudid_core.caches import Caches
from cloudid_core.verify.verifier import form_of as place_of

from .subject import Subject

T = TypeVar("T")


@frozen
class Contender(Generic[T]):
    """Measures one pass over all items. `prepare` is called before it, off the clock."""

    items: Sequence[T]
    step: Callable[[T], object]
    prepare: Callable[[], object] = gc.collect

    def run(self) -> None:
        step = self.step
        for item in self.items:
            step(item)


def raw_rsa(subject: Subject) -> Contender[tuple[bytes, bytes]]:
    """Verify the signature alone, with the `cryptography` library."""
    padding, digest, verify = PKCS1v15(), SHA256(), subject.key.verify
    signed = [token.rpartition(".") for token in subject.tokens]
    pairs = [(urlsafe_b64decode(signature + "=="), text.encode()) for text, _, signature in signed]

    def step(pair: tuple[bytes, bytes]) -> None:
        verify(pair[0], pair[1], padding, digest)

    return Contender(pairs, step)


def pyjwt(subject: Subject) -> Contender[str]:
    """Call PyJWT's `decode`, with audience and issuer, but without time: a recorded token may have expired."""
    key, audience, issuer = subject.key, subject.audience, subject.issuer
    options: Any = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}

    def step(token: str) -> None:
        jwt.decode(token, key, algorithms=["RS256"], audience=audience, issuer=issuer, options=options)

    return Contender(subject.tokens, step)


def verification(
    subject: Subject, *, is_cached: bool, form_of: Callable[[str], LoginForm] | None = None
) -> Contender[LoginForm]:
    """Decide on each token as a login does. `is_cached`: its signature was verified before; otherwise it is new.

    `form_of` makes the login of a token; without it, a login names the place of the machine as its token does. Raises
    `CloudidError` at a token that is not admitted, and `ValueError` if its bounds need facts that it has not.
    """
    settings = Settings(master_key=Secret())
    caches = Caches(settings)
    lists: dict[str, Any] = dict(subject.bounds)
    bounds, key_set, now = Role(**lists).bounds, subject.key_set, subject.now
    trust = Trust(subject.audience, subject.tenant_id, key_set.issuers, 60.0, NEEDED)
    signatures = caches.signatures

    def step(form: LoginForm) -> None:
        if not is_cached:
            signatures.clear()
        claims = verify_login_jwt(form.jwt, key_set, caches, "mount", settings.jwt_limit)
        case = Case(claims, trust, now, bounds=bounds, form=form)
        run(TOKEN_CHECKS, case)
        if type(admit(plan_of(case), case)) is not Verified:
            raise ValueError("the bounds need facts about the machine that no token has: use other bounds")

    def usual_form(token: str) -> LoginForm:
        return evolve(place_of(verify_login_jwt(token, key_set, caches, "mount", settings.jwt_limit)), jwt=token)

    return Contender([(form_of or usual_form)(token) for token in subject.tokens], step)
