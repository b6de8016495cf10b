"""A service as a folder of files: what a file says, how the service differs from it, and what makes it so."""

from .change import Change, changes
from .files import Declared, FolderRefused, read_folder

__all__ = ["Change", "Declared", "FolderRefused", "changes", "read_folder"]
