"""What the machine offers: its disk, its memory, its standard streams, its identity."""

from . import platform_identity, programs, streams
from .disk import Disk, sync, why_unreadable
from .loopback import is_loopback
from .memory import settle
from .platform_identity import METADATA_ADDRESS, Platform
from .service_manager import Overseer, ServiceManager
from .streams import APPENDING, identity_of
