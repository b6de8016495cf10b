"""The route that describes the interface to tools, as an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from ..effects import in_turns
from ..forms import BOOLEAN, setting
from ..messages import READ, Answer
from ..mounts import Mount
from ..openapi import DOCUMENT, GENERIC_FROM, document_of, paths_of, place_of
from ..routing import PLAIN, Call, Component, route
from .ui_mounts import visible_mounts


@frozen(kw_only=True)
class SpecificationForm:
    generic_mount_paths: bool = setting(
        BOOLEAN,
        False,
        f"Name each type of mount once, with its path as a parameter. From {GENERIC_FROM} mounts on it is always so.",
    )


@route("internal/specs/openapi", READ, DOCUMENT, shape=PLAIN, form=SpecificationForm, any_token=True)
async def describe(call: Call) -> Answer:
    """Describes all paths below which the caller has rights, as an OpenAPI 3.1 document.

    The mounts are those that `sys/internal/ui/mounts` lists.
    """
    visible = await visible_mounts(call)
    generic = call.form(SpecificationForm).generic_mount_paths or len(visible) >= GENERIC_FROM

    def paths(mount: Mount) -> Iterator[str]:
        component = call.context.components.of(mount)
        if isinstance(component, Component):
            yield paths_of(component, place_of(mount, generic=generic))

    return Answer(rendered=document_of(await in_turns(visible, paths, 1)))


ROUTES: Final = (describe,)
