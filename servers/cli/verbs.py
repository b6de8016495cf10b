"""`cloudid read`, `write`, `list`, `delete` and `patch`: one request to any path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, Final
from urllib.parse import parse_qsl

import click
from attrs import evolve

from cloudid_core.messages import Operation

from ..client import Address, Service, ServiceRefused
from ..paths import fields_at, is_secret, mount_of, route_at
from ..terminal import Failed, Format, Output, printable, with_output
from .completion import complete_field, complete_path
from .connection import service_of, service_with_token, tell, told, with_address
from .words import read_words

Request = Callable[[Service, str, dict[str, Any]], dict[str, Any]]
ENVELOPE: Final = frozenset(
    {"request_id", "lease_id", "lease_duration", "renewable", "warnings", "wrap_info", "auth", "data", "mount_type"}
)
"""The members of an answer that stand beside what was asked for."""
OF_VAULT: Final = {"token": "client_token", "token_accessor": "accessor", "token_duration": "lease_duration"}
"""What the command `vault` calls the members of a login or a new token, and their names in the answer."""
LEASE: Final = ("lease_id", "lease_duration", "renewable")


def with_strict(command: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--strict", is_flag=True, help="Refuse the request if the path does not have a field that you name."
    )(command)


def with_path(operation: Operation) -> Callable[[Request], Callable[..., None]]:
    """Makes a command of a request to one path: its arguments, its help, and how its answer is shown."""

    def decorate(request: Request) -> Callable[..., None]:
        @click.argument("path", shell_complete=partial(complete_path, operation))
        @click.argument("words", metavar="[NAME=VALUE]...", nargs=-1, shell_complete=partial(complete_field, operation))
        @click.option("--field", default="", metavar="NAME", help="Print only this value of the answer.")
        @click.option(
            "--wrap-ttl",
            default="",
            metavar="DURATION",
            help="Wrap the response: print a single-use token that returns it.",
        )
        @click.option("--help-path", is_flag=True, help="Show the operations and fields of the path.")
        @with_address
        @with_output()
        @wraps(request)
        def decorated(
            path: str,
            words: tuple[str, ...],
            field: str,
            wrap_ttl: str,
            help_path: bool,
            address: Address,
            output: Output,
            strict: bool = False,
        ) -> None:
            path, _, query = path.partition("?")
            path = path.strip("/").removeprefix("v1/")
            given = dict(parse_qsl(query, keep_blank_values=True))
            if help_path or given.pop("help", ""):
                with told():
                    answer = service_of(address).read(path, help="1")
                if output.is_json_requested:
                    output.record(answer)
                else:
                    click.echo(printable(str(answer.get("help") or "")))
                return
            fields, shown = read_words(words)
            if strict and (unknown := _unknown(path, operation, given | fields)):
                raise Failed(printable(f"nothing was written: the path has no field {', '.join(unknown)}"))
            for name, known in sorted(fields_at(path, operation).items()):
                if name in shown and is_secret(
                    known
                ):  # it is visible in the list of processes and in the shell's history
                    tell(
                        f"warning: {name} is a secret, and other users can see the command line: use {name}=- "
                        f"or {name}=@FILE"
                    )
            route = route_at(path, operation)
            service = service_of(address) if route is not None and route.public else service_with_token(address)
            with told(mount=mount_of(path), path=path):
                answer = _asked(request, evolve(service, wrap_ttl=wrap_ttl), path, given | fields)
            _show(answer, field, output, is_list=operation is Operation.LIST)

        return decorated

    return decorate


@click.command("read")
@with_path(Operation.READ)
def read(service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Read a path.

    Fields are sent in the query string. On a terminal, the command shows the data of the response; in a pipe, it prints
    the whole response as JSON.
    """
    return service.ask("GET", path, query=fields)


@click.command("list")
@with_path(Operation.LIST)
def list_(service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    """List the names below a path.

    To list only some of them, use after=NAME and limit=NUMBER. In a pipe, the command prints one name per line; with
    --json, the whole response.
    """
    return service.ask("GET", path, query={**fields, "list": "true"})


@click.command("write")
@with_strict
@with_path(Operation.WRITE)
def write(service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    r"""Write fields to a path.

    NAME=@FILE reads a value from a file, and NAME=- from standard input; a newline at the end is removed. Use one of
    them for secrets, because other users of the machine can see command lines. To write a list, repeat the name. For a
    value that begins with @, write NAME=\@VALUE.

    To send all fields as one JSON object, write @FILE or - instead of fields.
    """
    return service.write(path, fields)


@click.command("patch")
@with_path(Operation.WRITE)
def patch(service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Change some fields of an existing object.

    Fields that you do not name keep their values. Unlike write, the command never creates an object. The token needs
    read and update at the path. The exit code is 1 if there is no object, or if it has none of the fields.
    """
    if fields and len(_unknown(path, Operation.WRITE, fields)) == len(fields):
        raise Failed(printable(f"nothing was changed: the path has no field {', '.join(sorted(fields))}"))
    evolve(service, wrap_ttl="").read(path)
    return service.write(path, fields)


@click.command("delete")
@with_path(Operation.DELETE)
def delete(service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Delete a path.

    Fields are sent in the query string.
    """
    return service.ask("DELETE", path, query=fields)


def _unknown(path: str, operation: Operation, fields: Mapping[str, Any]) -> list[str]:
    """The names of fields that the service would ignore; none where the tables do not know the path or its fields."""
    route = route_at(path, operation)
    if route is None or route.takes_anything:
        return []
    return sorted(fields.keys() - fields_at(path, operation).keys())


def _asked(request: Request, service: Service, path: str, fields: dict[str, Any]) -> dict[str, Any]:
    try:
        return request(service, path, fields)
    except ServiceRefused as refusal:
        if refusal.status == 404 and not refusal.errors:
            raise Failed(printable(f"nothing is at {path}")) from None
        raise


def _show(answer: Mapping[str, Any], field: str, output: Output, *, is_list: bool) -> None:
    for warning in answer.get("warnings") or ():
        tell(f"warning: {warning}")
    if field:
        value = _value(answer, field)
        click.echo(json.dumps(value, ensure_ascii=False) if output.is_json_requested else _raw(value))
    elif is_list and output.is_for_lines:
        click.echo(printable("\n".join(map(str, (answer.get("data") or {}).get("keys") or ()))))
    elif not answer:
        output.note("done")
    elif output.format is Format.JSON:
        output.record(answer)
    else:
        _show_to_person(answer, output)


def _raw(value: object) -> str:
    """A text as it is, names one per line, and anything else as JSON."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "\n".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _value(answer: Mapping[str, Any], field: str) -> object:
    """The value of one member."""
    for part in (answer.get("data"), answer.get("auth"), answer.get("wrap_info"), answer):
        if isinstance(part, Mapping) and part.get(field) is not None:
            return part[field]
    known = (answer.get("auth") or {}).get(OF_VAULT.get(field, ""))
    if known is not None:
        return known
    raise Failed(printable(f"the response has no {field}"))


def _show_to_person(answer: Mapping[str, Any], output: Output) -> None:
    part = answer.get("wrap_info") or answer.get("auth") or answer.get("data")
    members = dict(part) if part else {name: value for name, value in answer.items() if name not in ENVELOPE}
    keys, info = members.get("keys"), members.get("key_info")
    if isinstance(keys, list) and info:
        columns = dict.fromkeys(name for about in info.values() for name in about)
        output.rows([{"key": key, **info.get(key, {})} for key in keys], ("key", *columns))
    elif isinstance(keys, list):
        click.echo(printable("\n".join(map(str, keys))))
    else:
        if answer.get("lease_id"):
            members |= {name: answer[name] for name in LEASE if name in answer}
        if members:
            output.record(members)
        else:
            output.note("done" if answer.get("data") is None else "nothing found")
