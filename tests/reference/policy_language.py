"""The page of the policy language, from the tables of its parser; what the parser has as code, rows show executed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from cloudid_core.errors import Refused
from cloudid_core.forms import spellings_of
from cloudid_core.policies import Acl, parse
from cloudid_core.policies.document import CAPABILITIES, KEYS, LONGEST, OLD_LEVELS, UNSUPPORTED
from cloudid_core.policies.hcl import DEEPEST, MOST_TOKENS
from cloudid_core.policies.parameters import MOST_COMPARISONS, READING
from cloudid_core.policies.store import LONGEST_TOGETHER
from cloudid_core.testing import World
from cloudid_core.token_store.create import CreateForm

from .tables import table

PATTERNS: Final = (
    ("cloud/creds/web", "exactly this path", "cloud/creds/Web", "cloud/creds/web-a"),
    (
        "cloud/creds/web*",
        "everything that begins so: `*` stands at the end alone",
        "cloud/creds/web/a",
        "cloud/creds/a",
    ),
    ("auth/+/role/web", "any one segment in place of `+`", "auth/azure/role/web", "auth/a/b/role/web"),
    ("+/creds/*", "both together, but not as `+*`", "azure/creds/web", "creds/web"),
)
"""A pattern, what it matches, and a path that it matches and one that it does not."""

RANKS: Final = (
    ("the exact pattern", "cloud/creds/web", "cloud/creds/web*", "cloud/creds/web"),
    ("its first wildcard stands further right", "cloud/creds/*", "cloud/+/web", "cloud/creds/web"),
    ("it does not end in `*`", "cloud/+/web", "cloud/+/web*", "cloud/creds/web"),
    ("it has fewer `+`", "cloud/+/web/a", "cloud/+/+/a", "cloud/creds/web/a"),
    ("it is longer", "cloud/+/web*", "cloud/+/w*", "cloud/creds/web"),
    ("it is later in the alphabet", "cloud/+/web/+", "cloud/+/+/abc", "cloud/creds/web/abc"),
)
"""Why a pattern decides over another one at a path."""

PARAMETERS: Final[tuple[tuple[str, dict[str, Any], bool], ...]] = (
    ('required_parameters = ["ttl"]', {}, False),
    ('required_parameters = ["ttl"]', {"ttl": "1h"}, True),
    ('required_parameters = ["ttl"]', {"TTL": "1h"}, False),
    ('allowed_parameters = { "ttl" = [] }', {"ttl": "1h"}, True),
    ('allowed_parameters = { "ttl" = [] }', {"ttl": "1h", "name": "a"}, False),
    ('allowed_parameters = { "ttl" = ["1h"], "*" = [] }', {"ttl": "1h", "name": "a"}, True),
    ('allowed_parameters = { "ttl" = ["1h"], "*" = [] }', {"ttl": "2h"}, False),
    ('allowed_parameters = { "policies" = ["web-*"] }', {"policies": ["web-a", "web-b"]}, True),
    ('allowed_parameters = { "policies" = ["web-*"] }', {"policies": ["web-a", "admin"]}, False),
    ('allowed_parameters = { "policies" = [["web", "app"]] }', {"policies": "app,web"}, True),
    ('allowed_parameters = { "policies" = [["web", "app"]] }', {"policies": ["web"]}, False),
    ('allowed_parameters = { "policies" = ["web,app"] }', {"policies": ["web", "app"]}, True),
    ('allowed_parameters = { "policies" = ["web,app"] }', {"policies": ["web"]}, False),
    ('allowed_parameters = { "policies" = ["", "web"] }', {"policies": []}, True),
    ('allowed_parameters = { "policies" = ["", "web"] }', {"policies": ["admin"]}, False),
    ('allowed_parameters = { "display_name" = ["a, b"] }', {"display_name": "a"}, False),
    ('allowed_parameters = { "meta" = [{ "team" = "web" }] }', {"meta": {"team": "web"}}, True),
    ('allowed_parameters = { "meta" = [{ "team" = "web" }] }', {"meta": {"team": "web", "a": "b"}}, False),
    ('allowed_parameters = { "num_uses" = [1] }', {"num_uses": "many"}, False),
    ('denied_parameters = { "num_uses" = [1] }', {"num_uses": "many"}, False),
    ('denied_parameters = { "policies" = ["admin"] }', {"policies": ["web", "Admin"]}, False),
    ('denied_parameters = { "policies" = ["ops.*.head"] }', {"policies": ["ops.network.head"]}, False),
    ('denied_parameters = { "policies" = [["web", "app"]] }', {"policies": ["app", "web"]}, False),
    ('denied_parameters = { "policies" = [["web", "app"]] }', {"policies": ["web"]}, True),
    ('denied_parameters = { "num_uses" = [[1]] }', {"num_uses": 2}, False),
    ('denied_parameters = { "ttl" = ["*h"] }', {"ttl": "60s"}, False),
    ('denied_parameters = { "no_parent" = [] }', {"no_parent": False}, False),
    ('denied_parameters = { "*" = [] }', {"a": 1}, False),
)
"""A rule, the fields of a request for a token, and whether it passes."""

FIELDS: Final = spellings_of(CreateForm)

REFUSED: Final = (
    'path "a" { capabilities = ["raed"] }',
    'path "a" { colour = "red" }',
    'path "a" { policy = "all" }',
    'path "a" { mfa_methods = ["phone"] }',
    'path "a/{{identity.entity.name}}" { }',
    'path "a/+*" { }',
    'path "a" { capabilities = [] capabilities = [] }',
    'path "a" { capabilities = read }',
    'path "a" { comment = <<END }',
    'path "a" { capabilities ["read"] }',
    'path "a" { allowed_parameters = { ttl = ["1*h"] } }',
    '{"path": {"a": {}, "a": {}}}',
    'path "a" { min_wrapping_ttl = "2m" max_wrapping_ttl = "1m" }',
    'roles "a" { }',
)

INTRODUCTION: Final = (
    "A policy is a document of rules, in HCL or JSON; either may come in base64. Examples of use: "
    "[policies](../how-to/policies.md). Every row with a path or a request is executed by a test."
)
HCL: Final = (
    "In HCL a comma may follow each assignment and each block, names may be in quotes, and parameters may be a block "
    "without `=`."
)
PATHS: Final = (
    "Paths are compared without case. **One pattern decides about a path**, and patterns do not add up. Rules for the "
    "same pattern do, of one policy or of several: their capabilities are joined, their parameters too, and `deny` "
    "beats all. A list is decided by a rule for exactly its path, with or without a final slash, before any wildcard. "
    "The first line that tells two patterns apart says which one decides:"
)
VALUES: Final = (
    'Values are compared as JSON, in the way the route reads them: `3600` is `"1h"`, and an old name of a field is the '
    "field. Parameters count for `create`, `read`, `update` and `patch`.\n\n"
    "- A value of a rule means one element of a list. Every element must match a value of `allowed_parameters`, and "
    "none may match a value of `denied_parameters`. In a field of objects, an object is an element.\n"
    '- A list as a value, `[["a", "b"]]`, is exactly that list.\n'
    '- In a field that takes a list, the text `"a, b"` allows exactly that list and denies each of its elements; `""` '
    "is the empty list. In a field that takes a text, it is that text.\n"
    "- `*` at either end of a value stands for any text, and `*` alone for any value. In `denied_parameters` `*` may "
    "also stand inside. In `allowed_parameters` a policy with `*` inside a value is refused; in a policy from before "
    "that rule such a `*` stands for itself, and health reports the policy. In a list as a value `*` stands for "
    "itself.\n"
    "- A pattern is compared with texts, numbers and booleans. An object or null matches only `*` in "
    "`allowed_parameters`, and every pattern in `denied_parameters`. In `denied_parameters` a pattern that no number "
    "or no boolean can match, such as `*h` for seconds, denies every number or boolean.\n"
    "- A value of `denied_parameters` that the field cannot read and that has no `*` denies every value of the field: "
    "an object that lacks a required member, for example. In `allowed_parameters` it allows nothing.\n"
    "- An object in `denied_parameters` denies that object and no other. A role or group can be named by its id "
    "instead of its name, so name those that may be used in `allowed_parameters`, or set a ceiling in the mount's "
    "configuration.\n"
    "- A request whose value the route cannot read is refused by every rule that names the field.\n"
    "- `config` of a mount is compared by its members, which are read as fields are. Empty, default and unknown "
    "members do not count.\n"
    "- Capitals count in `allowed_parameters` unless the route ignores them. They never count in `denied_parameters`."
)
LEFT_OUT: Final = (
    "What could grant more than its author meant is refused as a whole, with `policy_invalid`, and nothing is stored. "
    f"Not supported are {', '.join(f'`{name}`' for name in sorted(UNSUPPORTED))}, which other services know; "
    "templates, heredocs and expressions; unknown keys and capabilities; an assignment that is repeated."
)
LIMITS: Final = (
    f"A text has at most {LONGEST:,} characters, HCL {MOST_TOKENS:,} tokens on {DEEPEST} levels. "
    f"A token whose policies have more than {LONGEST_TOGETHER:,} characters in all may do nothing. A request is "
    f"refused if its decision takes more than {MOST_COMPARISONS:,} comparisons of an element with a pattern. Reading "
    f"an element of a value of the rule counts as {READING} comparisons, once for each type of field in the request."
)


def page() -> Iterator[str]:
    yield INTRODUCTION
    yield '```hcl\npath "cloud/creds/web-*" {\n  capabilities = ["read"]\n}\n```'
    yield HCL
    yield '```json\n{"path": {"cloud/creds/web-*": {"capabilities": ["read"]}}}\n```'
    yield "## Paths"
    yield table(
        ("pattern", "matches", "such as", "not"), ((_code(a), what, _code(b), _code(c)) for a, what, b, c in PATTERNS)
    )
    yield PATHS
    yield table(("decides, since", "", "over", "at"), ((why, *map(_code, texts)) for why, *texts in RANKS))
    yield "## Capabilities"
    yield table(("capability", "lets pass"), ((_code(name), what) for name, what in CAPABILITIES.items()))
    yield "Protected is what the reference marks *with `sudo`*. What `policy` stands for, in place of `capabilities`:"
    yield table(
        ("level", "capabilities"), ((_code(name), _codes(CAPABILITIES, all_)) for name, all_ in OLD_LEVELS.items())
    )
    yield "## Keys of a rule"
    yield table(("key", "meaning"), ((_code(name), what) for name, what in KEYS.items()))
    yield VALUES
    yield table(
        ("rule", "request", "passes"),
        ((_code(rule), _code(_json(given)), "yes" if passes else "no") for rule, given, passes in PARAMETERS),
    )
    yield "## What is left out"
    yield LEFT_OUT
    yield table(("text", "error"), ((_code(text), refusal(text)) for text in REFUSED))
    yield LIMITS


def capabilities(path: str, *rules: tuple[str, str]) -> frozenset[str]:
    """Of a path, by policies with a pattern and a capability each."""
    text = 'path "{}" {{ capabilities = ["{}"] }}'
    return acl(*(text.format(pattern, capability) for pattern, capability in rules)).capabilities(path)


def acl(*texts: str) -> Acl:
    return World().perform(Acl.of([parse(str(number), text) for number, text in enumerate(texts)]))


def refusal(text: str) -> str:
    """How a document is refused."""
    try:
        parse("a", text)
    except Refused as error:
        [problem] = error.problems
        return problem.detail
    raise AssertionError(f"accepted: {text}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode().replace('":', '": ').replace(",", ", ")


def _code(text: str) -> str:
    return f"`{text}`"


def _codes(order: Any, names: frozenset[str]) -> str:
    return ", ".join(_code(name) for name in order if name in names)
