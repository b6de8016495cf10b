"""The benchmarks run, and tell what they promise to tell."""

from __future__ import annotations

import json

import pytest

from benchmarks import login_verification

KEYS = ["raw_rsa_us", "pyjwt_us", "verify_cold_us", "verify_warm_us", "login_us", "request_us"]


def test_login_verification_tells_its_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["login_verification", "--json", "--tokens", "16", "--rounds", "1"])
    login_verification.main()
    figures = json.loads(capsys.readouterr().out)
    assert list(figures) == KEYS
    assert all(figure > 0 for figure in figures.values())


def test_a_table_has_a_line_for_each_contender(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["login_verification", "--tokens", "16", "--rounds", "1"])
    login_verification.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:]] == [key.removesuffix("_us") for key in KEYS]
