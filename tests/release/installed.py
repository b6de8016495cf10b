"""An installation as the image has it, in a folder of its own, and commands in it that may do as little as there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.waiting import PATIENCE

from .building import ROOT, run

USER: Final = "65532"
STEPS: Final = re.findall("^RUN (.*)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
OWNED: Final = ("--owner=", "--group=")
"""Only root may give a folder away."""
READ_ONLY: Final = 'mount --bind "$DATA" "$DATA" && mount -o remount,bind,ro / && exec "$@"'
"""Only one folder can be written from here on."""

AS_NOBODY: Final = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs")
ON_A_READ_ONLY_ROOT: Final = ("unshare", "--mount", "sh", "-c", READ_ONLY, "sh")


@frozen
class Image:
    """The file system that the script of the image made below a folder."""

    root: Path
    confinement: tuple[str, ...]
    """What goes before a command so that it may do as little as in a container; empty where tests may not say so."""

    @property
    def data(self) -> Path:
        """What the volume holds."""
        return self.root / "var" / "lib" / "cloudid"

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "DATA": str(self.data)}

    def command(self, *words: str) -> list[str]:
        """A command of the Containerfile, with the paths that it has here."""
        return [*self.confinement, *(re_rooted(word, self.root) for word in words)]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            cwd=self.data,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def write(self, name: str, content: str) -> None:
        """A file of the volume, for its user only."""
        path = self.data / name
        path.write_text(content)
        path.chmod(0o600)
        if os.getuid() == 0:
            os.chown(path, int(USER), int(USER))


def re_rooted(word: str, root: Path) -> str:
    return f"{root}{word}" if word.startswith(("/opt/cloudid", "/var/lib/cloudid")) else word


@contextmanager
def image(dist: Path, source: Path = ROOT) -> Iterator[Image]:
    """An image whose steps ran in an empty folder that all users may enter. `dist`: where a wheel may lie."""
    root = Path(tempfile.mkdtemp())
    try:
        root.chmod(0o755)
        for step in STEPS:
            program, *arguments = (re_rooted(word, root) for word in step.split())
            if program.startswith("/source/"):
                command = [str(source / program.removeprefix("/source/")), str(root)]
            else:
                command = [program, *(each for each in arguments if os.getuid() == 0 or not each.startswith(OWNED))]
            run(root, *command, environment={"DIST": str(dist), "PATH": python_for_all()})
        program = f"{root}/opt/cloudid/bin/python"
        data = {"DATA": f"{root}/var/lib/cloudid"}
        both = (*ON_A_READ_ONLY_ROOT, *AS_NOBODY)
        for confinement in (both, AS_NOBODY, ON_A_READ_ONLY_ROOT):
            if works([*confinement, program, "-c", "pass"], data):
                yield Image(root, confinement)
                return
        yield Image(root, ())
    finally:
        shutil.rmtree(root)


def python_for_all() -> str:
    """A search path, whose Python others can use too if there is one."""
    usual = "/usr/bin:/bin"
    test = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
    return usual if works(["python3", "-c", test], {"PATH": usual}) else os.environ["PATH"]


def works(command: list[str], environment: Mapping[str, str]) -> bool:
    try:
        return not subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, timeout=PATIENCE, check=False
        ).returncode
    except OSError:
        return False
