"""The rights of credentials, as the record of a lease has them."""

from __future__ import annotations

from cloudid_core.provider.provisioned import Provisioned
from cloudid_core.provider.rights import Rights, rights_made

SCOPE = "/subscriptions/s/resourceGroups/web"
ASSIGNMENT = f"{SCOPE}/providers/Microsoft.Authorization/roleAssignments/one"


def test_rights_are_the_assignments_with_their_definitions_and_the_memberships() -> None:
    made = Provisioned(
        made_at=0.0, client_id="app", assignments=(ASSIGNMENT,), definitions=("reader",), groups=("group",)
    )
    expected = Rights(client_id="app", assignments=((SCOPE, "reader"),), memberships={"groups": ("group",)})
    assert rights_made(made) == expected


def test_rights_are_unknown_where_the_record_has_no_definitions() -> None:
    assert rights_made(Provisioned(made_at=0.0, assignments=(ASSIGNMENT,))) is None
