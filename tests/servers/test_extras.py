"""Extras: each optional package is named with an extra that has it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Final

import pytest

from cloudid_servers.extras import EXTRAS, POSIX_ONLY, remedy, required

from .running import ROOT

OPTIONAL: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def packages(extra: str) -> set[str]:
    """The packages of an extra, with those of the extras that it names, as they are imported."""
    found: set[str] = set()
    for requirement in OPTIONAL[extra]:
        name, _, others = re.fullmatch(r"([a-z0-9-]+)(\[([a-z,-]+)\])?.*", requirement).group(1, 2, 3)  # type: ignore[union-attr]
        found |= {name.replace("-", "_")} if name != "cloudid" else set().union(*map(packages, others.split(",")))
    return found


@pytest.mark.parametrize("package", EXTRAS)
def test_the_named_extra_has_the_package(package: str) -> None:
    assert package in packages(EXTRAS[package])


def test_every_package_of_the_programs_is_known() -> None:
    assert set().union(*map(packages, ("server", "postgres"))) == set(EXTRAS)


def test_only_a_missing_optional_package_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert remedy(ModuleNotFoundError("no", name="json")) is None
    assert remedy(ImportError("cannot import name", name="trio")) is None
    with pytest.raises(SystemExit) as ended, required():
        raise ModuleNotFoundError("no", name="psycopg.pq")
    assert ended.value.code == "error: the package psycopg is missing: pip install 'cloudid[postgres]'"
    with pytest.raises(ImportError), required():
        raise ImportError("other")


@pytest.mark.parametrize("application", ["asgi", "wsgi", "aiohttp_server.application"])
@pytest.mark.parametrize("package", ["aiohttp", "click", "structlog"])
def test_a_ready_application_names_the_extra_that_it_lacks(application: str, package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import cloudid_servers.{application}"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    needs = application != "asgi" or package != "aiohttp"
    named = f"the package {package} is missing: pip install 'cloudid[{EXTRAS[package]}]'" in ran.stderr
    assert (bool(ran.returncode), named) == (needs, needs), ran.stderr


@pytest.mark.parametrize("program", ["cli", "trio_server", "aiohttp_server"])
@pytest.mark.parametrize("module", sorted(POSIX_ONLY))
def test_a_program_says_what_it_needs_where_a_module_of_the_platform_is_missing(program: str, module: str) -> None:
    """As on Windows."""
    code = f"import runpy, sys; sys.modules[{module!r}] = None; sys.argv[1:] = ['serve', '--help']\n"
    code += f"runpy.run_module('cloudid_servers.{program}', run_name='__main__')"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 0 or "Windows Subsystem for Linux" in ran.stderr


def test_every_module_that_windows_lacks_is_known() -> None:
    lacking = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
    modules = [*ROOT.glob("servers/**/*.py"), *ROOT.glob("cloudid_core/**/*.py")]
    imported = {name for path in modules for name in re.findall(r"^\s*(?:import|from) (\w+)", path.read_text(), re.M)}
    assert imported & lacking == POSIX_ONLY


def test_the_core_needs_no_module_that_windows_lacks() -> None:
    code = "import sys; sys.modules |= dict.fromkeys(('fcntl', 'grp', 'pty', 'pwd', 'resource', 'termios'))\n"
    code += "import pkgutil, importlib, cloudid_core\n"
    code += (
        "[importlib.import_module(each.name) for each in pkgutil.walk_packages(cloudid_core.__path__, 'cloudid_core.')]"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
