"""Whatever several folders, other writers and limited tokens do: a folder deletes only what it made and may delete."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.installation import Installation

FOLDERS: Final = ("a" * 32, "b" * 32)
NAMES: Final = ("x", "y")
BOTH: Final = '"create", "read", "update", "sudo"'
TOKENS: Final = {
    "root": "",
    "applier": f'path "sys/applied/*" {{ capabilities = [{BOTH}] }}\n'
    f'path "auth/token/roles/*" {{ capabilities = [{BOTH}, "delete"] }}\n',
    "without-delete": f'path "sys/applied/*" {{ capabilities = [{BOTH}] }}\n'
    f'path "auth/token/roles/*" {{ capabilities = [{BOTH}] }}\n',
    "without-records": 'path "auth/token/roles/*" { capabilities = ["create", "read", "update", "delete"] }\n',
}
STEP = st.tuples(
    st.sampled_from(("POST", "DELETE")),
    st.sampled_from(NAMES),
    st.sampled_from(("", *FOLDERS)),
    st.sampled_from(tuple(TOKENS)),
)


@given(steps=st.lists(STEP, max_size=12))
def test_a_folder_deletes_only_what_it_made_and_what_the_token_may_delete(
    steps: list[tuple[str, str, str, str]],
) -> None:
    world = Installation()
    tokens = {"root": "root"}
    for name, policy in TOKENS.items():
        if policy:
            world.must("POST", f"sys/policies/acl/{name}", {"policy": policy})
            created = world.must("POST", "auth/token/create", {"policies": name})
            tokens[name] = created.auth["client_token"]
    for folder in FOLDERS:
        world.must("POST", f"sys/applied/{folder}", {"path": folder, "host": "one"})
    makers: dict[str, str] = {}
    for method, name, folder, token in steps:
        path = f"auth/token/roles/{name}"
        headers = {"x_service_applied_folder": folder} if folder else {}
        reply = world.ask(method, path, {} if method == "POST" else None, tokens[token], **headers)
        may = token != "without-records" or not folder
        if method == "DELETE":
            may = may and token != "without-delete" and (not folder or makers.get(name) == folder)
            if may:
                makers.pop(name, None)
        elif may:
            makers.setdefault(name, folder)
        assert (reply.status < 300) is may, (method, name, folder, token, reply.body)
        assert (world.ask("GET", path).status == 200) is (name in makers)
        for each in FOLDERS:
            made = world.must("GET", f"sys/applied/{each}").data["paths"]
            assert made == [f"auth/token/roles/{key}" for key in NAMES if makers.get(key) == each]
