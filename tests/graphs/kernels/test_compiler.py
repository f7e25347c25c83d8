"""Compiling when it is needed, and only then."""

import builtins
import subprocess
import sys

import pytest

from defocus.errors import MissingExtraError
from defocus.graphs.kernels import compiled, compiler, in_pieces


def test_the_room_opens_without_compiling() -> None:
    code = "import sys, defocus.graphs, defocus.graphs.kernels.triangles; print('numba' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert found.stdout.strip() == "False"


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(compiler, "import_module", missing)

    @compiled
    def twice(x: int) -> int:
        return 2 * x

    with pytest.raises(MissingExtraError, match="numba") as caught:
        twice(3)
    assert "defocus[graph]" in caught.value.fix
    assert twice.__name__ == "twice"
    with pytest.raises(MissingExtraError, match="numba"):
        compiler.ready()


@pytest.mark.parametrize("cores", [1, 3])
def test_pieces_come_back_in_order(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(compiler, "cores", lambda: cores)
    assert in_pieces(lambda piece: piece * piece, 5) == [0, 1, 4, 9, 16]


def test_what_fails_in_a_piece_fails_outside() -> None:
    with pytest.raises(ZeroDivisionError):
        in_pieces(lambda piece: builtins.divmod(1, piece), 2)
