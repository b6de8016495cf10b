"""What the servers measure themselves, and how metrics are shown: as one machine's, whatever its processes."""

from .measures import Measures
from .slots import WRITE_PAUSE, Slots, WorkerSlot
