"""The directory's API: service principals, applications, groups and what they are granted, below `/graph`."""

from typing import Final

from ..engine.routing import Service
from . import changes, credentials, grants, memberships, objects
from .conventions import BODY_HEADERS, authenticate, dress, error, headers

GRAPH: Final = Service(
    name="graph",
    prefix="/graph/",
    authenticate=authenticate,
    headers=headers,
    body_headers=BODY_HEADERS,
    dress=dress,
    error=error,
    routes=(*objects.ROUTES, *changes.ROUTES, *credentials.ROUTES, *grants.ROUTES, *memberships.ROUTES),
)
