import math
import time
from itertools import count
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from defocus.audit import batched, lower_bound
from defocus.audit.audit import Setting
from defocus.audit.bounds import bound
from defocus.audit.events import Split

HONEST = 200


def response(epsilon: float, rng: np.random.Generator) -> Any:
    """Randomised response with exactly this epsilon: the tightest mechanism to audit."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    return batched(lambda data, n: np.where(rng.random(n) < truth, data, 1 - data))


def setting(trials: int, seconds: float | None) -> Setting:
    return Setting(trials=trials, confidence=0.99, delta=0.0, claimed=1.0, seconds=seconds, timing=False)


def test_one_round_spends_all_the_error_and_judges_with_half_of_the_runs() -> None:
    one = setting(10_001, None)
    (split,) = one.rounds()
    assert (split.n, split.train, split.learn) == (10_001, 5000, 2500)
    assert one.alpha == pytest.approx(0.01)


def test_rounds_double_and_each_judges_with_runs_no_round_before_it_saw() -> None:
    rounds = setting(10_000, 5.0).rounds()
    assert [split.n for split in rounds] == [312, 625, 1250, 2500, 5000, 10_000]
    assert [split.train for split in rounds] == [156, 312, 625, 1250, 2500, 5000]
    assert setting(10_000, 5.0).alpha * len(rounds) == pytest.approx(0.01)


def test_a_part_of_a_search_gets_its_share_of_the_error() -> None:
    part = setting(10_000, None).cut(trials=100, seconds=1.0, parts=4)
    assert part.confidence == pytest.approx(0.9975)
    assert part.seconds is None
    assert setting(10_000, 5.0).cut(trials=100, seconds=-1.0).seconds == pytest.approx(1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize(("trials", "seconds"), [(2000, None), (1000, 60.0)])
def test_honest_mechanisms_are_accused_no_more_often_than_the_confidence_allows(
    trials: int, seconds: float | None
) -> None:
    rng = np.random.default_rng(11)
    accused = 0
    for _ in range(HONEST):
        finding = lower_bound(response(1.0, rng), (0, 1), trials, 0.95, claimed=1, seconds=seconds)
        accused += finding.violation
    assert accused <= binom.ppf(0.999, HONEST, 0.05)


@pytest.mark.statistical
def test_choosing_and_judging_with_the_same_runs_would_accuse_the_honest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: many output classes, no split, and nearly everyone is guilty."""
    rng = np.random.default_rng(11)
    noise = batched(lambda _data, n: rng.integers(0, 1000, n))

    def accused() -> int:
        found = [lower_bound(noise, (0, 1), 2000, 0.95, claimed=0) for _ in range(20)]
        return sum(finding.violation for finding in found)

    assert accused() <= binom.ppf(0.999, 20, 0.05)
    split_of, proven = Split.of, bound
    monkeypatch.setattr(Split, "of", lambda split, codes, _what: split_of(split, codes, "choose"))
    monkeypatch.setattr(
        "defocus.audit.audit.bound",
        lambda hits, runs, *rest, **named: proven(hits, runs // 2, *rest, **named),
    )
    assert accused() > 10


@pytest.mark.statistical
def test_the_detectable_level_is_detected() -> None:
    rng = np.random.default_rng(12)
    level = lower_bound(response(1.0, rng), (0, 1), 5000, 0.99, claimed=1).detectable
    found = [lower_bound(response(level, rng), (0, 1), 5000, 0.99, claimed=1).violation for _ in range(50)]
    assert sum(found) >= 40


@pytest.mark.statistical
def test_a_tight_mechanism_is_measured_closely() -> None:
    finding = lower_bound(response(1.0, np.random.default_rng(2)), (0, 1), claimed=1)
    assert 0.95 <= finding.epsilon_lower <= 1
    assert finding.delta_lower == 0


@pytest.mark.statistical
def test_delta_is_bounded_at_the_claim() -> None:
    rng = np.random.default_rng(4)

    def shows_it_sometimes(data: int, n: int) -> Any:
        return np.where(rng.random(n) < 0.1, data, 2)

    finding = lower_bound(batched(shows_it_sometimes), (0, 1), 40_000, claimed=1)
    assert finding.violation
    assert 0.085 < finding.delta_lower <= 0.1
    covered = lower_bound(batched(shows_it_sometimes), (0, 1), 40_000, claimed=1, delta=0.1)
    assert covered.epsilon_lower == 0


def test_a_violation_stops_the_doubling_and_the_clock_stops_the_rest() -> None:
    found = lower_bound(lambda data: data, (0, 1), 1_000_000, claimed=1, seconds=60)
    assert found.violation
    assert found.trials < 1000
    start = time.monotonic()
    late = lower_bound(lambda _data: time.sleep(1e-4), (0, 1), 1_000_000, claimed=1, seconds=0.2)
    assert not late.violation
    assert 256 <= late.trials < 10_000
    assert late.seconds <= time.monotonic() - start


def test_a_mechanism_that_never_answers_is_noted() -> None:
    finding = lower_bound(lambda data: data.missing, (0, 1), 500, claimed=1)
    assert finding.epsilon_lower == 0
    assert finding.notes == ("Every run raised AttributeError, so the audit saw no answers.",)
    assert "saw no answers" in finding.explain()


def test_run_time_is_an_output_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    nanoseconds = count(0, 1000)
    monkeypatch.setattr(time, "perf_counter_ns", lambda: next(nanoseconds))

    def slow(data: int) -> None:
        for _ in range(data):
            next(nanoseconds)

    assert lower_bound(slow, (0, 1), 500, claimed=1).epsilon_lower == 0
    timed = lower_bound(slow, (0, 1), 500, claimed=1, timing=True)
    assert timed.violation
    assert "run time in nanoseconds" in timed.event
