"""The fake server on a durable store whose disk takes 5 ms, and hangs as long as a file is there.

`python -m tests.servers.slow_disk FOLDER RUNTIME [SETTING=VALUE …]`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from cloudid_servers.stores.group_commit import GroupCommit
from cloudid_servers.stores.sqlite import SqliteStore

from .fake_server import main

FSYNC_SECONDS: Final = 0.005
HANGS: Final = "hangs"
"""The name of the file in the folder."""


class SlowDisk(SqliteStore):
    """Every COMMIT waits for the disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "store.sqlite")
        self._hangs = folder / HANGS

    def _finish(self) -> None:
        time.sleep(FSYNC_SECONDS)
        while self._hangs.exists():
            time.sleep(FSYNC_SECONDS)
        super()._finish()


if __name__ == "__main__":
    main(*sys.argv[2:], store=GroupCommit(SlowDisk(Path(sys.argv[1]))))
