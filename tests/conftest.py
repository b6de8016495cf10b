"""What every test runs under."""

from __future__ import annotations

from hypothesis import settings

# The same examples on every machine and every run, and no opinion about how fast a busy machine is.
settings.register_profile("cloudid", database=None, deadline=None, derandomize=True, max_examples=50)
settings.load_profile("cloudid")
