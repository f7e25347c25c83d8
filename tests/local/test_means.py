import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from defocus.errors import InvalidParameterError, OutOfDomainError
from defocus.local import Mean, mean
from defocus.local.clients.numeric import on_grid, window_cell
from defocus.local.designs import NUMERIC_NAMES, from_json, numeric, to_json
from defocus.local.designs.numeric import STEPS, Duchi, Hybrid, Window
from defocus.local.domains import Interval
from defocus.local.levels import growth
from defocus.local.means import moments
from defocus.local.servers.supports import transitions
from defocus.noise.testing import replay, seeded
from defocus.privacy import account

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(4)]


def test_worst_variances_are_the_published_ones() -> None:
    """On [-1, 1]; Wang et al. (2019), Table 1 and Figure 1."""
    for epsilon, laplace, duchi, piecewise, hybrid in ((1, 8, 4.68, 5.22, 4.29), (4, 0.5, 1.08, 0.241, 0.219)):
        for name, expected in (("laplace", laplace), ("duchi", duchi), ("piecewise", piecewise), ("hybrid", hybrid)):
            assert mean(name, -1, 1, epsilon).worst_variance == pytest.approx(expected, rel=0.005), name


@given(st.fractions(0, 1), st.sampled_from(EPSILONS))
def test_closed_forms_hold_at_every_number(share: Fraction, epsilon: Fraction) -> None:
    x, e, s = 2 * float(share) - 1, math.exp(epsilon), math.exp(epsilon / 2)
    assert numeric("duchi", -1, 1, epsilon).variance(share) == pytest.approx(((e + 1) / (e - 1)) ** 2 - x**2)
    expected = x**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    assert numeric("piecewise", -1, 1, epsilon).variance(share) == pytest.approx(expected, rel=1e-3)
    scaled = mean("duchi", 10, 14, epsilon).design.variance(share)
    assert scaled == pytest.approx(4 * (((e + 1) / (e - 1)) ** 2 - x**2))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("square", [False, True])
def test_every_place_of_the_window_keeps_epsilon_exactly(epsilon: Fraction, square: bool) -> None:
    made = Window(Interval(0, 1), epsilon, square=square, cells=64)
    levels = made.levels
    hit = np.repeat([True, False], [levels.favoured, levels.others])
    index = np.concatenate([np.arange(levels.favoured), np.arange(levels.others)]).astype(np.uint64)
    laws = []
    for place in range(made.places + 1):
        cells = window_cell(made, np.full(len(hit), place), hit, index)
        assert sorted(cells.tolist()) == list(range(64))
        laws.append([Fraction(levels.high if h else levels.low, levels.total) for h in hit[np.argsort(cells)]])
        mean_guess = sum(float(p) * g for p, g in zip(laws[-1], made.guesses, strict=True))
        assert mean_guess == pytest.approx(place / made.places, abs=1e-9)
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert worst == made.ratio <= growth(epsilon)[0]
    assert math.log(worst) > 0.99 * epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bit_keeps_epsilon_at_both_ends_and_between(epsilon: Fraction) -> None:
    made = Duchi(Interval(0, 1), epsilon)
    low, high = made.weights
    assert growth(epsilon)[0] >= Fraction(high, low) == made.ratio
    assert math.log(made.ratio) > 0.99 * epsilon
    assert low <= low + (high - low) * (STEPS // 3) // STEPS <= high
    shift = 64 - (low + high - 1).bit_length()
    for share, ones in ((0.0, low), (1.0, high), (0.5, (low + high) // 2)):
        for word, expected in ((ones - 1, 1), (ones, 0)):
            report = mean("duchi", 0, 1, epsilon).encode([share], replay([2**63, word << shift], seeded(1)))
            assert report.payload[0] == expected


@pytest.mark.statistical
@pytest.mark.parametrize("name", NUMERIC_NAMES)
@pytest.mark.parametrize("epsilon", [1, 4])
def test_guesses_are_unbiased_and_have_the_stated_variance_and_no_other(name: str, epsilon: int) -> None:
    asked = mean(name, -1, 1, epsilon)
    for share in (0.0, 0.5, 0.9):
        server = asked.server()
        server.add_reports(asked.encode(np.full(40_000, 2 * share - 1), seeded(int(100 * share) + epsilon)))
        made = asked.estimate(server)
        assert abs(made.value - (2 * share - 1)) < 4 * made.error
        first, second = moments(asked.design, server.state())
        seen, stated = 4 * (second / 40_000 - (first / 40_000) ** 2), asked.design.variance(share)
        assert made.error**2 * 40_000 == pytest.approx(stated, rel=0.05)
        noise = max(0.02, 4 * math.sqrt(2 / 40_000))
        assert seen == pytest.approx(stated, rel=2 * noise)
        if stated > 0.01:
            assert seen != pytest.approx(1.1 * stated, rel=noise)


def test_the_mean_of_mixed_numbers_lies_in_its_interval() -> None:
    values = np.linspace(20, 90, 20_000)
    for name in NUMERIC_NAMES:
        made = mean(name, 0, 100, 2)
        low, high = made.estimate(made.encode(values, seeded(5))).interval(0.9999)
        assert low < 55 < high
        assert high - low < 12


@pytest.mark.parametrize("name", NUMERIC_NAMES)
def test_a_numeric_description_survives_json_and_messages_are_read(name: str) -> None:
    made = mean(name, Fraction(1, 3), 2.5, 0.7)
    again = Mean.from_json(made.to_json())
    assert again == made
    server = again.server()
    bits = seeded(1)
    assert server.add_many([made.client().report(1.0, bits=bits) for _ in range(50)]) == 50
    assert server.add(made.client().report_json(1.5, nonce=True, bits=bits))
    batch = made.encode(np.linspace(0.4, 2.5, 500), bits)
    assert server.add(batch.to_bytes())
    assert made.estimate(server).reports == made.estimate(server.state()).reports == 551
    ways = [made.estimate(given).to_dict() for given in (batch, batch.to_bytes(), list(batch))]
    assert ways[0] == ways[1] == ways[2]
    assert account(made.event, method="basic").epsilon(0) == pytest.approx(0.7)


def test_a_number_that_no_client_reports_is_rejected() -> None:
    made = mean("laplace", 0, 1, 1)
    forged = made.encode([0.5] * 3, seeded(1)).payload.copy()
    forged[1] = 2**62
    server = made.server()
    message = made.client().encode([0.5] * 3).to_bytes()
    assert not server.add(message[:18] + forged.tobytes())
    assert server.rejected == {"invalid": 1}
    assert server.state().reports == 2


def test_a_grid_is_met_from_both_sides_without_bias_and_never_left() -> None:
    assert on_grid(np.array([0.0, 1.0]), 7, seeded(1)).tolist() == [0, 7]
    found = on_grid(np.full(20_000, 0.33), 10, seeded(2))
    assert set(found.tolist()) == {3, 4}
    assert abs(found.mean() - 3.3) < 4 * math.sqrt(0.21 / 20_000)


def test_square_wave_recovers_a_distribution_better_than_it_was_reported() -> None:
    asked, bits = mean("square-wave", 0, 1, 1), seeded(8)
    rng = np.random.default_rng(4)
    values = rng.beta(5, 2, 50_000)
    true = np.histogram(values, 32, (0, 1))[0] / 50_000
    reports = asked.encode(values, bits)
    found = asked.distribution(reports, 32)
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    earth_mover = np.abs(np.cumsum(found - true)).mean()
    assert earth_mover < 0.01
    assert asked.distribution(reports, 32, smooth=False).sum() == pytest.approx(1)
    chance = transitions(asked.design, 32) if isinstance(asked.design, Window) else np.empty(0)
    assert chance.sum(axis=0) == pytest.approx(1)


def test_what_tells_no_distribution_is_refused() -> None:
    asked = mean("duchi", 0, 1, 1)
    with pytest.raises(InvalidParameterError, match="square-wave"):
        asked.distribution(asked.encode([0.5]))
    with pytest.raises(InvalidParameterError, match="1 reports"):
        asked.estimate(asked.encode([0.5]))


def test_below_a_small_epsilon_the_hybrid_is_one_bit() -> None:
    assert Hybrid(Interval(0, 1), Fraction(6, 10)).coin == 0
    assert Hybrid(Interval(0, 1), Fraction(62, 100)).coin > 0
    made = mean("hybrid", 0, 1, Fraction(1, 2))
    assert set(made.encode([0.5] * 100).payload.tolist()) == {1 << 15, (1 << 15) + 1}


@pytest.mark.parametrize("name", NUMERIC_NAMES)
def test_parameters_without_meaning_are_refused(name: str) -> None:
    for epsilon in (0, -1, math.nan, math.inf, True, "1", 17):
        with pytest.raises(InvalidParameterError):
            mean(name, 0, 1, epsilon)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError):
        mean(name, 1, 0, 1)
    with pytest.raises(OutOfDomainError):
        mean(name, 0, 1, 1, outside="refuse").encode([math.nan])
    with pytest.raises(InvalidParameterError):
        mean("guess", 0, 1, 1)


def test_a_description_of_categories_is_not_one_of_numbers() -> None:
    assert from_json(to_json(numeric("duchi", 0, 1, 1))) == numeric("duchi", 0, 1, 1)
    from defocus.local import oracle  # noqa: PLC0415 - only here

    with pytest.raises(InvalidParameterError, match="categories"):
        Mean.from_json(oracle("k-rr", 3, 1).to_json())


@pytest.mark.statistical
@pytest.mark.parametrize("name", NUMERIC_NAMES)
@pytest.mark.parametrize("epsilon", [1, 8])
def test_stated_errors_are_those_of_the_noise_and_not_of_the_numbers(name: str, epsilon: int) -> None:
    """Numbers at both ends and between. One bit cannot tell their spread from noise: its error is an upper one."""
    asked, bits = mean(name, -3, 5, epsilon), seeded(epsilon)
    values = np.repeat([-3.0, 0.7, 5.0], [300, 400, 300])
    found = [asked.estimate(asked.encode(values, bits)) for _ in range(150)]
    seen = np.std([each.value for each in found])
    stated = np.sqrt(np.mean([each.error**2 for each in found]))
    if name == "duchi":
        assert seen < 1.2 * stated
    else:
        assert seen / stated == pytest.approx(1, abs=4 / math.sqrt(2 * 150))


def test_a_mean_over_a_huge_interval_is_a_number() -> None:
    wide = mean("duchi", -8e307, 8e307, 1)
    assert math.isinf(wide.worst_variance)
    assert math.isfinite(wide.estimate(wide.encode([0.0] * 100)).value)
