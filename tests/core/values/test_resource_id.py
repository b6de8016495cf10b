"""Resource ids and the names in them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from unicodedata import category
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudid_core.values.resource_id import (
    SCALE_SET,
    USER_ASSIGNED_IDENTITY,
    VIRTUAL_MACHINE,
    ResourceId,
    folded,
    folded_name,
    parse,
    resource_group,
    vm_name,
)

SUBSCRIPTION = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg"
VM = f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm"


def test_the_parts_are_kept_as_given() -> None:
    found = parse(VM.replace("/rg/", "/My-Group/"))
    assert found == ResourceId(SUBSCRIPTION, "My-Group", "Microsoft.Compute", ("virtualMachines",), ("vm",))
    assert found.resource_group == "My-Group"
    assert (found.type, found.name) == (VIRTUAL_MACHINE, "vm")


def test_a_child_resource_has_several_types_and_names() -> None:
    found = parse(f"{GROUP}/providers/{SCALE_SET}/set/virtualMachines/0")
    assert found.types == ("virtualMachineScaleSets", "virtualMachines")
    assert found.names == ("set", "0")
    assert (found.type, found.name) == (f"{SCALE_SET}/virtualMachines", "0")
    assert not found.is_a(SCALE_SET)


def test_the_type_is_compared_as_a_whole_without_regard_to_case() -> None:
    found = parse(VM.upper())
    assert found.is_a(VIRTUAL_MACHINE)
    assert not found.is_a(SCALE_SET)
    assert not found.is_a(USER_ASSIGNED_IDENTITY)
    assert not found.is_a(VIRTUAL_MACHINE[:-1])


def test_case_does_not_matter_to_equality() -> None:
    spellings = [parse(VM), parse(VM.upper()), parse(VM.replace("resourceGroups", "resourcegroups"))]
    assert len(set(spellings)) == len({spelling.folded for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "other",
    [
        VM + "2",
        VM.replace("/rg/", "/rg2/"),
        VM.replace("0a1b", "0a1c"),
        VM.replace("virtualMachines", "virtualMachineScaleSets"),
        VM.replace("Compute", "Network"),
        VM + "/extensions/x",
    ],
)
def test_every_part_matters_to_equality(other: str) -> None:
    assert parse(other) != parse(VM)


def test_letters_that_only_resemble_each_other_are_different() -> None:
    assert parse(VM.replace("/rg/", "/straße/")) != parse(VM.replace("/rg/", "/strasse/"))
    assert parse(VM.replace("/rg/", "/\N{KELVIN SIGN}/")) != parse(VM.replace("/rg/", "/k/"))
    assert parse(VM.replace("/rg/", "/Ä/")) == parse(VM.replace("/rg/", "/ä/"))


def test_the_path_is_encoded_segment_by_segment() -> None:
    found = parse(f"{GROUP}(ä)/providers/Microsoft.Web/sites/a b&c:d+e")
    assert found.path == f"{GROUP}%28%C3%A4%29/providers/Microsoft.Web/sites/a%20b%26c%3Ad%2Be"


def test_the_path_has_canonical_keywords() -> None:
    assert parse(VM.replace("resourceGroups", "RESOURCEGROUPS")).path == VM


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        VM[1:],
        "/" + VM,
        VM + "/",
        VM + "/extensions",
        VM + "/extensions/",
        VM.replace("/rg/", "//"),
        VM.replace("/providers/", "/provider/"),
        VM.replace("/providers/", "/"),
        VM.replace("/subscriptions/", "/subscription\N{LATIN SMALL LETTER LONG S}/"),
        VM.replace("resourceGroups", "resourceGroup"),
        VM.replace(SUBSCRIPTION, "sub"),
        VM.replace(SUBSCRIPTION, SUBSCRIPTION + "\n"),
        VM.replace("/rg/", "/../"),
        VM.replace("/rg/", "/rg./"),
        VM.replace("/rg/", "/r%67/"),
        VM.replace("Microsoft.Compute", ".."),
        VM.replace("Microsoft.Compute", "Microsoft Compute"),
        VM.replace("virtualMachines", ".."),
        VM.replace("virtualMachines", "virtual machines"),
        GROUP,
        f"{GROUP}/providers/Microsoft.Compute",
        f"{GROUP}/providers/Microsoft.Compute/virtualMachines",
        f"{VM}/providers/Microsoft.Insights/diagnosticSettings/x",
        f"{VM}/PROVIDERS/x",
        f"/providers/Microsoft.Compute/virtualMachines/vm{VM}",
        VM + "/extensions/x" * 16,
        VM + "x" * 260,
        VM + "/extensions/" + "x" * 2048,
        None,
        5,
        [VM],
    ],
)
def test_what_is_no_resource_id(text: object) -> None:
    with pytest.raises(ValueError, match=r"^must be a resource id"):
        parse(text)


@pytest.mark.parametrize(
    "name",
    [".", "..", "", " ", "a ", "a?b", "a#b", "a%b", "a\\b", "a\nb", "a\0b", "a\x7fb", "a\u200bb", "a\u00a0b", "\ud800"],
)
def test_what_is_no_name_of_a_resource(name: str) -> None:
    with pytest.raises(ValueError, match=r"^must be a resource id"):
        parse(f"{GROUP}/providers/{VIRTUAL_MACHINE}/{name}")


def test_limits_are_inclusive() -> None:
    assert parse(f"{GROUP}/providers/{VIRTUAL_MACHINE}/{'x' * 260}").name == "x" * 260
    assert len(parse(VM + "/extensions/x" * 15).types) == 16


GROUPS = st.from_regex(r"[A-Za-z0-9äßД٣_.()-]{0,89}[A-Za-z0-9äßД٣_()-]", fullmatch=True)
TYPES = st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,20}", fullmatch=True).filter(lambda text: text.lower() != "providers")
NAMES = st.text(alphabet="abcXYZ019-._~!$&'()*+,;=:@ é", min_size=1, max_size=30).filter(
    lambda name: name.strip() == name and name not in (".", "..")
)
IDS = st.builds(
    lambda uuid, group, namespace, pairs: ResourceId(
        str(uuid), group, namespace, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    ),
    st.uuids(),
    GROUPS,
    st.from_regex(r"[a-zA-Z]{1,10}\.[a-zA-Z]{1,10}", fullmatch=True),
    st.lists(st.tuples(TYPES, NAMES), min_size=1, max_size=4),
)


@given(IDS)
def test_a_path_reads_back_the_same(resource: ResourceId) -> None:
    """Decoded by a server, the path names exactly the parts that it was made of."""
    found = parse(unquote(resource.path))
    assert found == resource
    assert hash(found) == hash(resource)
    assert (found.resource_group, found.types, found.names) == (resource.resource_group, resource.types, resource.names)


PARTS = st.lists(st.sampled_from("aAb"), min_size=4, max_size=6).filter(lambda parts: len(parts) % 2 == 0)


@given(PARTS, PARTS)
def test_equal_means_equal_in_every_part(left: list[str], right: list[str]) -> None:
    """No two ids meet whose parts, in order, differ in more than case."""

    def resource(group: str, namespace: str, *pairs: str) -> ResourceId:
        return ResourceId(SUBSCRIPTION, group, namespace, pairs[::2], pairs[1::2])

    same = [part.lower() for part in left] == [part.lower() for part in right]
    assert (resource(*left) == resource(*right)) is same
    assert resource(*left) == resource(*map(str.swapcase, left))


@given(st.text(alphabet="/.%?#\\ a\n", max_size=12))
def test_no_tail_smuggles_a_segment(tail: str) -> None:
    """Whatever is appended is refused, or stays within the names."""
    try:
        found = parse(VM + tail)
    except ValueError:
        return
    assert "/".join(("", *found.path.split("/")[1:7])) == VM.rsplit("/", 2)[0]
    assert not {"", ".", ".."}.intersection(found.path.split("/")[1:])


@pytest.mark.parametrize("raw", ["rg", "a", "-_.()", "Ä-группа", "٣", "Ⅷ", "a.b", "x" * 90])
def test_resource_group(raw: str) -> None:
    assert resource_group(raw) == raw


@pytest.mark.parametrize("raw", ["", ".", "..", "rg.", "a b", "a/b", "a%b", "a\n", "e\u0301", "x" * 91, None, 5, []])
def test_what_is_no_resource_group(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be the name of a resource group$"):
        resource_group(raw)


@pytest.mark.parametrize("raw", ["vm", "a", "1", "15abc", "set_0", "a.b-c_", "x" * 128])
def test_vm_name(raw: str) -> None:
    assert vm_name(raw) == raw


@pytest.mark.parametrize(
    "raw", ["", "_a", "-a", ".a", "a-", "a.", "..", "a/b", "a b", "é", "a\n", "x" * 129, None, 5, []]
)
def test_what_is_no_vm_name(raw: object) -> None:
    with pytest.raises(ValueError, match=r"^must be the name of a virtual machine or scale set$"):
        vm_name(raw)


@given(IDS)
def test_an_id_can_be_folded_without_taking_it_apart(found: ResourceId) -> None:
    assert folded(unquote(found.path)) == found.folded == parse(unquote(found.path)).folded


NAMES = st.text(alphabet="aK\u212aß.%?#\\ \n", max_size=8) | st.sampled_from(["x" * 260, "x" * 261, "..", "web"])
LONG = "".join(f"/t/{'n' * 260}" for _ in range(7))
HEADS = st.sampled_from(
    ["", "/", "providers", VM.rpartition("/")[0], VM, f"{VM}/extensions", f"{VM}/extensions/a/b", f"{VM}{LONG}/t"]
)


@given(HEADS, NAMES)
def test_an_id_whose_head_is_known_needs_a_look_at_its_name_alone(head: str, name: str) -> None:
    """The head is one when any good name makes it an id; head and name are then what would be folded, or refused."""

    def whole() -> str:
        return folded(f"{head}/{name}")

    def by_parts() -> str:
        folded_head = folded(f"{head}/x").removesuffix("x")
        return folded_head + folded_name(name, folded_head)

    assert outcome(by_parts) == outcome(whole)


def outcome(attempt: Callable[[], str]) -> str:
    try:
        return attempt()
    except ValueError as refusal:
        return str(refusal)


def test_what_is_no_resource_id_is_not_folded() -> None:
    with pytest.raises(ValueError, match=r"^must be a resource id"):
        folded(VM + "/")


def test_a_resource_group_has_letters_and_digits_as_unicode_knows_them() -> None:
    """The grammar says it by categories, the code by a class of regular expressions: they are the same."""
    letters = "".join(map(chr, range(sys.maxunicode + 1)))
    by_category = {letter for letter in letters if category(letter)[0] in "LN" or letter == "_"}
    assert set(re.findall(r"\w", letters)) == by_category
