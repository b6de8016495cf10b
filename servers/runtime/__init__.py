"""What trio and asyncio share: the few words of an event loop, Ctrl-C, lines that come seldom."""

from . import runtime
from .interrupts import INTERRUPTED, until_interrupted
from .runtime import Event, Runtime
from .seldom import Seldom
