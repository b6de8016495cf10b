"""`python -m cloudid_servers.provider_simulator [--listen HOST:PORT] [--seed N] [--tls]`: serve a simulated cloud."""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .server import start
from .simulator import Simulator

STOP_SIGNALS: Final = {signal.SIGINT, signal.SIGTERM}


def main() -> int:
    options = _parser().parse_args()
    host, port = options.listen
    if not (options.allow_remote or _is_loopback(host)):
        print(
            f"Other machines can reach {host}, and the simulator requires no sign-in. To allow that: --allow-remote",
            file=sys.stderr,
        )
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # before any thread starts: they inherit it
    with ExitStack() as opened:
        certificate = Path(opened.enter_context(TemporaryDirectory()), "certificate.pem") if options.tls else None
        try:
            running = opened.enter_context(start(Simulator(options.seed), host, port, certificate))
        except OSError as error:
            print(f"cannot listen on {host}:{port}: {error.strerror}", file=sys.stderr)
            return 1
        if certificate:
            print(f"certificate: {certificate}")
        print(f"listening on {running.url}", flush=True)
        signal.sigwait(STOP_SIGNALS)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m cloudid_servers.provider_simulator", description="A simulated cloud."
    )
    parser.add_argument(
        "--listen",
        type=_address,
        default=("127.0.0.1", 8400),
        metavar="HOST:PORT",
        help="default: 127.0.0.1:8400; port 0: any free port",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the same seed makes the same cloud")
    parser.add_argument(
        "--tls", action="store_true", help="serve over TLS with a new certificate, whose path is printed"
    )
    parser.add_argument(
        "--allow-remote", action="store_true", help="listen on an address that other machines can reach"
    )
    return parser


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


if __name__ == "__main__":
    sys.exit(main())
