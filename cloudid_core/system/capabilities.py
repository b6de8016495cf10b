"""The routes that list the capabilities of a token at given paths."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..effects import give_way
from ..errors import Code, Refused
from ..forms import TEXT, TEXTS, Json, schemas, setting
from ..messages import WRITE, Answer
from ..mounts import mount_table
from ..policies import Acl, load_acl
from ..routing import COPIED, Answers, Call, route
from ..tokens import Token, find_by_accessor, find_by_text, is_valid

MOST_PATHS: Final = 1000
LONGEST_PATH: Final = 1024
MOST_COMPARISONS: Final = 1_000_000
"""Maximum number of comparisons of a path with patterns."""

PATH_COST: Final = 100
"""The rest of the work for a path of maximum length takes as long as this many comparisons."""

AT_ONCE: Final = 10_000
"""How many of them are made before other requests get a turn."""


@frozen(kw_only=True)
class PathsForm:
    paths: tuple[str, ...] = setting(TEXTS, (), "Paths whose capabilities to return.", old_name="path")


@frozen(kw_only=True)
class TokenForm(PathsForm):
    token: str = setting(TEXT, "", "The token.", repr=False, required=True)


@frozen(kw_only=True)
class AccessorForm(PathsForm):
    accessor: str = setting(TEXT, "", "Accessor of the token.", required=True)


BY_PATH: Final = Answers(data=schemas.each(schemas.LIST), shape=COPIED)


@route("capabilities-self", WRITE, BY_PATH, form=PathsForm)
async def capabilities_of_self(call: Call) -> Answer:
    """Returns the capabilities of the caller's token at given paths."""
    return await _answer(call.token.acl, call.form(PathsForm).paths)


@route("capabilities", WRITE, BY_PATH, form=TokenForm, requires_all=True)
async def capabilities_of_token(call: Call) -> Answer:
    """Returns the capabilities of a token at given paths."""
    form = call.form(TokenForm)
    return await _answer(await _acl(call, await find_by_text(call.context, form.token)), form.paths)


@route("capabilities-accessor", WRITE, BY_PATH, form=AccessorForm, requires_all=True)
async def capabilities_of_accessor(call: Call) -> Answer:
    """Returns the capabilities of the token with an accessor at given paths."""
    form = call.form(AccessorForm)
    return await _answer(await _acl(call, await find_by_accessor(call.context, form.accessor)), form.paths)


async def _acl(call: Call, token: Token | None) -> Acl:
    """Return what a token allows. Refuse with `TOKEN_NOT_FOUND` if it does not exist or has ended."""
    mounts = await mount_table(call.context.records)
    if token is None or not await is_valid(call.context, mounts.record, token, call.now):
        raise Refused(Code.TOKEN_NOT_FOUND)
    return await load_acl(call.context, token.policies)


async def _answer(acl: Acl, paths: tuple[str, ...]) -> Answer:
    """Return each path with its sorted capabilities. For a single path, also return them as `capabilities`.

    Other requests get turns, because each path is compared with all patterns of the policies.
    """
    if not paths:
        raise Refused(Code.FIELD_REQUIRED, '"paths"')
    if len(paths) > MOST_PATHS:
        raise Refused(Code.FIELD_INVALID, f'"paths" must be at most {MOST_PATHS}')
    if any(len(path) > LONGEST_PATH for path in paths):
        raise Refused(Code.FIELD_INVALID, f'"paths" must each have at most {LONGEST_PATH} characters')
    if len(paths) * acl.patterns > MOST_COMPARISONS:
        most = MOST_COMPARISONS // acl.patterns
        raise Refused(
            Code.FIELD_INVALID, f'"paths" must be at most {most}, because the token\'s policies have many patterns'
        )
    data: dict[str, Json] = {}
    at_once = AT_ONCE // (acl.patterns + PATH_COST) + 1
    for start in range(0, len(paths), at_once):
        if start:
            await give_way()
        for path in paths[start : start + at_once]:
            data[path] = sorted(acl.capabilities(path.removeprefix("/")))
    if len(paths) == 1:
        data["capabilities"] = data[paths[0]]
    return Answer(data=data, copy_up=True)


ROUTES: Final = (capabilities_of_self, capabilities_of_token, capabilities_of_accessor)
