"""A service as a folder of files: what a file says, how the service differs from it, and what makes it so."""

from .apply import Source, carry_out, plan
from .export import export, write_files
from .files import read_folder
from .secrets import OperatorsSecrets, ServersSecrets
