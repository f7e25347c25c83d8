"""What a run says of its noise is what it adds."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.learning.making import trainer

from defocus.learning import Banded, Schedule, Trainer


def noise_line(run: Trainer) -> str:
    return next(line for line in run.explain().splitlines() if line.startswith("Noise"))


def added(run: Trainer, steps: int) -> list[float]:
    """The standard deviation over the clip of the noise drawn in each step, of which a strategy makes its own."""
    scales = [run._stepper._scales(step, list(run._stepper.parameters))[0] for step in range(steps)]
    norm = 1 if run.plan.strategy is None else run.plan.strategy.norm
    return [scale * norm / run.clip for scale in scales]


@pytest.mark.parametrize(
    ("noise", "watch"),
    [
        (1.0, "nothing"),
        (1.0, "paid"),
        (Schedule([4, 1]), "nothing"),
        (Schedule([1, 3, 2]), "paid"),
        (Banded(4), "paid"),
    ],
    ids=["constant", "watched", "falling", "up and down", "correlated"],
)
def test_the_noise_that_is_told_is_the_noise_that_is_drawn(tmp_path: Path, noise: Any, watch: str) -> None:
    run = trainer(tmp_path, noise=noise, watch=watch)
    line = noise_line(run)
    told = [float(word) for word in re.findall(r"[\d.]+", line.split("times the clip")[0])]
    drawn = added(run, run.plan.steps)
    assert [min(drawn), max(drawn)] == pytest.approx([min(told), max(told)], rel=3e-3)
    assert len(told) == (2 if isinstance(noise, Schedule) else 1)
    assert ("take back a part" in line) == isinstance(noise, Banded)


def test_what_a_run_did_says_the_noise_of_all_steps(tmp_path: Path) -> None:
    falling = trainer(tmp_path, noise=Schedule([4, 1]), watch="nothing")
    base = falling.plan.ratio
    assert falling.result().facts["noise"] == f"between {base:.4g} and {4 * base:.4g} times the sensitivity of a step"
    banded = trainer(tmp_path, noise=Banded(4), watch="nothing", ledger=tmp_path / "other.ledger")
    assert banded.plan.strategy is not None
    told = banded.result().facts["noise"]
    assert told.startswith(f"{banded.plan.ratio * banded.plan.strategy.norm:.4g} times")
    assert "take back a part" in told


def test_everything_is_said_in_plain_words(tmp_path: Path) -> None:
    text = trainer(tmp_path, size=100, watch="private").explain()
    for words in ("Protected: one row", "declared as 100", "16 are expected", "PRIVATE", "Not promised"):
        assert words in text
