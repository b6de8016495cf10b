"""A service as a folder of files: what a file says, how the service differs from it, and what makes it so."""

from .apply import Plan, carry_out, plan
from .change import Change
from .export import Exported, export, write_files
from .files import Declared, FolderRefused, read_folder

__all__ = [
    "Change",
    "Declared",
    "Exported",
    "FolderRefused",
    "Plan",
    "carry_out",
    "export",
    "plan",
    "read_folder",
    "write_files",
]
