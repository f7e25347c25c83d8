"""The private bandit: what one patient can move, what is charged, and what is learned."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from defocus import Budget, Ledger, item
from defocus.noise.testing import seeded

EXAMPLE = Path(__file__).parents[2] / "examples" / "bandit.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_another_outcome_moves_one_number_by_one_for_the_same_noise(example: dict[str, Any]) -> None:
    asked = 0

    def outcomes(extra: int) -> Any:
        plain = example["ask"](example["CURED"], 3)

        def answer(arm: int, times: int) -> int:
            nonlocal asked
            asked += 1
            return int(plain(arm, times)) + (extra if asked == 2 else 0)

        return answer

    runs = []
    for extra in (0, 1):
        asked = 0
        runs.append(example["eliminate"](outcomes(extra), 5, 400, epsilon=1.0, bits=seeded(4)))
    first, second = (run.released[0] for run in runs)
    assert sum(abs(first[arm] - second[arm]) for arm in first) == 1


def test_a_run_is_charged_once_before_its_first_patient(example: dict[str, Any], tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "a", budget=Budget(1), unit=item(replace=True), dataset="trial") as book:

        def outcomes(_arm: int, _times: int) -> int:
            assert sum(entry.kind == "charge" for entry in book.entries()) == 1
            return 0

        example["eliminate"](outcomes, 3, 500, epsilon=1.0, book=book)
        assert sum(entry.kind == "charge" for entry in book.entries()) == 1


def test_the_best_treatment_stays_and_privacy_costs_patients(example: dict[str, Any]) -> None:
    run = example["eliminate"](example["ask"](example["CURED"], 1), 5, 20_000, epsilon=1.0, bits=seeded(2))
    assert run.left == [0]
    assert sum(run.given.values()) <= 20_000 + 5
    plain, little, much = example["regrets"]([None, 0.05, 2.0], runs=3, patients=10_000)
    assert plain <= much < little
    assert len(example["figure"](plain, [little] * 4).axes[0].lines) == 2
