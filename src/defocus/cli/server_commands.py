"""The commands of a server: start it, back it up, put a backup back."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["commands"]


commands = typer.Typer()

Home = Annotated[Path, typer.Option(help="The folder of the server: records, key, uploads and ledgers.")]
HOME = Path("server")
Records = Annotated[
    str | None, typer.Option(help="A PostgreSQL address for its records, shared by several processes; else a file.")
]
Ledgers = Annotated[str | None, typer.Option(help="A PostgreSQL address for ledgers; else files in its folder.")]


@commands.command(epilog="Example: defocus serve --demo")
def serve(
    *,
    home: Home = HOME,
    host: Annotated[str, typer.Option(help="On which address to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="On which port.", min=1, max=65535)] = 8042,
    address: Annotated[
        str | None, typer.Option(help="How people reach it, such as https://privacy.example; for links and cookies.")
    ] = None,
    records: Records = None,
    ledgers: Ledgers = None,
    source: Annotated[
        list[str] | None,
        typer.Option(help="A folder or database that declared data sets may name; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(help="How many releases are computed at once.", min=1, max=64)] = 2,
    oidc: Annotated[
        list[str] | None,
        typer.Option(help="Sign-in elsewhere: issuer=…, client_id=…; the secret is in DEFOCUS_OIDC_SECRET."),
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", metavar="", help="With a made-up hospital and its people.")] = False,
) -> None:
    """Start the server on which stewards, officers and analysts share one ledger."""
    given = dict(locals())
    from defocus.cli import server  # noqa: PLC0415 # a command loads what it needs

    server.serve(**given)


@commands.command(epilog="Example: defocus backup server-2026-11-18.tar --home server")
def backup(
    out: Annotated[Path, typer.Argument(help="The file to write.")], *, home: Home = HOME, records: Records = None
) -> None:
    """Copy records, key, declared data sets and ledgers of a server to one file, while it runs."""
    from defocus.cli import server  # noqa: PLC0415 # a command loads what it needs

    server.backup(out, home=home, records=records)


@commands.command(epilog="Example: defocus restore server-2026-11-18.tar --home server")
def restore(
    file: Annotated[Path, typer.Argument(help="What defocus backup wrote.")],
    *,
    home: Home = HOME,
    accept_loss: Annotated[
        bool,
        typer.Option("--accept-loss", metavar="", help="Also where charges were made since, which would be forgotten."),
    ] = False,
) -> None:
    """Put a backup back. Refused where ledgers have charges that the backup does not have."""
    from defocus.cli import server  # noqa: PLC0415 # a command loads what it needs

    server.restore(file, home=home, accept_loss=accept_loss)
