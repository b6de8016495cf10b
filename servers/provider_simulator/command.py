"""The command: `python -m cloudid_servers.provider_simulator` and `cloudid simulate`."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from ..machine.loopback import is_loopback
from .server import start
from .simulator import Simulator

STOP_SIGNALS: Final = {signal.SIGINT, signal.SIGTERM}


def _address(ctx: click.Context, option: click.Parameter, text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


@click.command()
@click.option(
    "--listen",
    callback=_address,
    default="127.0.0.1:8400",
    metavar="HOST:PORT",
    help="The address to listen on. Port 0 chooses a free port. Default: 127.0.0.1:8400.",
)
@click.option("--seed", type=int, default=0, metavar="N", help="The same seed always creates the same tenant.")
@click.option("--tls", is_flag=True, help="Use TLS with a new certificate, and print the path of the certificate.")
@click.option("--allow-remote", is_flag=True, help="Allow an address that other machines can reach.")
def simulate(listen: tuple[str, int], seed: int, tls: bool, allow_remote: bool) -> None:
    """Start a simulated Azure.

    It answers like Microsoft Entra ID, Microsoft Graph, Azure Resource Manager and the metadata service, until a signal
    stops it.
    """
    host, port = listen
    if not (allow_remote or is_loopback(host)):
        raise click.UsageError(
            f"Other machines can reach {host}, and the simulator requires no sign-in. To allow this, use --allow-remote"
        )
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # before any thread starts: they inherit it
    with ExitStack() as opened:
        certificate = Path(opened.enter_context(TemporaryDirectory()), "certificate.pem") if tls else None
        try:
            running = opened.enter_context(start(Simulator(seed), host, port, certificate))
        except OSError as error:
            raise click.ClickException(f"cannot listen on {host}:{port}: {error.strerror}") from None
        if certificate:
            click.echo(f"certificate: {certificate}")
        click.echo(f"listening on {running.url}")
        signal.sigwait(STOP_SIGNALS)
