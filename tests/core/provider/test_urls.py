"""URLs of the provider."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.provider.urls import same_origin, url

BASE = "https://arm.test/prefix"
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@given(st.lists(TEXT.filter(lambda text: text not in (".", "..")), max_size=5), st.dictionaries(TEXT, TEXT, max_size=3))
def test_every_segment_and_value_stays_in_its_place(segments: list[str], query: dict[str, str]) -> None:
    built = urlsplit(url(BASE, *segments, **query))
    assert built.netloc == "arm.test"
    assert [unquote(segment) for segment in built.path.split("/")] == ["", "prefix", *segments]
    assert parse_qs(built.query) == {name: [value] for name, value in query.items()}
    assert built.fragment == ""


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_segments_that_would_vanish_are_refused(segment: str) -> None:
    with pytest.raises(ValueError):
        url(BASE, "a", segment, "b")


def test_a_query_keeps_its_names() -> None:
    assert url(BASE, "a b", **{"api-version": "1", "$filter": "x eq 'y/&'"}) == (
        "https://arm.test/prefix/a%20b?api-version=1&%24filter=x%20eq%20%27y%2F%26%27"
    )


@pytest.mark.parametrize(
    "link",
    ["https://arm.test/x?y", "https://ARM.test:443/x", "https://arm.test", "HTTPS://arm.test/"],
)
def test_links_to_the_same_origin_are_followed(link: str) -> None:
    assert same_origin("https://arm.test", link)


@pytest.mark.parametrize(
    "link",
    [
        "",
        "/relative",
        "//arm.test/x",
        "http://arm.test/x",
        "https://arm.test:8443/x",
        "https://arm.test.evil/x",
        "https://evil/https://arm.test",
        "https://arm.test@evil/x",
        "https://user@arm.test/x",
        "https://arm.test\\@evil/x",
        "https://evil\\.arm.test/x",
        "https://arm.test/x\r\nhost: evil",
        "https://arm.test /x",
        "https://arm.test:port/x",
        "https://[arm.test/x",
        "https:///x",
        "file://arm.test/x",
        "https://arm.test/" + "x" * 8192,
    ],
)
def test_links_elsewhere_are_not(link: str) -> None:
    assert not same_origin("https://arm.test", link)


def test_no_origin_equals_no_origin() -> None:
    assert not same_origin("nonsense", "nonsense")


@given(st.text(max_size=60))
def test_no_text_after_the_scheme_leads_elsewhere(text: str) -> None:
    link = f"https://{text}"
    if same_origin("https://arm.test", link):
        assert urlsplit(link).hostname == "arm.test"
