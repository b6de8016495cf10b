"""Published weaknesses of our dependencies, and the version that fixed each: `make advisories`.

The table cannot go stale unnoticed: the lower bounds of `pyproject.toml`, the pins of `constraints.txt` and what is
installed are compared with it. It makes no request; add a row when an advisory is published.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Final

from attrs import frozen
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).parent.parent.parent
LOWER_BOUNDS: Final = {">=", ">", "~=", "=="}


@frozen
class Advisory:
    """A weakness of `package` that `fixed_in` no longer has, and what it would mean here."""

    package: str
    ids: tuple[str, ...]
    fixed_in: str
    here: str


ADVISORIES: Final = (
    Advisory(
        "aiohttp",
        ("CVE-2025-69223", "CVE-2025-69224", "CVE-2025-69225", "CVE-2025-69226", "CVE-2025-69227", "CVE-2025-69228"),
        "3.13.3",
        "Its request reader is not used by the server; an embedding application uses it",
    ),
    Advisory(
        "aiohttp",
        (
            *("CVE-2026-34513", "CVE-2026-34514", "CVE-2026-34515", "CVE-2026-34516", "CVE-2026-34517"),
            *("CVE-2026-34518", "CVE-2026-34519", "CVE-2026-34520", "CVE-2026-34525", "CVE-2026-22815"),
        ),
        "3.13.4",
        "Its request reader is not used by the server; its client calls Azure without cookies and redirects",
    ),
    Advisory(
        "aiohttp",
        ("CVE-2026-34993", "CVE-2026-47265"),
        "3.14.0",
        "Cookies sent to another origin: the server's client keeps no cookies and follows no redirect",
    ),
    Advisory(
        "aiohttp",
        (
            *("CVE-2026-54273", "CVE-2026-54274", "CVE-2026-54275", "CVE-2026-54276"),
            *("CVE-2026-54277", "CVE-2026-54278", "CVE-2026-54279", "CVE-2026-54280"),
        ),
        "3.14.1",
        "Pipelined requests without a limit: the server reads requests itself, an embedding application does not",
    ),
    Advisory(
        "aiohttp",
        ("CVE-2026-69244",),
        "3.14.3",
        "A malformed response exhausts the client: only Azure and its proxies answer the server's client",
    ),
    Advisory(
        "aiohttp",
        ("PYSEC-2026-4369", "PYSEC-2026-4371"),
        "3.14.4",
        "In the request reader, which the server does not use; an embedding application uses it",
    ),
    Advisory("certifi", ("CVE-2024-39689",), "2024.7.4", "A distrusted certificate authority for calls to Azure"),
    Advisory(
        "cryptography",
        ("CVE-2026-26007",),
        "46.0.5",
        "Binary elliptic curves: only RSA keys are imported",
    ),
    Advisory("cryptography", ("CVE-2026-34073",), "46.0.6", "Name constraints: OpenSSL verifies our peers"),
    Advisory("cryptography", ("CVE-2026-39892",), "46.0.7", "Buffers that are not contiguous: only bytes are passed"),
    Advisory("cryptography", ("CVE-2026-69247",), "50.0.0", "PKCS#7 decryption: not used"),
    Advisory(
        "h11",
        ("CVE-2025-43859",),
        "0.16.0",
        "Chunk ends that are not checked: request smuggling behind a proxy",
    ),
    Advisory("h2", ("CVE-2025-57804",), "4.3.0", "HTTP/2 of an embedding application's server, in benchmarks only"),
    Advisory("idna", ("CVE-2024-3651",), "3.7", "Quadratic encoding: host names come from settings"),
    Advisory("protobuf", ("CVE-2025-4565",), "6.31.1", "Deep nesting while parsing: spans are only written"),
    Advisory("pyjwt", ("CVE-2026-32597",), "2.12.0", "`crit` ignored: only keys are imported with it"),
    Advisory(
        "pyjwt",
        (
            *("CVE-2026-101917", "CVE-2026-101918", "CVE-2026-102266", "CVE-2026-102267", "CVE-2026-102268"),
            *("CVE-2026-102269", "CVE-2026-102270", "CVE-2026-102271", "CVE-2026-102272", "CVE-2026-102273"),
            *("CVE-2026-102274", "CVE-2026-102275"),
        ),
        "2.15.0",
        "Verification of tokens: only keys are imported with it",
    ),
    Advisory("requests", ("CVE-2024-47081",), "2.32.4", "Credentials of `.netrc`: the exporter of spans has its own"),
    Advisory("urllib3", ("CVE-2025-66418", "CVE-2025-66471"), "2.6.0", "Decompression: the exporter of spans uses it"),
    Advisory("urllib3", ("CVE-2026-21441",), "2.6.3", "Decompression of redirects: the exporter of spans uses it"),
)


def declared() -> list[Requirement]:
    """Return every requirement of `pyproject.toml`, those of extras and groups included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [project["project"]["optional-dependencies"], project["dependency-groups"]]
    texts = [*project["project"]["dependencies"], *chain(*(chain(*group.values()) for group in groups))]
    return [Requirement(text) for text in texts if isinstance(text, str)]


def pinned() -> dict[str, Version]:
    """Return the version that `constraints.txt` pins of each package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = (line.partition("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonicalize_name(name): Version(version.partition(";")[0].strip()) for name, _, version in pins}


def installed() -> dict[str, Version]:
    """Return the version of each installed package."""
    packages = ((each.metadata["Name"], each.version) for each in metadata.distributions())
    return {canonicalize_name(name): Version(version) for name, version in packages}


def admitted_by_bounds(requirements: list[Requirement], advisories: tuple[Advisory, ...]) -> Iterator[str]:
    """Name each requirement that an affected version satisfies."""
    for advisory in advisories:
        for requirement in requirements:
            if canonicalize_name(requirement.name) != advisory.package:
                continue
            lower = [
                Version(each.version) for each in requirement.specifier if each.operator in {">=", "==", "~=", ">"}
            ]
            if not lower or max(lower) < Version(advisory.fixed_in):
                yield f"{requirement} admits {', '.join(advisory.ids)}: ask for >={advisory.fixed_in}"


def affected(versions: dict[str, Version], advisories: tuple[Advisory, ...]) -> Iterator[str]:
    """Name each version that has a published weakness."""
    for advisory in advisories:
        version = versions.get(advisory.package)
        if version is not None and version < Version(advisory.fixed_in):
            yield f"{advisory.package} {version} has {', '.join(advisory.ids)}, fixed in {advisory.fixed_in}"


def main() -> int:
    versions = installed()
    problems = [*admitted_by_bounds(declared(), ADVISORIES), *affected(pinned(), ADVISORIES)]
    problems += affected(versions, ADVISORIES)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    ids = sum(len(advisory.ids) for advisory in ADVISORIES)
    sys.stdout.write(f"{len(versions)} installed packages, {ids} advisories, {len(problems)} problems\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
