"""``defocus serve``, ``backup`` and ``restore``."""

import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from defocus.cli.terminal import console, plain
from defocus.errors import InvalidParameterError, MissingExtraError

__all__ = ["backup", "restore", "serve"]

_TURN = 0.0005
"""Seconds for which one thread may keep the others waiting. A preview waits for its turn after each answer of a
database, and Python's own 5 ms, several times over, would be most of what it takes beside a release that computes."""


def serve(
    *,
    host: str,
    port: int,
    address: str | None,
    source: list[str] | None,
    oidc: list[str] | None,
    demo: bool,
    **more: Any,
) -> None:
    """Start the server, print how to reach it and the links that are needed, and serve until it is stopped."""
    for package, name in (("fastapi", "fastapi"), ("uvicorn", "uvicorn"), ("argon2", "argon2-cffi")):
        if find_spec(package) is None:
            raise MissingExtraError("The server", package=name, extra="server")
    import uvicorn  # noqa: PLC0415 # slow to load

    from defocus.server.app import create_app, log_to_stderr  # noqa: PLC0415 # slow to load
    from defocus.server.demo import demo as made_up  # noqa: PLC0415 # slow to load
    from defocus.server.operations import Settings  # noqa: PLC0415 # slow to load

    reached = (address or f"http://{host}:{port}").rstrip("/")
    settings = Settings(**more, address=reached, sources=tuple(source or ()), oidc=_pairs(oidc or []) | _secret())
    _check_port(host, port)
    log_to_stderr()
    app = create_app(settings)
    screen = console()
    screen.print(f"Defocus is at {plain(reached)}", soft_wrap=True)
    if demo:
        for name, role, link in made_up(app.state.desk):
            screen.print(plain(f"  {role}: {name} signs in once with {link}"), soft_wrap=True)
        roles = "The analyst asks, the officer approves, the auditor checks, the steward decides about data."
        screen.print(roles, soft_wrap=True)
    else:
        link = app.state.desk.people.first_link()
        if link is not None:
            screen.print(plain(f"The owner signs in once with {reached}/invitation/{link}"), soft_wrap=True)
    sys.setswitchinterval(_TURN)
    uvicorn.run(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=30,
        limit_concurrency=1000,
    )


def backup(out: Path, *, home: Path, records: str | None) -> None:
    """Write a backup."""
    from defocus.server import operations  # noqa: PLC0415 # slow to load

    made = operations.backup(operations.Settings(home=home, records=records), out)
    console().print(plain(f"written: {out}, with {len(made)} files"), soft_wrap=True)


def restore(file: Path, *, home: Path, accept_loss: bool) -> None:
    """Put a backup back."""
    from defocus.server import operations  # noqa: PLC0415 # slow to load

    for line in operations.restore(operations.Settings(home=home), file, accept_loss=accept_loss):
        console().print(plain(line), soft_wrap=True)


def _check_port(host: str, port: int) -> None:
    """Refuse a port that cannot be listened on before anything is made, and before links to it are printed."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise InvalidParameterError(
            f"The server cannot listen on port {port} of {host:.60}: {why}.",
            fix="choose another --port, or stop what listens there.",
        ) from None


def _pairs(said: list[str]) -> dict[str, str]:
    known = ("issuer", "client_id")
    pairs = dict(one.partition("=")[::2] for one in said)
    if set(pairs) - set(known) or (pairs and set(pairs) != set(known)):
        raise InvalidParameterError(
            "Sign-in elsewhere needs an issuer and a client_id.", fix="pass --oidc issuer=https://… --oidc client_id=…."
        )
    return pairs


def _secret() -> dict[str, str]:
    secret = os.environ.get("DEFOCUS_OIDC_SECRET")
    return {} if secret is None else {"client_secret": secret}
