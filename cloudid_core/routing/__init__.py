"""Routes: which program answers a request, and what it receives."""

from .aliases import ALIASES, without_alias
from .answers import CHOSEN, COPIED, DONE, GIVES_TOKEN, LEFT, PLAIN, PROVIDER, Answers
from .components import Catalog, Component, mount_client
from .exchange import Exchange, role_in
from .help import VERBS, help_about, help_about_mount
from .left_out import LEFT_OUT, LEFT_OUT_HEADERS, reason_of
from .named import NamedRecords
from .routes import (
    Call,
    Held,
    NoFields,
    PageForm,
    Proven,
    Route,
    RouteTable,
    Unwrapping,
    capture_name,
    captured,
    may_read_config,
    methods_of,
    name_as_written,
    reason_for,
    route,
)
