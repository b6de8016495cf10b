"""What a folder of files has made is remembered by the folder's name."""

from __future__ import annotations

import pytest

from tests.installation import Installation


def test_what_a_folder_made_is_replaced_read_and_forgotten() -> None:
    world = Installation()
    assert world.ask("GET", "sys/applied/shop").status == 404
    world.must("POST", "sys/applied/Shop", {"paths": ["sys/policies/acl/web", "auth/cloud/role/web"]})
    world.restart()
    assert world.must("GET", "sys/applied/shop").data == {"paths": ["auth/cloud/role/web", "sys/policies/acl/web"]}
    assert world.must("LIST", "sys/applied").data == {"keys": ["shop"]}
    world.must("POST", "sys/applied/shop", {"paths": ["auth/cloud/role/web"]})
    assert world.must("GET", "sys/applied/shop").data == {"paths": ["auth/cloud/role/web"]}
    world.must("DELETE", "sys/applied/shop")
    assert world.ask("GET", "sys/applied/shop").status == 404


MANY = [f"p{number}" for number in range(10_001)]


@pytest.mark.parametrize("paths", [["x" * 513], ["a\nb"], MANY], ids=["long", "unprintable", "many"])
def test_it_is_bounded(paths: list[str]) -> None:
    assert Installation().refused("POST", "sys/applied/shop", {"paths": paths}) == (400, "field_invalid")
