"""The secrets engine: service principals on request, under a lease."""

from . import config, routes
