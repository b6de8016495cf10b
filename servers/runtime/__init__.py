"""What trio and asyncio share: the words of an event loop, periodic work, deliveries, Ctrl-C, and rare log lines."""

from . import runtime
from .deliveries import Deliveries
from .interrupts import INTERRUPTED, until_interrupted
from .periodic import Periodic
from .runtime import Event, Runtime
from .seldom import Seldom
