"""The wrapped answer: what is written with it, and what its end takes along."""

from __future__ import annotations

from msgspec.structs import replace

from cloudid_core.mounts.table import TOKEN
from cloudid_core.policies.builtin import RESPONSE_WRAPPING
from cloudid_core.store.records import Found, encode
from cloudid_core.tokens.record import Token
from cloudid_core.wrapping.record import Wrapped

WRAPPED = Wrapped(body="c4n4ry", path="cloud/creds/web", created_at=100.0, ttl=60)
TOKEN_OF_IT = Token(
    id="1f" * 16,
    path="cloud/creds/web",
    mount_id=TOKEN.id,
    policies=(RESPONSE_WRAPPING,),
    display_name="",
    created_at=100.0,
    ttl=60,
    expires_at=160.0,
    num_uses=1,
)


def test_an_answer_that_gives_nothing_new_is_one_entry() -> None:
    assert set(WRAPPED.tie(TOKEN_OF_IT).puts) == {f"wrapped/{TOKEN_OF_IT.id}"}
    assert TOKEN_OF_IT.own_keys == (TOKEN_OF_IT.key, f"wrapped/{TOKEN_OF_IT.id}")


def test_what_an_answer_does_not_give_takes_no_room_in_the_store() -> None:
    assert encode(WRAPPED) == b'{"body":"c4n4ry","path":"cloud/creds/web","created_at":100.0,"ttl":60}'


def test_a_new_lease_or_token_hangs_on_the_wrapping_token() -> None:
    due = TOKEN_OF_IT.due_key(160.0)
    tied = replace(WRAPPED, new_lease="a/b").tie(TOKEN_OF_IT)
    assert set(tied.puts) == {f"wrapped/{TOKEN_OF_IT.id}", f"token-lease/{TOKEN_OF_IT.id}/a/b", due}
    tied = replace(WRAPPED, new_token="2e" * 16).tie(TOKEN_OF_IT)
    assert set(tied.puts) == {f"wrapped/{TOKEN_OF_IT.id}", f"child/{TOKEN_OF_IT.id}/{'2e' * 16}", due}


def test_a_release_unties_all_that_was_tied() -> None:
    """And ends the token by a put, which proves who unwrapped it."""
    wrapped = replace(WRAPPED, new_lease="a/b", new_token="2e" * 16)
    token = Found(TOKEN_OF_IT.key, replace(TOKEN_OF_IT, has_dependants=True), 7)
    released = wrapped.release(token, 130.0)
    assert set(released.deletes) == set(wrapped.tie(token.record).puts)
    assert released.expects == {TOKEN_OF_IT.key: 7}
    assert released.puts == {TOKEN_OF_IT.key: replace(TOKEN_OF_IT, expires_at=130.0)}


def test_what_is_wrapped_is_never_printed() -> None:
    assert "c4n4ry" not in repr(WRAPPED)
