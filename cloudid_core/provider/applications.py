"""App registrations and their client secrets."""

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
"""The audience of accounts of the own tenant. Without an audience, Azure opens an app registration to every account."""
LOOKS: Final = 5
"""How often to look for a client secret whose creation got no response."""


@frozen
class Password:
    """A client secret, certificate or federated credential as Azure shows it.

    `hint` is the start of a client secret's text.
    """

    key_id: str
    display_name: str
    hint: str
    ends_at: Instant | None


@frozen
class Application:
    """An app registration. Calls use its `object_id`; elsewhere it is known by its `client_id`."""

    object_id: str
    client_id: str
    display_name: str
    unique_name: str
    passwords: tuple[Password, ...]
    certificates: tuple[Password, ...] = ()
    federations: tuple[Password, ...] = ()
    """Set only if they were requested."""
    tags: tuple[str, ...] = ()


@frozen(kw_only=True)
class Description:
    """The properties of a new app registration besides its unique name.

    `is_tagged`: the unique name is one of its tags, by which it can be found if its display name has a prefix.
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
    """A new client secret, whose text Azure shows only once."""

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
    """Return the app registration with this unique name, and create it if it does not exist. Can be repeated.

    Its display name ends with the unique name. If the environment does not support unique names, that is also one of
    its tags. The app registration is then created at most once: raises `ProviderAmbiguous` if that may have happened
    and it is not visible.
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
        with suppress(CloudidError):  # a failed look-up proves nothing
            if (marked := await _marked_application(client, unique_name)) is not None:
                return marked
        raise


async def describe_application(
    client: Client, object_id: str, unique_name: str, description: Description, *, had_reference: bool = False
) -> None:
    """Change the tags, sign-in audience and service management reference of an app registration."""
    body: dict[str, Json] = {
        "tags": description.tags_with(unique_name),
        "signInAudience": description.sign_in_audience,
    }
    if description.service_management_reference or had_reference:
        body["serviceManagementReference"] = description.service_management_reference or None
    await change(client, "PATCH", address(client, "applications", object_id), body)


async def change_audience(client: Client, object_id: str, sign_in_audience: str) -> None:
    """Change who can sign in to an app registration. Do nothing if it does not exist."""
    body = {"signInAudience": sign_in_audience}
    await unless(is_absent, change(client, "PATCH", address(client, "applications", object_id), body), None)


async def application_by_unique_name(client: Client, unique_name: str) -> Application | None:
    """Return the app registration that `ensure_application` created, by either method. `None` if it is not visible."""
    found = await find_by_key(client, "applications", "uniqueName", unique_name, _Application)
    return await _marked_application(client, unique_name) if found is None else _application(found)


async def find_application(client: Client, object_id: str) -> Application | None:
    found = await find_by_id(client, "applications", object_id, _Application)
    return None if found is None else _application(found)


async def applications_by_client_id(client: Client, client_id: str) -> list[Application]:
    """Return the app registrations with this client id: none or one, or more only because of a mistake of Azure."""
    return await _select(client, f"appId eq {literal(client_id)}")


async def marked_applications(client: Client, condition: str, until: Instant) -> Selection[Application]:
    """Return the app registrations that match a condition of `marked_by`, listed until an instant."""
    return await select_until(client, "applications", condition, _Application, until, _application)


def marked_by(prefix: str) -> tuple[str, str]:
    """Return filters for the objects whose display name, or one of whose tags, starts with a marker."""
    return f"startswith(displayName,{literal(prefix)})", f"tags/any(t:startswith(t,{literal(prefix)}))"


async def add_password(
    client: Client, object_id: str, *, display_name: str, starts_at: Instant, ends_at: Instant
) -> NewPassword:
    """Add a client secret. `ProviderAmbiguous`: it may exist, and can only be found by its display name.

    An empty name is not sent: an app registration that cloudid created needs no names to tell its secrets apart.
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
    """Add a client secret like `add_password`, and replace one whose creation got no response.

    The text of a lost secret is unknown, so it is looked up by its name and removed, and another one is added. If the
    first one is not visible, it was probably never created. If it becomes visible later, it is removed together with
    the second one, because both have the same name.

    `ProviderAmbiguous`: no time is left, or the second response was lost too. `ProviderProblem`: Azure refused it.
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
    """Remove all client secrets with a display name, except one key id. Return `False` if there is none."""
    passwords = await _passwords(client, object_id)
    named = [each.key_id for each in passwords if each.display_name == name and each.key_id != but]
    return any([await remove_password(client, object_id, key_id) for key_id in named])


async def remove_password(client: Client, object_id: str, key_id: str) -> bool:
    """Remove a client secret. Return `False` if it, or the app registration, does not exist."""
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
    """Move an app registration, and its service principal, to the deleted items.

    Return `False` if it does not exist.
    """
    return await delete(client, address(client, "applications", object_id))


async def purge(client: Client, object_id: str) -> bool:
    """Delete a deleted item permanently. Return `False` if it is not among the deleted items."""
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
    """Return the app registration that has a marker as one of its tags."""
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
    """Return the credentials that have a key id. The others cannot be removed by it."""
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
