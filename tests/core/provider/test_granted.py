"""What the provider grants to a credential, as its answers say."""

from __future__ import annotations

import pytest

from cloudid_core.provider.granted import Actions


@pytest.mark.parametrize(
    "actions, not_actions, is_granted",
    [
        (("*",), (), True),
        (("*/read",), (), False),
        (("Microsoft.Authorization/*",), (), True),
        (("microsoft.authorization/ROLEASSIGNMENTS/write",), (), True),
        (("Microsoft.Authorization/*/write",), (), True),
        (("Microsoft.Authorization/roleAssignments/writes",), (), False),
        (("Microsoft_Authorization/roleAssignments/write",), (), False),
        (("*",), ("Microsoft.Authorization/*/write",), False),
        (("*",), ("Microsoft.Authorization/*/delete",), True),
        ((), (), False),
    ],
)
def test_an_action_is_granted_unless_it_is_taken_away(
    actions: tuple[str, ...], not_actions: tuple[str, ...], is_granted: bool
) -> None:
    assert Actions(actions, not_actions).grant("Microsoft.Authorization/roleAssignments/write") is is_granted
