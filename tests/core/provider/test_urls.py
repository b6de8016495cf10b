"""URLs of the provider."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cloudid_core.provider.urls import resolve, same_origin, url

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


@pytest.mark.parametrize(
    "link, target",
    [
        ("https://arm.test/y?$filter=a eq 'b'", "https://arm.test/y?$filter=a%20eq%20'b'"),
        ("https://arm.test:443/y?a=%20b", "https://arm.test:443/y?a=%20b"),
        ("/y?z", "https://arm.test/y?z"),
        ("?$skiptoken=2", "https://arm.test/a/x?$skiptoken=2"),
        ("y", "https://arm.test/a/y"),
        ("//evil.test/y", "https://evil.test/y"),
        ("", ""),
        ("https://[arm.test/y", ""),
        ("https://arm.test/y\n", ""),
        ("https://arm.test/ü", ""),
    ],
)
def test_links_are_resolved_and_their_blanks_encoded(link: str, target: str) -> None:
    assert resolve("https://arm.test/a/x?api-version=1", link) == target


SCHEMES = ["https://", "http://", "HTTPS://", "//", "https:", "/", ""]
HOSTS = ["arm.test", "arm.test:443", "arm.test:8443", "arm.test.evil", "evil", "user@arm.test", "arm.test@evil", "["]
TAILS = ["", "/", "?", "#", "\\", "@evil", ".evil", "%", "/..", "//evil", " ", "\n", "\t", ":443", "]"]
LINKS = st.builds(
    "{}{}{}".format, *map(st.sampled_from, (SCHEMES, HOSTS)), st.lists(st.sampled_from(TAILS)).map("".join)
)


@given(LINKS)
def test_no_link_of_the_same_origin_leads_elsewhere(link: str) -> None:
    """What a link is made of is chosen so that about a third of all links are followed."""
    target = resolve("https://arm.test/x", link)
    followed = same_origin("https://arm.test", target)
    event("followed" if followed else "not followed")
    if followed:
        parts = urlsplit(target)
        assert (parts.scheme, parts.hostname, parts.port) in (("https", "arm.test", None), ("https", "arm.test", 443))
        assert parts.username is None
        assert all("!" <= letter <= "~" for letter in target)
        assert "\\" not in target


def test_the_links_of_that_property_are_followed_often_enough() -> None:
    links = [scheme + host + tail for scheme in SCHEMES for host in HOSTS for tail in TAILS]
    followed = [link for link in links if same_origin("https://arm.test", resolve("https://arm.test/x", link))]
    assert len(links) // 10 < len(followed) < len(links)
