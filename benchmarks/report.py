"""What every benchmark prints beside its figures, as `cloudid bench` does."""

from __future__ import annotations

from cloudid_servers.bench import available_cpus, environment, environment_text, fsync_us, tell

__all__ = ["available_cpus", "environment", "environment_text", "fsync_us", "tell"]
