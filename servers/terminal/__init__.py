"""What all commands share towards a person or a script: output, exit codes, and errors of one line."""

from .exits import EXITS, Exit
from .output import Format, Output, printable, table, with_output
from .program import Failed, run

__all__ = ["EXITS", "Exit", "Failed", "Format", "Output", "printable", "run", "table", "with_output"]
