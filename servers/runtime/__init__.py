"""What trio and asyncio share: the few words of an event loop, periodic work, Ctrl-C, and log lines once a minute."""

from . import runtime
from .interrupts import INTERRUPTED, until_interrupted
from .periodic import Periodic
from .runtime import Event, Runtime
from .seldom import Seldom
