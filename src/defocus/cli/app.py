"""The command as a whole: its groups of commands, how it is run, and how refusals are told."""

import io
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from defocus.cli import audit_commands, data_commands, federation_commands, privacy_commands, server_commands
from defocus.errors import DefocusError, ExpressionError, InvalidParameterError

__all__ = ["app", "main", "options_of"]

app = typer.Typer(
    name="defocus",
    help="Differential privacy on one ledger: ask tables, train models, account, calibrate, audit, and read ledgers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 refused or a violation found, 2 the command was not understood.",
)

for group in (data_commands, privacy_commands, audit_commands, server_commands, federation_commands):
    app.add_typer(group.commands)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; a refusal is told in words, without a traceback."""
    if arguments is None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal without Greek still gets its answer
        arguments = sys.argv[1:]
    try:
        _command()(list(arguments), prog_name="defocus")
    except DefocusError as error:
        from defocus.cli.terminal import tell  # noqa: PLC0415 # rich is loaded only by who needs it

        tell(error, options_of(arguments))
        return 2 if isinstance(error, ExpressionError | InvalidParameterError) else 1
    except OSError as error:
        from defocus.cli.terminal import tell  # noqa: PLC0415 # rich is loaded only by who needs it

        place = "" if error.filename is None else f" to use {str(error.filename)[:200]!r}"
        why = error.strerror or type(error).__name__
        tell(DefocusError(f"The system refused{place}: {why}.", fix="check that it is there, and that you may use it."))
        return 1
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    return 0


@cache
def _command() -> Any:
    """All commands with their options, read from the functions once."""
    return typer.main.get_command(app)


def options_of(words: Sequence[str]) -> dict[str, str]:
    """The options of the command that these words call, by the name of the Python parameter they stand for.

    One that turns a parameter off is called ``no_`` and its name.
    """
    command = _command()
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    on = {str(param.name): option for param in command.params for option in param.opts if option.startswith("--")}
    return on | {f"no_{param.name}": option for param in command.params for option in param.secondary_opts}


@app.callback(invoke_without_command=True)
def _start(
    version: Annotated[bool, typer.Option("--version", metavar="", help="Print the version and leave.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415 # slow to load

        typer.echo(f"defocus {installed('defocus')}")
        raise typer.Exit
