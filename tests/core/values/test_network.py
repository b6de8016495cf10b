"""IP networks."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values import network


@pytest.mark.parametrize(
    "raw, expected",
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("192.0.2.1", "192.0.2.1/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0::1", "2001:db8::1/128"),
        ("2001:db8::1/32", "2001:db8::/32"),
        ("::/0", "::/0"),
        ("::ffff:192.0.2.1", "192.0.2.1/32"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:10.0.0.0/90", "::ffc0:0:0/90"),
    ],
)
def test_network_is_canonical(raw: str, expected: str) -> None:
    assert network.network(raw) == expected
    assert network.network(expected) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/+8",
        "10.0.0.0/8/8",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/٨",
        "10.0.0",
        "010.0.0.1",
        " 10.0.0.1",
        "10.0.0.1\n",
        "10.0.0.1:80",
        "[::1]",
        "::/129",
        "fe80::1%eth0",
        "example.test",
        "1" * 10_000,
        167_772_160,
        None,
        [],
    ],
)
def test_what_is_no_network(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be IP addresses or networks in CIDR notation$"):
        network.network(raw)


def test_networks_come_from_a_list_or_a_text() -> None:
    expected = ("10.0.0.0/8", "::1/128")
    assert network.networks("10.0.0.0/8, ::1") == network.networks(["10.0.0.0/8", "::1"]) == expected
    assert network.networks(None) == network.networks("") == ()


def test_one_bad_network_spoils_the_list() -> None:
    with pytest.raises(ValueError):
        network.networks("10.0.0.0/8,nonsense")


@pytest.mark.parametrize("address", ["192.0.2.1", "nonsense", "", None])
def test_no_networks_restrict_nothing(address: str | None) -> None:
    assert network.contains((), address)


@pytest.mark.parametrize(
    "address, expected",
    [
        ("10.255.0.1", True),
        ("::ffff:10.255.0.1", True),
        ("2001:db8::5", True),
        ("11.0.0.1", False),
        ("::ffff:11.0.0.1", False),
        ("2001:db9::5", False),
        ("::10.0.0.1", False),
        ("2001:db8::5%eth0", False),
        ("10.0.0.1:443", False),
        ("10.0.0.1/32", False),
        ("nonsense", False),
        ("", False),
        (None, False),
    ],
)
def test_contains(address: str | None, expected: bool) -> None:
    assert network.contains(("10.0.0.0/8", "2001:db8::/32"), address) is expected


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 32))
def test_ipv4_and_its_mapped_form_agree_with_the_oracle(base: IPv4Address, address: IPv4Address, length: int) -> None:
    expected = address in IPv4Network((base, length), strict=False)
    plain, mapped = network.network(f"{base}/{length}"), network.network(f"::ffff:{base}/{length + 96}")
    assert plain == mapped
    assert network.contains((plain,), str(address)) is expected
    assert network.contains((plain,), f"::ffff:{address}") is expected
    assert network.contains((plain,), str(base))


@given(st.ip_addresses(v=6), st.integers(0, 128))
def test_ipv6_agrees_with_the_oracle(address: IPv6Address, length: int) -> None:
    written = network.network(f"{address}/{length}")
    if address.ipv4_mapped is None:
        assert written == str(IPv6Network((address, length), strict=False))
        assert network.contains((written,), str(address))
    assert network.network(written) == written


@pytest.mark.parametrize(
    "address, counted",
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("", ""),
        ("nowhere", ""),
    ],
)
def test_a_source_is_an_address_or_the_subnet_of_an_ipv6_address(address: str, counted: str) -> None:
    assert network.source(address) == counted


def test_a_list_of_networks_is_bounded() -> None:
    assert len(network.networks("192.0.2.1," * (network.MOST - 1) + "192.0.2.1")) == network.MOST
    with pytest.raises(ValueError, match="must be at most 1000 IP addresses or networks"):
        network.networks(["192.0.2.1"] * (network.MOST + 1))


@pytest.mark.parametrize(
    "first, second, shared",
    [
        ((), (), ()),
        (("10.0.0.0/8",), (), ("10.0.0.0/8",)),
        ((), ("10.0.0.0/8",), ("10.0.0.0/8",)),
        (("127.0.0.1/32",), ("0.0.0.0/0",), ("127.0.0.1/32",)),
        (("10.0.0.0/8", "2001:db8::/32"), ("10.1.0.0/16", "::/0"), ("10.1.0.0/16", "2001:db8::/32")),
        (("10.0.0.0/8", "10.1.0.0/16"), ("10.1.2.0/24", "192.0.2.0/24"), ("10.1.2.0/24",)),
    ],
)
def test_an_intersection_is_what_both_lists_contain(
    first: tuple[str, ...], second: tuple[str, ...], shared: tuple[str, ...]
) -> None:
    assert network.intersection(first, second) == shared


def test_lists_without_a_common_address_have_no_intersection() -> None:
    """An empty list would be no restriction."""
    for second in ("192.0.2.0/24", "::/0"):
        with pytest.raises(ValueError, match="no address in common"):
            network.intersection(("10.0.0.0/8",), (second,))


SMALL = st.lists(
    st.builds(
        lambda base, length: str(IPv4Network((base, length), strict=False)),
        st.integers(0, 15).map(lambda low: 0x0A000000 + low * 16),
        st.integers(24, 32),
    ),
    min_size=1,
    max_size=4,
).map(tuple)


@given(SMALL, SMALL, st.integers(0, 255))
def test_an_address_is_in_the_intersection_exactly_when_both_lists_contain_it(
    first: tuple[str, ...], second: tuple[str, ...], low: int
) -> None:
    address = f"10.0.0.{low}"
    in_both = network.contains(first, address) and network.contains(second, address)
    try:
        assert network.contains(network.intersection(first, second), address) is in_both
    except ValueError:
        assert not in_both


def test_an_intersection_takes_one_pass_and_is_bounded() -> None:
    many = tuple(f"10.{high}.{low}.0/24" for high in range(8) for low in range(0, 250, 2))
    assert len(network.intersection(many, ("0.0.0.0/0",))) == len(many) == network.MOST
    more = (*many, "192.0.2.1/32")
    with pytest.raises(ValueError, match="more than 1000 networks"):
        network.intersection(more, ("0.0.0.0/0",))
