"""Runs commands of `cloudid` in this process, towards a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import frozen

from cloudid_servers.cli.main import PROGRAM, commands
from cloudid_servers.terminal import run


@frozen
class Shown:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs commands in this process."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.set(VAULT_ADDR=url)

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def __call__(self, *words: str) -> Shown:
        self._capsys.readouterr()
        code = run(commands, PROGRAM, words)
        shown = self._capsys.readouterr()
        return Shown(code, shown.out, shown.err)
