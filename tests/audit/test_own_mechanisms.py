import re
from collections.abc import Mapping
from functools import cache

import pytest

from defocus import mechanisms
from defocus.audit import Finding, Target, search
from defocus.audit.own_mechanisms import honest
from defocus.noise.testing import seeded


@cache
def known() -> Mapping[str, Target]:
    return {target.name: target for target in honest(seeded(21))}


NAMES = [
    "laplace",
    "laplace/single",
    "laplace/vector",
    "geometric",
    "gaussian",
    "gaussian/single",
    "gaussian/vector",
    "exponential",
    "exponential/monotone",
    "permute-and-flip",
    "permute-and-flip/monotone",
    "report-noisy-max",
    "report-noisy-max/monotone",
    "above-threshold",
    "above-threshold/gap",
    "above-threshold/monotone",
    "ramp",
    "ladder",
    "noisy-local-sensitivity",
    "subset-choice",
    "randomized-response",
    "randomized-response/categories",
    "quantiles",
    "quantiles/several",
    "partition-selection",
    "partition-selection/several",
    "range-finding",
    "grid",
    "grid/replace",
]
QUICK = {"laplace", "geometric", "gaussian", "randomized-response", "randomized-response/categories", "grid"}


COSTLY = {"quantiles/several": 1000, "above-threshold/gap": 2000}
"""Those whose draws take long are attacked with fewer."""


def attacked(name: str, trials: int) -> Finding:
    target = known()[name]
    return search(target.mechanism, target.pairs, trials, claimed=target.epsilon, delta=target.delta)


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(QUICK))
def test_the_auditor_finds_nothing_in_it_and_comes_close(name: str) -> None:
    finding = attacked(name, 40_000)
    assert finding.verdict.startswith("none found (would detect >= "), finding
    assert not finding.notes
    assert finding.epsilon_lower > 0.8 * known()[name].epsilon


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(set(NAMES) - QUICK))
def test_the_auditor_finds_nothing_in_any_other(name: str) -> None:
    usual = 3000 if "/" not in name or "single" in name else 4000
    finding = attacked(name, min(known()[name].trials, COSTLY.get(name, usual)))
    assert finding.verdict.startswith("none found (would detect >= "), finding
    assert not finding.notes


def test_every_mechanism_is_a_target() -> None:
    offered = [getattr(mechanisms, name) for name in mechanisms.__all__]
    classes = [each for each in offered if hasattr(each, "sample") and each is not mechanisms.Mechanism]
    names = {re.sub(r"(?<!^)(?=[A-Z])", "-", each.__name__).lower() for each in classes}
    assert len(names) >= 8
    assert names <= set(known())
    assert list(known()) == NAMES


def test_claims_come_from_the_events() -> None:
    assert known()["laplace"].epsilon == pytest.approx(1, abs=1e-4)
    assert known()["laplace/vector"].epsilon == pytest.approx(1, abs=1e-4)
    # Balle, Wang (2018): a Gaussian of sigma 1 has epsilon 2.318 at delta 0.01; the discrete one is close to it.
    assert known()["gaussian"].epsilon == pytest.approx(2.318, abs=0.05)
