"""What every benchmark prints beside its figures: progress while it runs, and where the figures come from."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

from cryptography.hazmat.backends.openssl import backend

PACKAGES: Final = (
    "aiohttp",
    "cryptography",
    "fastapi",
    "h11",
    "httptools",
    "httpx",
    "hypercorn",
    "msgspec",
    "pyjwt",
    "sqlalchemy",
    "trio",
    "uvicorn",
    "uvloop",
)
"""Their versions are part of the environment, where they are installed."""


def environment() -> dict[str, Any]:
    """Return the machine and the versions that figures depend on."""
    return {
        "cpu": _cpu_model(),
        "cores": len(available_cpus()),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "openssl": backend.openssl_version_text(),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
    }


def available_cpus() -> list[int]:
    """Return the CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def fsync_us(folder: Path, count: int = 50) -> float:
    """Return the median time of an fsync of a few appended bytes in this folder, in microseconds."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(count):
            file.write(b"x" * 512)
            file.flush()
            start = perf_counter()
            os.fsync(file.fileno())
            taken.append(perf_counter() - start)
    return round(median(taken) * 1e6, 1)


def environment_text(facts: Mapping[str, Any]) -> str:
    """Return the environment in two lines for people."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
    fsync = f", fsync {facts['fsync_us']:.0f} us" if "fsync_us" in facts else ""
    first = f"{facts['cpu']}, {facts['cores']} cores{fsync}; {facts['kernel']}; {facts['python']}; {facts['openssl']}"
    return f"{first}; SQLite {facts['sqlite']}\n{versions}"


def tell(progress: str) -> None:
    """Write progress to stderr: on one line of a terminal, otherwise as lines."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{progress}")
    elif progress:
        sys.stderr.write(f"{progress}\n")
    sys.stderr.flush()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
