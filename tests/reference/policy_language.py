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
        "all paths with this prefix; `*` is allowed only at the end",
        "cloud/creds/web/a",
        "cloud/creds/a",
    ),
    ("auth/+/role/web", "any single segment in place of `+`", "auth/azure/role/web", "auth/a/b/role/web"),
    ("+/creds/*", "both combined, but not as `+*`", "azure/creds/web", "creds/web"),
)
"""A pattern, what it matches, and a path that it matches and one that it does not."""

RANKS: Final = (
    ("the exact pattern", "cloud/creds/web", "cloud/creds/web*", "cloud/creds/web"),
    ("its first wildcard is further right", "cloud/creds/*", "cloud/+/web", "cloud/creds/web"),
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
    "A policy is a document of rules in HCL or JSON, and may be base64-encoded. For examples, see "
    "[policies](../how-to/policies.md). A test executes every row below that has a path or a request."
)
HCL: Final = (
    "In HCL, a comma may follow each assignment and each block, names may be quoted, and parameters may "
    "be a block without `=`."
)
PATHS: Final = (
    "Paths ignore case. **Exactly one pattern decides about a path**: other matching patterns are "
    "ignored. If several rules have that pattern, in one policy or in several, their capabilities and "
    "parameters are merged, and `deny` takes precedence. To list a path, a rule for exactly this path, with "
    "or without a final slash, takes precedence over wildcards. Of two patterns, the first row that "
    "distinguishes them shows which one decides:"
)
VALUES: Final = (
    'Values are compared as JSON, as the route reads them: `3600` equals `"1h"`, and a deprecated field '
    "name equals the current one. Parameters apply to `create`, `read`, `update` and `patch`.\n\n- A value of "
    "a rule is compared with one element of a list. Every element must match a value of "
    "`allowed_parameters`, and none may match a value of `denied_parameters`. In a field of objects, each "
    'object is an element.\n- A list as a value, `[["a", "b"]]`, matches exactly that list.\n- In a field that '
    'takes a list, the string `"a, b"` allows exactly that list and denies each of its elements; `""` is the '
    "empty list. In a field that takes a string, it is that string.\n- `*` at either end of a value matches "
    "any text, and `*` as the whole value matches any value. In `denied_parameters`, `*` may also be in the "
    "middle. In `allowed_parameters`, a policy with `*` in the middle of a value is refused; if such a "
    "policy is already stored, its `*` is literal, and health reports the policy. In a list as a value, `*` "
    "is literal.\n- A pattern is compared with strings, numbers and booleans. An object or null matches only "
    "`*` in `allowed_parameters`, and every pattern in `denied_parameters`. In `denied_parameters`, a "
    "pattern that no number or boolean can match, such as `*h` for seconds, denies every number or "
    "boolean.\n- A value of `denied_parameters` that the field cannot read and that has no `*`, such as an "
    "object without a required member, denies every value of the field. In `allowed_parameters` it allows "
    "nothing.\n- An object in `denied_parameters` denies only that object. Because a role or group can be "
    "named by id or by name, list the allowed ones in `allowed_parameters`, or set a ceiling in the mount's "
    "configuration.\n- If the route cannot read a value, every rule that names the field refuses the "
    "request.\n- `config` of a mount is compared by its members, which are read like fields. Empty, default "
    "and unknown members are ignored. In `denied_parameters`, the name of a member also denies it in `config`: "
    "`listing_visibility = []` applies to new mounts and to `tune`.\n- `allowed_parameters` distinguishes upper "
    "and lower case unless the "
    "route ignores it. `denied_parameters` never does."
)
LEFT_OUT: Final = (
    "A policy that could grant more than its author intended is refused with `policy_invalid`, and nothing is stored. "
    f"These features of Vault's policies are not supported: {', '.join(f'`{name}`' for name in sorted(UNSUPPORTED))}, "
    "templates, heredocs and expressions. Unknown keys and capabilities, and repeated assignments, are also refused."
)
LIMITS: Final = (
    f"A policy has at most {LONGEST:,} characters, and in HCL {MOST_TOKENS:,} tokens on {DEEPEST} levels. "
    f"If the policies of a token have more than {LONGEST_TOGETHER:,} characters in total, all its requests "
    f"are refused. A request is refused if its decision takes more than {MOST_COMPARISONS:,} comparisons of "
    f"an element with a pattern. Reading an element of a rule's value counts as {READING} comparisons, once "
    "for each type of field in the request."
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
    yield table(("reason", "", "over", "at"), ((why, *map(_code, texts)) for why, *texts in RANKS))
    yield "## Capabilities"
    yield table(("capability", "allows"), ((_code(name), what) for name, what in CAPABILITIES.items()))
    yield (
        "Protected paths are marked *with `sudo`* in the reference. The levels of `policy`, which can "
        "replace `capabilities`:"
    )
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
    yield "## Not supported"
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
