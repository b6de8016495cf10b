"""The service as an OpenID Connect issuer: its documents, and tokens that prove to other services who logged in."""

from . import routes
from .facts import FACTS
from .publication import publish, publish_soon, unpublished
