"""Refusals in the words of the terminal: what Python calls ``delta=`` is ``--delta`` here."""

import re
from collections.abc import Callable, Mapping, Sequence

import typer

__all__ = ["in_options", "options_of"]

_VALUE = r"""(?:(?:dp\.)?user\("(?P<unit>[^"]*)"\)|"(?P<text>[^"]*)"|(?P<plain>[\w.+-]*\w))?"""
_BUDGET = re.compile(r"\bBudget\((?P<epsilon>[\d.e+-]+)(?:, (?P<delta>[\d.e+-]+))?\)")
_SHOWN = re.compile(r"(\bBudget\([a-z]+=[^)]*\))")
"""A budget as it is shown, which is no remedy."""
_VERBS = r"(?P<verb>\b(?:pass|choose|raise|round|shorten|write|give) |^)"


def options_of(app: typer.Typer, words: Sequence[str]) -> dict[str, str]:
    """The options of the command that these words call, by the name of the Python parameter they stand for."""
    command = typer.main.get_command(app)
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is None:
            break
        command = inner
    return {str(param.name): option for param in command.params for option in param.opts if option.startswith("--")}


def in_options(text: str, options: Mapping[str, str]) -> str:
    """A sentence of a refusal in which the parameters that are ``options`` here are called so. Others stay.

    >>> known = {"epsilon": "--epsilon", "delta": "--delta", "bounds": "--bounds"}
    >>> in_options('pass delta=, or bounds="find"; ask with delta=1e-7: keys=None finds them.', known)
    'pass --delta, or --bounds find; ask with --delta 1e-7: keys=None finds them.'
    >>> in_options("did you mean Budget(0.9, 1e-06)?", known), in_options("pass epsilon > 0.", known)
    ('did you mean --epsilon 0.9 --delta 1e-06?', 'pass --epsilon > 0.')
    """
    if not options:
        return text
    names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))

    def named(found: re.Match[str]) -> str:
        return f"{found['verb']}{options[found['name']]}"

    def translated(part: str) -> str:
        if "epsilon" in options and "delta" in options:
            part = _BUDGET.sub(_spent(options), part)
        part = re.sub(rf"\b(?P<name>{names})={_VALUE}", _given(options), part)
        part = re.sub(rf"{_VERBS}(?P<name>{names})\b(?= )", named, part)
        return re.sub(rf"(?P<verb>)(?<![\w-])(?P<name>{names})\b(?= [<>])", named, part)

    parts = _SHOWN.split(text)
    return "".join(part if i % 2 else translated(part) for i, part in enumerate(parts))


def _spent(options: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def written(found: re.Match[str]) -> str:
        delta = f" {options['delta']} {found['delta']}" if found["delta"] else ""
        return f"{options['epsilon']} {found['epsilon']}{delta}"

    return written


def _given(options: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def written(found: re.Match[str]) -> str:
        value = next((found[kind] for kind in ("unit", "text", "plain") if found[kind] is not None), "")
        return options[found["name"]] if value in {"", "True"} else f"{options[found['name']]} {value}"

    return written
