"""The secrets engine: service principals on request, under a lease."""

from . import config, routes
from .audiences import close_audience, count_open_audiences, find_open_audiences
from .clamped import clamped_roles
from .stopped import kept_applications, newly_denied
