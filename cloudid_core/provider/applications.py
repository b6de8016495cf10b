"""Applications of the directory, and their passwords."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec
from attrs import frozen

from ..effects import Instant
from ..errors import CloudidError, ProviderAmbiguous, ProviderProblem
from ..forms import Json
from ..values import Secret, rfc3339
from .client import Client, ask
from .objects import (
    Id,
    Selection,
    address,
    change,
    delete,
    directory_call,
    find_by_id,
    find_by_key,
    literal,
    select,
    select_until,
    upsert,
)
from .propagation import pause
from .responses import is_absent, unless

SINGLE_TENANT: Final = "AzureADMyOrg"
"""The audience of accounts of the own tenant only. Without one, Azure opens an application to every account."""
LOOKS: Final = 5
"""How often a password is looked for whose answer was lost."""


@frozen
class Password:
    """What the provider shows of a password, a certificate or a federated credential.

    `hint` is how the text of a password starts.
    """

    key_id: str
    display_name: str
    hint: str
    ends_at: Instant | None


@frozen
class Application:
    """An application; `object_id` is what calls name it by, `client_id` what it is known by elsewhere."""

    object_id: str
    client_id: str
    display_name: str
    unique_name: str
    passwords: tuple[Password, ...]
    certificates: tuple[Password, ...] = ()
    federations: tuple[Password, ...] = ()
    """Only where they were asked for."""
    tags: tuple[str, ...] = ()


@frozen(kw_only=True)
class Description:
    """What an application is made with besides its unique name.

    `is_tagged`: the unique name is one of its tags, by which it is found where its display name has a prefix.
    """

    tags: tuple[str, ...] = ()
    sign_in_audience: str = SINGLE_TENANT
    service_management_reference: str = ""
    display_name_prefix: str = ""
    is_tagged: bool = False

    def tags_with(self, unique_name: str) -> list[str]:
        return [*self.tags, unique_name] if self.is_tagged else list(self.tags)


NO_DESCRIPTION: Final = Description()


@frozen
class NewPassword:
    """A password whose text the provider shows this once."""

    key_id: str
    secret: Secret
    ends_at: Instant


class _Password(msgspec.Struct, rename="camel"):
    key_id: Id | None = None
    display_name: str | None = None
    hint: str | None = None
    end_date_time: str | None = None


class _Application(msgspec.Struct, rename="camel"):
    id: Id
    app_id: Id
    display_name: str | None = None
    unique_name: str | None = None
    password_credentials: list[_Password] | None = None
    key_credentials: list[_Password] | None = None
    tags: tuple[str, ...] | None = None


class _NewPassword(msgspec.Struct, rename="camel"):
    key_id: Id
    secret_text: str
    end_date_time: str | None = None

    def __repr__(self) -> str:
        return f"<_NewPassword {self.key_id}>"


async def ensure_application(
    client: Client, unique_name: str, description: Description = NO_DESCRIPTION
) -> Application:
    """The application with this unique name, made if it is not there; doing it again is harmless.

    Its display name ends with the unique name; where the environment has no unique names, that is also one of its tags.
    It is then made once at most: raises `ProviderAmbiguous` when that may have happened, and it cannot be seen.
    """
    body = _body(unique_name, description, description.tags_with(unique_name))
    made = await upsert(client, "applications", "uniqueName", unique_name, body, _Application)
    if made is not None:
        return _application(made)
    if (marked := await _marked_application(client, unique_name)) is not None:
        return marked
    body = _body(unique_name, description, [*description.tags, unique_name])
    call = directory_call(client, "POST", address(client, "applications"), body, idempotent=False)
    try:
        return _application(await ask(client, call, _Application))
    except ProviderAmbiguous:
        with suppress(CloudidError):  # a look that fails tells nothing
            if (marked := await _marked_application(client, unique_name)) is not None:
                return marked
        raise


async def describe_application(
    client: Client, object_id: str, unique_name: str, description: Description, *, had_reference: bool = False
) -> None:
    """Change the tags of an application, who can sign in to it, and its service management reference."""
    body: dict[str, Json] = {
        "tags": description.tags_with(unique_name),
        "signInAudience": description.sign_in_audience,
    }
    if description.service_management_reference or had_reference:
        body["serviceManagementReference"] = description.service_management_reference or None
    await change(client, "PATCH", address(client, "applications", object_id), body)


async def change_audience(client: Client, object_id: str, sign_in_audience: str) -> None:
    """Change who can sign in to an application; nothing if there is no such application."""
    body = {"signInAudience": sign_in_audience}
    await unless(is_absent, change(client, "PATCH", address(client, "applications", object_id), body), None)


async def application_by_unique_name(client: Client, unique_name: str) -> Application | None:
    """The application that `ensure_application` made, in whichever way; `None` if it does not show."""
    found = await find_by_key(client, "applications", "uniqueName", unique_name, _Application)
    return await _marked_application(client, unique_name) if found is None else _application(found)


async def find_application(client: Client, object_id: str) -> Application | None:
    found = await find_by_id(client, "applications", object_id, _Application)
    return None if found is None else _application(found)


async def applications_by_client_id(client: Client, client_id: str) -> list[Application]:
    """The application with this client id: none or one; more only by a mistake of the provider."""
    return await _select(client, f"appId eq {literal(client_id)}")


async def marked_applications(client: Client, condition: str, until: Instant) -> Selection[Application]:
    """The applications that pass a condition of `marked_by`, as far as they can be listed until an instant."""
    return await select_until(client, "applications", condition, _Application, until, _application)


def marked_by(prefix: str) -> tuple[str, str]:
    """The filters for the objects whose display name, or one of whose tags, starts with a marker."""
    return f"startswith(displayName,{literal(prefix)})", f"tags/any(t:startswith(t,{literal(prefix)}))"


async def add_password(
    client: Client, object_id: str, *, display_name: str, starts_at: Instant, ends_at: Instant
) -> NewPassword:
    """Add a password. `ProviderAmbiguous`: it may be there, and can be found by its display name only.

    An empty name is not sent: an application of its own needs no name to tell its password from others.
    """
    password = {"startDateTime": rfc3339.show(starts_at), "endDateTime": rfc3339.show(ends_at)}
    if display_name:
        password["displayName"] = display_name
    target = address(client, "applications", object_id, "addPassword")
    call = directory_call(client, "POST", target, {"passwordCredential": password}, idempotent=False)
    added = await ask(client, call, _NewPassword)
    given = _instant(added.end_date_time)
    return NewPassword(added.key_id, Secret(added.secret_text), ends_at if given is None else given)


async def make_password(
    client: Client, object_id: str, *, name: str, starts_at: Instant, ends_at: Instant
) -> NewPassword:
    """Add a password as `add_password` does, and replace one whose answer was lost.

    The text of a lost password is unknown, so it is looked up by its name and removed, and another one is added. If the
    first does not show, it was probably never created. If it shows later, it is removed with the other one, because
    both have the same name.

    `ProviderAmbiguous`: no time is left, or the second answer is lost too. `ProviderProblem`: Azure refused it.
    """
    add = partial(add_password, client, object_id, display_name=name, starts_at=starts_at, ends_at=ends_at)
    try:
        return await add()
    except ProviderAmbiguous:
        for _ in range(LOOKS):
            removed = False
            with suppress(ProviderProblem):  # another change of the application may be under way
                removed = await remove_named_passwords(client, object_id, name)
            if removed:
                break
            if not await pause(client):
                raise
    return await add()


async def remove_named_passwords(client: Client, object_id: str, name: str, *, but: str = "") -> bool:
    """Remove all passwords with a display name, but one key id; `False` if none shows, or no such application."""
    passwords = await _passwords(client, object_id)
    named = [each.key_id for each in passwords if each.display_name == name and each.key_id != but]
    return any([await remove_password(client, object_id, key_id) for key_id in named])


async def remove_password(client: Client, object_id: str, key_id: str) -> bool:
    """Remove a password; `False` if there is none, or no such application."""
    target = address(client, "applications", object_id, "removePassword")
    try:
        await change(client, "POST", target, {"keyId": key_id})
    except ProviderProblem as problem:
        if is_absent(problem):
            return False
        # What the directory says of an unknown password, it also says of other mistakes.
        if problem.status != 400 or any(each.key_id == key_id for each in await _passwords(client, object_id)):
            raise
        return False
    return True


async def _passwords(client: Client, object_id: str) -> tuple[Password, ...]:
    application = await find_application(client, object_id)
    return application.passwords if application else ()


async def delete_application(client: Client, object_id: str) -> bool:
    """Move an application, and its principal, to the deleted items; `False` if there is none."""
    return await delete(client, address(client, "applications", object_id))


async def purge(client: Client, object_id: str) -> bool:
    """Delete one of the deleted items for good; `False` if it is not among them."""
    return await delete(client, address(client, "directory", "deletedItems", object_id))


def _body(unique_name: str, description: Description, tags: list[str]) -> dict[str, Json]:
    body: dict[str, Json] = {
        "displayName": f"{description.display_name_prefix}{unique_name}",
        "signInAudience": description.sign_in_audience,
    }
    if tags:
        body["tags"] = tags
    if description.service_management_reference:
        body["serviceManagementReference"] = description.service_management_reference
    return body


async def _marked_application(client: Client, marker: str) -> Application | None:
    """The application with a marker for one of its tags."""
    listed = await _select(client, f"tags/any(t:t eq {literal(marker)})")
    return next((application for application in listed if marker in application.tags), None)


async def _select(client: Client, condition: str) -> list[Application]:
    return [_application(listed) for listed in await select(client, "applications", condition, _Application)]


def _application(form: _Application) -> Application:
    passwords, certificates = _listed(form.password_credentials), _listed(form.key_credentials)
    return Application(
        form.id,
        form.app_id,
        form.display_name or "",
        form.unique_name or "",
        passwords,
        certificates,
        tags=form.tags or (),
    )


def _listed(forms: Sequence[_Password] | None) -> tuple[Password, ...]:
    """Those without a key id are left out: they cannot be removed by it."""
    return tuple(
        Password(each.key_id, each.display_name or "", each.hint or "", _instant(each.end_date_time))
        for each in forms or ()
        if each.key_id is not None
    )


def _instant(text: str | None) -> Instant | None:
    try:
        return rfc3339.parse(text)
    except ValueError:
        return None
