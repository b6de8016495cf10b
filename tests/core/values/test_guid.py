"""GUIDs."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.guid import guid, uuid_text

GUID = "0A1B2C3D-4e5f-6071-8293-a4b5c6d7e8f9"


@given(st.uuids(), st.booleans())
def test_guids_are_read_in_either_case(uuid: UUID, upper: bool) -> None:
    assert guid(str(uuid).upper() if upper else str(uuid)) == str(uuid)


@pytest.mark.parametrize(
    "raw",
    [
        "",
        GUID[:-1],
        GUID + "0",
        GUID + "\n",
        " " + GUID,
        "{" + GUID + "}",
        "urn:uuid:" + GUID,
        GUID.replace("-", ""),
        GUID.replace("0", "g"),
        GUID.replace("0", "\N{ARABIC-INDIC DIGIT ZERO}"),
        None,
        5,
        [GUID],
    ],
)
def test_what_is_no_guid(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a GUID$"):
        guid(raw)


@given(st.binary(min_size=16, max_size=16))
def test_it_is_a_version_4_uuid(random: bytes) -> None:
    """The text parses as a UUID of the random version and the standard variant, and reads back the same."""
    uuid = UUID(uuid_text(random))
    assert (uuid.version, uuid.variant, str(uuid)) == (4, "specified in RFC 4122", uuid_text(random))
