"""The login service: its routes. Callers need no access token."""

from __future__ import annotations

from typing import Final

from ..engine.requests import admit_anyone
from ..engine.routing import Route, Service
from .discovery import discovery_v1, discovery_v2, instance_discovery, signing_keys
from .errors import render_error
from .token_endpoint import token_v1, token_v2

LOGIN: Final = Service(
    name="login",
    prefix="/login/",
    authenticate=admit_anyone,
    render_error=render_error,
    routes=(
        Route("GET", "/login/common/discovery/instance", instance_discovery),
        Route("GET", "/login/{tenant}/.well-known/openid-configuration", discovery_v1),
        Route("GET", "/login/{tenant}/v2.0/.well-known/openid-configuration", discovery_v2),
        Route("GET", "/login/{tenant}/discovery/keys", signing_keys),
        Route("GET", "/login/{tenant}/discovery/v2.0/keys", signing_keys),
        Route("POST", "/login/{tenant}/oauth2/token", token_v1),
        Route("POST", "/login/{tenant}/oauth2/v2.0/token", token_v2),
    ),
)
