"""What a run tells of itself: true before, on the way and at the end, and the same whatever happens later."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.learning.making import trainer

from defocus import user
from defocus.errors import InvalidParameterError
from defocus.learning import Banded, BufferedToeplitz, Metrics, Schedule, Trainer


def test_a_result_before_the_first_step_says_that_nothing_was_charged_yet(tmp_path: Path) -> None:
    early = trainer(tmp_path).result()
    assert "will be charged for all steps" in str(early)
    assert "charged:" not in str(early)
    assert "at the end" not in str(early)


def test_a_result_is_about_its_own_moment(tmp_path: Path) -> None:
    run = trainer(tmp_path, steps=4)
    batches = run.batches()
    run.step(next(batches))
    early = run.result()
    said = str(early)
    assert "was charged for all steps" in said
    for batch in batches:
        run.step(batch)
    assert str(early) == said
    assert str(run.result()) != said


def test_a_result_explains_and_draws_itself_and_has_a_short_repr(tmp_path: Path) -> None:
    run = trainer(tmp_path, steps=30, epsilon=100, delta=1e-5)
    found = run.fit(progress=False)
    assert found.explain() == run.explain()
    assert len(repr(found)) < 500
    (axes,) = found.plot().axes
    assert len(axes.lines[0].get_xdata()) == 30
    assert "epsilon" in axes.get_title()


@pytest.mark.parametrize("more", [{"metrics": "nothing"}, {}])
def test_what_was_not_paid_for_is_not_drawn(tmp_path: Path, more: dict[str, str]) -> None:
    with pytest.raises(InvalidParameterError, match="nothing to draw"):
        trainer(tmp_path, **more).result().plot()


def test_losses_beyond_the_cut_are_told_as_that(tmp_path: Path) -> None:
    data = (torch.randn(400, 6), torch.full((400, 1), 100.0))
    run = trainer(
        tmp_path, model=torch.nn.Linear(6, 1), loss=torch.nn.functional.mse_loss, data=data, batch_size=200, steps=20,
        epsilon=500, delta=1e-5,
    )  # fmt: skip
    assert "loss 4 or more" in str(run.fit(progress=False))
    wide = trainer(
        tmp_path, model=torch.nn.Linear(6, 1), loss=torch.nn.functional.mse_loss, data=data, batch_size=200, steps=20,
        epsilon=500, delta=1e-5, metrics=Metrics(loss=50_000), ledger=tmp_path / "wide.ledger",
    )  # fmt: skip
    assert "or more" not in str(wide.fit(progress=False))
    assert "losses count up to 50000" in str(wide.result())


def test_pages_quote_what_they_are_told(tmp_path: Path) -> None:
    run = trainer(tmp_path, unit=user("<img>"), users=torch.arange(64) // 2, batch_size=4)
    assert "<img>" not in run._repr_html_()
    assert "&lt;img&gt;" in run._repr_html_()


def noise_line(run: Trainer) -> str:
    return next(line for line in run.explain().splitlines() if line.startswith("Noise"))


def added(run: Trainer, steps: int) -> list[float]:
    """The standard deviation over the clip of the noise drawn in each step, of which a strategy makes its own."""
    scales = [run._stepper._scales(step, list(run._stepper.parameters))[0] for step in range(steps)]
    norm = 1 if run.plan.strategy is None else run.plan.strategy.norm
    return [scale * norm / run.max_grad_norm for scale in scales]


@pytest.mark.parametrize(
    ("noise", "metrics"),
    [
        (None, "nothing"),
        (None, "paid"),
        (Schedule([4, 1]), "nothing"),
        (Schedule([1, 3, 2]), "paid"),
        (Banded(4), "paid"),
        (BufferedToeplitz(2), "paid"),
    ],
    ids=["constant", "with metrics", "falling", "up and down", "correlated", "buffered"],
)
def test_the_noise_that_is_told_is_the_noise_that_is_drawn(tmp_path: Path, noise: Any, metrics: str) -> None:
    run = trainer(tmp_path, noise=noise, metrics=metrics)
    line = noise_line(run)
    told = [float(word) for word in re.findall(r"[\d.]+", line.split("times the clip")[0])]
    drawn = added(run, run.plan.steps)
    assert [min(drawn), max(drawn)] == pytest.approx([min(told), max(told)], rel=3e-3)
    assert len(told) == (2 if isinstance(noise, Schedule) else 1)
    assert ("take back a part" in line) == isinstance(noise, Banded | BufferedToeplitz)


def test_what_a_run_did_says_the_noise_of_all_steps(tmp_path: Path) -> None:
    falling = trainer(tmp_path, noise=Schedule([4, 1]), metrics="nothing")
    base = falling.plan.ratio
    assert falling.result().facts["noise"] == f"between {base:.4g} and {4 * base:.4g} times the sensitivity of a step"
    banded = trainer(tmp_path, noise=Banded(4), metrics="nothing", ledger=tmp_path / "other.ledger")
    assert banded.plan.strategy is not None
    told = banded.result().facts["noise"]
    assert told.startswith(f"{banded.plan.ratio * banded.plan.strategy.norm:.4g} times")
    assert "take back a part" in told


def test_everything_is_said_in_plain_words(tmp_path: Path) -> None:
    text = trainer(tmp_path, size=100, metrics="private").explain()
    for words in ("Protected: one row", "declared as 100", "16 are expected", "PRIVATE", "Not promised"):
        assert words in text
