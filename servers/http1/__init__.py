"""HTTP/1.1 for both servers: reads requests out of bytes, writes answers, limits connections (RFC 9110, RFC 9112)."""

from . import wire
from .bodies import Bodies
from .connections import OUT_OF_RESOURCES, Admission, Connections, affordable, look_pause, source_of, timeouts
from .heads import Head, Heads
from .reader import ANSWER, HANDSHAKE, IDLE, LINGER, SEND, Reader, Stage, no_room
