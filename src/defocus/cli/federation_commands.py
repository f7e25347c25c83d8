"""The commands of a federation: of the sites, and of the coordinator who asks them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from defocus.cli.options import Json, asked, paid, shown, taking, written

__all__ = ["commands"]

commands = typer.Typer()
site = typer.Typer(help="Take part in a federation, beside your own data.", no_args_is_help=True)
federation = typer.Typer(help="Ask several owners at once; none of them shows a row.", no_args_is_help=True)
commands.add_typer(site, name="site")
commands.add_typer(federation, name="federation")

Folder = Annotated[Path, typer.Option(help="Where the files are written.")]
HERE = Path()
Members = Annotated[Path, typer.Option("--federation", "-f", help="The federation file.")]
FEDERATION = Path("federation.toml")
Key = Annotated[Path | None, typer.Option(help="The coordinator's key; coordinator.key beside the file by default.")]

Without = Annotated[
    list[str] | None,
    typer.Option(help="A site that is not asked, as one that dropped out; may be repeated."),
]


@site.command("init", epilog="Example: defocus site init north")
def site_init(
    name: Annotated[str, typer.Argument(help="What the others call this site.")], *, folder: Folder = HERE
) -> None:
    """Make a key, a certificate of it for the others, and a draft of the site's file."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.make_site(name, folder)


@site.command("serve", epilog="Example: defocus site serve --config site.toml")
def site_serve(
    *,
    config: Annotated[Path, typer.Option(help="The file of the site.")] = Path("site.toml"),
) -> None:
    """Answer what the coordinator asks, within this site's own policy and budget, until it is stopped."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.serve(config)


@federation.command("init", epilog="Example: defocus federation init north=10.0.0.1:8443 south=10.0.0.2:8443")
def federation_init(
    sites: Annotated[list[str], typer.Argument(metavar="NAME=HOST:PORT", help="Each site, and where it listens.")],
    *,
    dropouts: Annotated[int, typer.Option(help="How many sites may be gone without voiding an answer.", min=0)] = 0,
    colluding: Annotated[int, typer.Option(help="How many may tell the coordinator what they know.", min=0)] = 0,
    overlap: Annotated[int, typer.Option(help="At how many sites one person may be known.", min=1)] = 1,
    folder: Folder = HERE,
) -> None:
    """Make the coordinator's key, and write the federation file, which all members get."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.make_federation(sites, folder, dropouts=dropouts, colluding=colluding, overlap=overlap)


def _coordinator(*, members: Members = FEDERATION, key: Key = None, without: Without = None) -> None:
    """The options of whoever asks."""


@federation.command("preview", epilog='Example: defocus federation preview "SELECT COUNT(*) FROM visits" --epsilon 1')
@taking(asked, _coordinator, shown)
def federation_preview(**given: Any) -> None:
    """Show what a question would cost each site and how exact its answer would be. Free."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.preview(**given)


@federation.command("ask", epilog='Example: defocus federation ask "SELECT COUNT(*) FROM visits" --epsilon 1')
@taking(asked, _coordinator, paid, written, shown)
def federation_ask(**given: Any) -> None:
    """Release one answer of all sites; each that takes part charges its own ledger."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.ask(**given)


@federation.command("budget", epilog="Example: defocus federation budget")
def federation_budget(*, members: Members = FEDERATION, key: Key = None, as_json: Json = False) -> None:
    """Show which sites are there, and what each has left."""
    from defocus.cli import federation as work  # noqa: PLC0415 # a command loads what it needs

    work.budget(members, key, as_json=as_json)
