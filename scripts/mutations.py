"""Break lines at random, and see whether the tests of their room notice: ``python scripts/mutations.py noise ledger``.

In each room ``--lines`` lines are chosen. Each is broken in one simple way in a copy of the project, and the tests of
the room run until one fails: first those of the module, then those that import from it, then all that are not slow.
A mutant is killed by a test that fails or does not end. One that survives is printed: it is equivalent, or the tests
have a hole. The same seed breaks the same lines of the same source. Run it where the suite passes.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/defocus")

COMPARED = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARED |= {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
SWAPPED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
SWAPPED |= {ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One expression of one file, and what it becomes."""

    path: Path
    node: ast.expr
    to: str

    @property
    def line(self) -> int:
        """The line on which it begins."""
        return self.node.lineno

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {ast.unparse(self.node)} -> {self.to}"

    def text(self, source: bytes) -> bytes:
        """The source with this expression broken."""
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        begin = starts[self.node.lineno - 1] + self.node.col_offset
        end = starts[(self.node.end_lineno or 0) - 1] + (self.node.end_col_offset or 0)
        return source[:begin] + f"({self.to})".encode() + source[end:]


def code(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that compute something: no decorators, annotations, imports, texts, nor what is raised."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert) or _worded(
                child
            ):
                continue
            if isinstance(child, ast.AST):
                if isinstance(child, ast.expr):
                    yield child
                yield from code(child)


def broken(node: ast.expr) -> Iterator[str]:
    """Every simple way to break an expression, as text."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
            yield ast.unparse(ast.Compare(left, [COMPARED[type(op)]()], [right]))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPPED and not _texts(left, right):
            yield ast.unparse(ast.BinOp(left, SWAPPED[type(op)](), right))
        case ast.BoolOp(op=op, values=values):
            yield ast.unparse(ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield ast.unparse(operand)
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield from (repr(other) for other in (value + 1, value - 1) if other != value)
        case ast.Call(func=func, args=args, keywords=[*keywords, _]):
            yield ast.unparse(ast.Call(func, args, keywords))
        case ast.Call(func=func, args=[*args, _], keywords=[]) if args and ast.unparse(func) != "isinstance":
            yield ast.unparse(ast.Call(func, args, []))


def _texts(*nodes: ast.expr) -> bool:
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str)) for n in nodes
    )


def _worded(node: object) -> bool:
    """Whether this makes an error: words are no behaviour that breaks in a simple way."""
    return (
        isinstance(node, ast.Call)
        and re.search(r"Error|refus|warn|super\(\).__init__", ast.unparse(node.func)) is not None
    )


def mutants(path: Path) -> list[Mutant]:
    """All ways to break a file."""
    tree = ast.parse((ROOT / path).read_bytes())
    found = [Mutant(path, node, to) for node in code(tree) for to in broken(node)]
    returned = [n.value for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value]
    return found + [Mutant(path, value, "None") for value in returned if ast.unparse(value) != "None"]


def choose(room: str, lines: int, seed: int) -> list[Mutant]:
    """One way to break each of so many lines of a room, every line that computes as likely as any other."""
    by_line: dict[tuple[Path, int], list[Mutant]] = {}
    for path in sorted((ROOT / PACKAGE / room).rglob("*.py")):
        for mutant in mutants(path.relative_to(ROOT)):
            by_line.setdefault((mutant.path, mutant.line), []).append(mutant)
    draw = random.Random(f"{seed} {room}")  # noqa: S311  # which lines are tried is no secret
    return [draw.choice(by_line[place]) for place in draw.sample(sorted(by_line), min(lines, len(by_line)))]


def stages(mutant: Mutant, copy: Path, *, near: bool) -> Iterator[list[str]]:
    """Which tests to run, those that are likely to fail first; the ``near`` ones know the module."""
    within = mutant.path.relative_to(PACKAGE)
    folder, name = Path("tests") / within.parent, within.stem if within.stem != "__init__" else within.parent.name
    own = sorted(str(p.relative_to(copy)) for p in (copy / folder).glob(f"test_{name}*.py"))
    own += sorted(
        str(p.relative_to(copy)) for p in (copy / folder.parent).glob(f"test_{name}*.py") if within.stem == "__init__"
    )
    yield [*own, str(mutant.path)]
    module = ".".join(within.with_suffix("").parts).removesuffix(".__init__")
    room = sorted((copy / "tests" / within.parts[0]).rglob("test_*.py"))
    naming = [str(p.relative_to(copy)) for p in room if f"defocus.{module} import" in p.read_text("utf-8")]
    yield [p for p in naming if p not in own]
    if not near:
        yield [str(Path("tests") / within.parts[0]), str(PACKAGE / within.parts[0])]


def survives(mutant: Mutant, copy: Path, limit: int, *, near: bool) -> bool:
    """Whether no test of its room fails; one that does not end within the limit notices, too."""
    place, source = copy / mutant.path, (ROOT / mutant.path).read_bytes()
    place.write_bytes(mutant.text(source))
    try:
        return not any(_fails(tests, copy, limit) for tests in stages(mutant, copy, near=near) if tests)
    finally:
        place.write_bytes(source)


def _fails(tests: list[str], copy: Path, limit: int) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=limit, check=False)  # noqa: S603  # our own tests
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in {0, 5}  # 5: there are none


def main() -> None:
    """Print, for each room, how many mutants were killed, and those that were not."""
    rooms = sorted(p.name for p in (ROOT / PACKAGE).iterdir() if (p / "__init__.py").exists())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", default=rooms, metavar="room", help="all by default")
    parser.add_argument("--lines", type=int, default=10, help="how many lines of each room to break")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--limit", type=int, default=600, help="seconds after which tests are ended, and count as failed"
    )
    parser.add_argument("--near", action="store_true", help="run no tests but those of the module and its importers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        copy = Path(home) / "project"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "site", "__pycache__", "results"))
        for room in given.rooms:
            tried = choose(room, given.lines, given.seed)
            alive = [mutant for mutant in tried if survives(mutant, copy, given.limit, near=given.near)]
            print(f"| {room} | {len(tried) - len(alive)} of {len(tried)} |", *alive, sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
