import pytest

from defocus.audit import search
from defocus.audit.broken import broken
from defocus.noise.testing import seeded

NAMES = [target.name for target in broken(seeded(0))]


@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMES)
def test_the_auditor_catches_it(name: str) -> None:
    target = next(target for target in broken(seeded(9)) if target.name == name)
    trials = min(target.trials, 40_000)
    finding = search(target.mechanism, target.pairs, trials, claimed=target.epsilon, delta=target.delta)
    assert finding.verdict == "violation", finding


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("nan", "kind of output"),
        ("exception", "kind of output"),
        ("empty", "raised ZeroDivisionError"),
        ("new-key", "keys of output"),
        ("float-laplace", "lowest set bit"),
        ("inverse-cdf", "lowest set bit"),
        ("noise-at-zero", "lowest set bit"),
        ("reused-noise", "linear discriminant"),
    ],
)
def test_the_event_names_the_fault(name: str, word: str) -> None:
    target = next(target for target in broken(seeded(9)) if target.name == f"broken/{name}")
    finding = search(target.mechanism, target.pairs, min(target.trials, 20_000), claimed=1)
    assert word in finding.event


def test_each_says_what_is_wrong_with_it_and_is_marked() -> None:
    for target in broken(seeded(1)):
        assert target.broken
        assert target.about.endswith(".")
        assert target.name.startswith("broken/")
    assert len(set(NAMES)) == len(NAMES) >= 15


def test_what_they_draw_follows_from_the_bits() -> None:
    first = [broken(seeded(seed))[0] for seed in (1, 1, 2)]
    found = [search(target.mechanism, target.pairs, 2000).epsilon_lower for target in first]
    assert found[0] == found[1] != found[2]
