"""One audit for every release: broken trainers are called, right ones are not, and so are releases of other rooms."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.audit.trainers import CANARIES, EVENT, FAULTS, REMOVAL, REPLACED, RUNS, SCORES, Trainer, likely

import defocus as dp
from defocus import audit
from defocus.audit import OneRun
from defocus.errors import InvalidParameterError
from defocus.noise.testing import seeded

DELTA = 1e-5


def audited(trainer: Trainer, score: object, seed: int, confidence: float = 0.99) -> OneRun:
    event = REPLACED if trainer.fault in {REMOVAL, "replaced"} else EVENT
    return audit.run(
        trainer.release,
        range(CANARIES),
        score,  # type: ignore[arg-type]
        event=event,
        delta=DELTA,
        confidence=confidence,
        independent=True,
        runs=RUNS,
        bits=seeded(seed),
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_trainer_is_called(fault: str) -> None:
    found = audited(Trainer(fault, seed=1), SCORES.get(fault, likely), seed=1)
    assert found.violation, found
    assert found.epsilon_lower > float(found.claimed or 0)


@pytest.mark.parametrize("score", [likely, *SCORES.values()])
def test_the_right_trainer_is_not_called_by_any_of_the_same_attacks(score: object) -> None:
    found = audited(Trainer(seed=2), score, seed=2)
    assert not found.violation
    if score is likely:
        assert found.epsilon_lower > 0.6 * float(found.claimed or 0)  # the attack is no weak one


def test_the_right_noise_for_units_that_are_replaced_is_not_called() -> None:
    assert not audited(Trainer("replaced", seed=3), likely, seed=3).violation


@pytest.mark.long
@pytest.mark.statistical
def test_right_trainers_are_called_as_seldom_as_the_confidence_says_and_broken_ones_always() -> None:
    right = sum(audited(Trainer(seed=i), likely, seed=i).violation for i in range(200))
    wrong = Counter(
        fault
        for fault in FAULTS
        for i in range(5)
        if audited(Trainer(fault, seed=i), SCORES.get(fault, likely), seed=i).violation
    )
    print(f"right ones called: {right} of 200; broken ones called, of 5 each: {dict(wrong)}")  # noqa: T201
    assert right <= 7  # Bin(200, .01) is above with probability .1 %
    assert set(wrong.values()) == {5}
    assert set(wrong) == set(FAULTS)


def test_a_table_release_is_audited_by_its_receipt(tmp_path: Path) -> None:
    """Each canary is one person in a village of its own."""

    def release(planted: list[int]) -> object:
        data = pa.table({"person": np.array(planted), "village": np.array(planted)})
        place = tmp_path / f"{len(list(tmp_path.iterdir()))}.ledger"
        table = dp.open(data, ledger=place, name="villages", unit=dp.user("person"), budget=dp.Budget(4))
        return table.group_by("village", keys=range(300)).agg(n=dp.count()).release(epsilon=2)

    found = audit.run(
        release,
        range(300),
        lambda answer, village: float(answer.columns[0].values[village]),
        independent=True,
    )
    assert found.claimed == pytest.approx(2, rel=1e-3)
    assert not found.violation
    assert found.epsilon_lower > 0.8


def test_what_is_no_number_for_each_canary_needs_a_score() -> None:
    with pytest.raises(InvalidParameterError, match="score="):
        audit.run(len, range(5), claimed=1)
