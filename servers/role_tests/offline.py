"""Cases against roles of a file: the same pure decision as in a login, without a server and without a network."""

from __future__ import annotations

from cloudid_core.auth_method.decision import Case as Login
from cloudid_core.auth_method.decision import Trust
from cloudid_core.auth_method.explain import ExplainForm, given_claims, given_facts
from cloudid_core.auth_method.explanation import explanation_of
from cloudid_core.auth_method.form import validate
from cloudid_core.auth_method.roles import Role, check
from cloudid_core.caches import Caches
from cloudid_core.errors import Code, Refused
from cloudid_core.forms.fields import parse, require
from cloudid_core.settings import Settings
from cloudid_core.tokens.settings import merged
from cloudid_core.values.secret import Secret

from .cases import Case, Suite, Verdict


class Offline:
    """Decides cases by the roles of their files. `now` is the instant at which they take place."""

    def __init__(self, suite: Suite, now: float) -> None:
        self._suite = suite
        self._now = now
        settings = Settings(master_key=Secret("00" * 32))
        self._caches = Caches(settings)
        mount = suite.mount
        tenant = mount.tenant_id
        usual = f"https://login.microsoftonline.com/{tenant}/v2.0", f"https://sts.windows.net/{tenant}/"
        self._trust = Trust(
            audience=mount.resource,
            tenant_id=tenant,
            issuers=frozenset(mount.issuers or usual),
            leeway=settings.leeway,
            machine_check=settings.machine_check,
        )

    def decide(self, case: Case) -> Verdict:
        try:
            return Verdict.of(explanation_of(self._login(case)).described)
        except Refused as refused:
            return Verdict.of_refusal([problem.code.wire for problem in refused.problems], str(refused))

    def _login(self, case: Case) -> Login:
        """The login of a case. Raises `Refused` as the service would."""
        given = parse(ExplainForm, case.body)
        require(ExplainForm, given)
        form = ExplainForm(**given.values)
        validate(form)
        claims = given_claims(form.claims, self._trust, self._now, self._caches)
        return Login(
            claims=claims,
            facts=given_facts(form.facts or {}, claims),
            bounds=self._role(form.role.lower()).bounds,
            form=form,
            trust=self._trust,
            now=self._now,
            address=form.remote_address or None,
        )

    def _role(self, name: str) -> Role:
        written = self._suite.roles.get(name)
        if written is None:
            raise Refused(Code.ROLE_NOT_FOUND)
        given = parse(Role, written)
        if given.ignored:
            raise Refused(Code.FIELD_INVALID, f"the role has unknown fields: {' '.join(given.ignored)}")
        role = merged(Role(), given)
        check(role)
        return role
