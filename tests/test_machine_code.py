"""Loops as machine code, and what is said where they cannot be compiled."""

import pytest

from defocus import machine_code
from defocus.errors import MissingExtraError
from defocus.machine_code import compiled, compiler


@compiled
def twice(x: int) -> int:
    """Twice as much."""
    return 2 * x


@pytest.mark.slow
def test_a_loop_is_compiled_when_it_is_called() -> None:
    assert twice(3) == 6
    assert twice.__name__ == "twice"
    assert twice.__doc__ == "Twice as much."


def test_without_numba_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(machine_code, "import_module", missing)

    @compiled
    def thrice(x: int) -> int:
        return 3 * x

    with pytest.raises(MissingExtraError, match="numba") as caught:
        thrice(3)
    assert "defocus[graph]" in caught.value.fix
    with pytest.raises(MissingExtraError, match=r"Counting.*numba") as caught:
        compiler("Counting", extra="synth")
    assert "defocus[synth]" in caught.value.fix
