"""What all commands share towards a person or a script: output, exit codes, and errors of one line."""

from .output import COLUMNS_BEHIND, Format, Output, printable, show_progress, table, with_output
from .program import Exit, Failed, NoCommand, NotExecutable, Unusable, run, system_reason, with_reasons, without_slashes
from .waiting import waiting
