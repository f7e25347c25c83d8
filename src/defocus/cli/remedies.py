"""Refusals in the words of the terminal: what Python calls ``delta=`` is ``--delta`` here."""

import re
from collections.abc import Callable, Mapping, Sequence

import typer

__all__ = ["in_options", "notes_in_options", "options_of"]

_VALUE = (
    r"""(?:(?:dp\.)?user\("(?P<unit>[^"]*)"\)|"(?P<text>[^"]*)"|\((?P<pair>[\d.]+, [\d.]+)\)|(?P<plain>[\w.+-]*\w))?"""
)
_BUDGET = re.compile(r"\bBudget\((?P<epsilon>[\d.e+-]+)(?:, (?P<delta>[\d.e+-]+))?\)")
_TOTAL, _PRICE = ("budget", "budget_delta"), ("epsilon", "delta")
_SHOWN = re.compile(r"(\bBudget\([a-z]+=[^)]*\))")
"""A budget as it is shown, which is no remedy."""
_UNIT = re.compile(r"\bunit=dp\.(?P<kind>edge|node|weight|event)\((?:(?:max_degree|bound)=(?P<bound>[^()]*))?\)")
_SETTINGS = "cap|side|at_most|typical|damping|top|every|start|end"
_SETTING = re.compile(rf"""(?<![\w-])(?<!--set )(?P<name>{_SETTINGS})=(?:"(?P<text>[^"]*)"|(?P<plain>…|[\w.+-]*\w)?)""")
_QUESTION = re.compile(rf"\b(?P<name>[a-z_]+)\((?P<setting>(?:{_SETTINGS})=[^()]*)?\)")
_LISTS = {
    'nodes="as listed"': "--nodes as-listed",
    "nodes=[…]": "--nodes and a file with one name per line",
    "nodes=…": "--nodes …",
    "a list of their names": "a file with one name per line",
    "a list of names": "a file with one name per line",
    "the list of all nodes when the graph is opened: nodes=[…]": "--nodes and a file of all nodes, one per line",
    "pass the list of all nodes": "pass --nodes and a file of all nodes, one per line",
    'ends=("from_id", "to_id")': "--ends from_id,to_id",
    "header=False": "--no-header",
    "header=True": "--header",
    "with directed=False": "without --directed",
    "without directed=True": "without --directed",
}
"""What is a list in Python is a file here, or words with a comma."""
_METHOD = re.compile(r'\bmethod=(?P<name>"[^"]*")(?= gives one)')
_VERBS = r"(?P<verb>\b(?:pass|choose|raise|round|shorten|write|give) |^)"
_ORDERED = r"(?! (?:them|it|two|each|every|the|one|a|an|at|columns?|nodes?|both)\b)"
"""What follows a word that tells somebody to do it, such as *name them*, and no parameter of that name."""


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
    >>> in_options("pass bounds=(0, 100).", known)
    'pass --bounds 0 100.'
    >>> in_options('name them: ends=("a", "b")', {"name": "--name"})
    'name them: ends=("a", "b")'
    >>> in_options("did you mean Budget(0.9, 1e-06)?", known), in_options("pass epsilon > 0.", known)
    ('did you mean --epsilon 0.9 --delta 1e-06?', 'pass --epsilon > 0.')
    """
    if not options:
        return text
    if "settings" in options and "nodes" in options:
        text = _of_graphs(text)
    names = "|".join(sorted(map(re.escape, options), key=len, reverse=True))

    def named(found: re.Match[str]) -> str:
        return f"{found['verb']}{options[found['name']]}"

    def translated(part: str) -> str:
        epsilon, delta = (options.get(name) for name in (_TOTAL if "budget" in options else _PRICE))
        if epsilon and delta:
            part = _BUDGET.sub(_spent(epsilon, delta), part)
        part = re.sub(rf"\b(?P<name>{names})={_VALUE}", _given(options), part)
        part = re.sub(rf"{_VERBS}(?P<name>{names})\b(?= ){_ORDERED}", named, part)
        return re.sub(rf"(?P<verb>)(?<![\w-])(?P<name>{names})\b(?= [<>])", named, part)

    parts = _SHOWN.split(text)
    return "".join(part if i % 2 else translated(part) for i, part in enumerate(parts))


def notes_in_options(text: str) -> str:
    """A line of an answer about a graph in which a method that it names is named as the option.

    >>> notes_in_options('no interval; method="ramp, measured" gives one')
    'no interval; --method "ramp, measured" gives one'
    """
    return _METHOD.sub(r"--method \g<name>", text)


def _of_graphs(text: str) -> str:
    """Units, lists of nodes, questions and their settings, as ``defocus graph`` takes them."""

    def unit(found: re.Match[str]) -> str:
        return f"--unit {found['kind']}" + (f" --bound {found['bound']}" if found["bound"] else "")

    def question(found: re.Match[str]) -> str:
        return found["name"].replace("_", "-") + (f" {found['setting']}" if found["setting"] else "")

    def setting(found: re.Match[str]) -> str:
        value = found["text"] or found["plain"]
        return f"--set {found['name']}" + (f"={value}" if value else "")

    text = _UNIT.sub(unit, text)
    for python in sorted(_LISTS, key=len, reverse=True):
        text = text.replace(python, _LISTS[python])
    return _SETTING.sub(setting, _QUESTION.sub(question, text))


def _spent(epsilon: str, delta: str) -> Callable[[re.Match[str]], str]:
    def written(found: re.Match[str]) -> str:
        return f"{epsilon} {found['epsilon']}" + (f" {delta} {found['delta']}" if found["delta"] else "")

    return written


def _given(options: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def written(found: re.Match[str]) -> str:
        if found["pair"] is not None:
            return f"{options[found['name']]} {found['pair'].replace(',', '')}"
        value = next((found[kind] for kind in ("unit", "text", "plain") if found[kind] is not None), "")
        shown = f'"{value}"' if " " in value else value
        return options[found["name"]] if value in {"", "True"} else f"{options[found['name']]} {shown}"

    return written
