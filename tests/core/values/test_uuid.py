"""UUIDs made of given bytes."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.uuid import uuid_text


@given(st.binary(min_size=16, max_size=16))
def test_it_is_a_version_4_uuid(random: bytes) -> None:
    """The text parses as a UUID of the random version and the standard variant, and reads back the same."""
    uuid = UUID(uuid_text(random))
    assert (uuid.version, uuid.variant, str(uuid)) == (4, "specified in RFC 4122", uuid_text(random))
