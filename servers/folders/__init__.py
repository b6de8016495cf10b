"""A service as a folder of files: what a file says, how the service differs from it, and what makes it so."""

from .change import Change, changes, remember, remembered, remove
from .export import Exported, export, write_files
from .files import Declared, FolderRefused, below, no_longer_in, read_folder

__all__ = [
    "Change",
    "Declared",
    "Exported",
    "FolderRefused",
    "below",
    "changes",
    "export",
    "no_longer_in",
    "read_folder",
    "remember",
    "remembered",
    "remove",
    "write_files",
]
