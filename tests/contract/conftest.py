"""What the tests of the contract have in common: the document of the interface has every answer that they get."""

from __future__ import annotations

import pytest

from tests import documented
from tests.installation import Installation


@pytest.fixture(autouse=True)
def answers_are_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    documented.document()
    monkeypatch.setattr(Installation, "watchers", (documented.check,))
