"""The HTTP API as an OpenAPI document, from the tables of routes, fields and codes."""

from .document import DOCUMENT, GENERIC_FROM, document_of, generic_place, paths_of, place_of
