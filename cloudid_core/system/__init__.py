"""The routes below `sys`: the state of the service, policies, mounts, leases."""

from . import routes, stored_rules
from .audit import declare_devices, try_devices_again
from .metrics import metrics_answer, node_numbers
from .provider_health import provider_problems
from .recent_logins import note_login, note_unaccepted
from .stored_rules import TROUBLES
