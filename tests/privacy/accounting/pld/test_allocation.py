"""Random allocation is never below the truth, and hardly above it."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import numpy.typing as npt
import pytest

from defocus.errors import InvalidParameterError, UnsupportedEventError
from defocus.privacy import Adjacency, AllocatedGaussian, Gaussian, Sampled, ShuffledGaussian, account, group
from defocus.privacy.accounting.pld.allocation import allocated, law_of_sum
from defocus.privacy.events import Event

Floats = npt.NDArray[np.float64]
ADDED, REPLACED = Adjacency.ADD_REMOVE, Adjacency.REPLACE


@pytest.mark.parametrize(("ratio", "rate", "times"), [(1, 0.01, 100), (0.6, 0.001, 1000), (3, 0.2, 50), (1, 1, 4)])
def test_one_step_is_a_sampled_gaussian_release(ratio: float, rate: float, times: int) -> None:
    """The certified interval of Poisson sampling holds the truth; the grid may cost some parts in a thousand."""
    inner = Sampled(Gaussian(ratio), rate) if rate < 1 else Gaussian(ratio)
    truth = account(times * inner).interval(1e-6)
    found = account(times * AllocatedGaussian(ratio, rate, 1)).epsilon(1e-6)
    assert truth.lower <= found <= 1.01 * truth.upper


def normal_places(steps: int) -> tuple[list[Floats], Floats]:
    """Points of a plane or space and their weights: equal steps, which resolve Gaussian integrals."""
    x = np.arange(-8.0, 8.0, 0.16 if steps > 2 else 0.06)
    weights = np.exp(-(x**2) / 2)
    weights /= weights.sum()
    places = list(np.meshgrid(*[x] * steps, indexing="ij"))
    return places, np.asarray(math.prod(np.meshgrid(*[weights] * steps, indexing="ij")))


def hockey_stick(p: Floats, q: Floats, weights: Floats, epsilon: float) -> float:
    return float((np.maximum(p - math.exp(epsilon) * q, 0) * weights).sum())


@pytest.mark.slow
@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("mu", [0.5, 1.0])
@pytest.mark.parametrize("outside", [0.0, 0.4])
def test_two_and_three_steps_by_brute_force(steps: int, mu: float, outside: float) -> None:
    places, weights = normal_places(steps)
    rate = Fraction((1 - Fraction(outside)) / steps)

    def mixed(sign: int) -> Floats:
        inside = sum(np.exp(sign * mu * x - mu * mu / 2) for x in places)
        return np.asarray(outside + float(rate) * inside)

    ones = np.ones_like(weights)
    event = AllocatedGaussian(1 / Fraction(mu), rate, steps)
    here, there = (account(event, adjacency=adjacency) for adjacency in (ADDED, REPLACED))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0):
        worst = max(hockey_stick(mixed(1), ones, weights, epsilon), hockey_stick(ones, mixed(1), weights, epsilon))
        assert worst * (1 - 1e-3) <= here.delta(epsilon) <= 1.03 * worst + 1e-9
        both = hockey_stick(mixed(1), mixed(-1), weights, epsilon)
        assert both * (1 - 1e-3) <= there.delta(epsilon)
    assert there.delta(0.5) <= 1.5 * hockey_stick(mixed(1), mixed(-1), weights, 0.5)


def density(means: Sequence[Sequence[float]], places: list[Floats], base: Floats) -> Floats:
    """A mixture of normal laws with unit variance, over the standard normal law moved to ``base``."""
    total = np.zeros_like(places[0])
    for mean in means:
        moved = [m - b for m, b in zip(mean, base.tolist(), strict=True)]
        total += np.exp(sum(m * x - m * m / 2 for m, x in zip(moved, places, strict=True)))
    return np.asarray(total / len(means))


def epochs(vectors: Sequence[float], size: int, steps: int) -> list[list[float]]:
    """The sums of the batches for every order of the units."""
    return [
        [sum(vectors[unit] for unit in order[step * size : (step + 1) * size]) for step in range(steps)]
        for order in permutations(range(len(vectors)))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "units"), [(1, 3), (2, 5)])
def test_shuffled_batches_by_enumerating_all_orders(size: int, units: int) -> None:
    """Every choice of who adds and who takes off; the worst one is attained, and needs twice the sensitivity."""
    mu, steps = 0.8, 2
    places, weights = normal_places(steps)
    event = ShuffledGaussian(1 / Fraction(mu), size, units, steps)
    added, replaced = (account(event, adjacency=adjacency) for adjacency in (ADDED, REPLACED))
    naive = account(AllocatedGaussian(event.ratio, Fraction(size, units), steps))
    tight = 0.0
    for others in product((-mu, 0.0, mu), repeat=units - 1):
        if list(others) != sorted(others):
            continue
        base = np.full(steps, size * sum(others) / len(others))
        without = density(epochs(others, size, steps), places, base)
        with_one, with_other = (density(epochs((*others, own), size, steps), places, base) for own in (mu, -mu))
        for epsilon in (0.0, 0.5, 1.0):
            for p, q in ((with_one, without), (without, with_one)):
                truth = hockey_stick(p, q, weights, epsilon)
                assert truth <= added.delta(epsilon) * (1 + 1e-3)
                tight = max(tight, truth / added.delta(epsilon))
            assert hockey_stick(with_one, with_other, weights, epsilon) <= replaced.delta(epsilon) * (1 + 1e-3)
        if others == (-mu,) * (units - 1):
            assert hockey_stick(with_one, without, weights, 0.5) > 1.5 * naive.delta(0.5)
    assert tight > 0.97


@pytest.mark.statistical
@pytest.mark.parametrize(("mu", "bins", "released"), [(1.0, 100, 100), (1.4, 300, 100), (0.4, 20, 20), (2.0, 40, 40)])
def test_monte_carlo_agrees_with_an_epoch(mu: float, bins: int, released: int) -> None:
    """Drawn with the unit in a random place, where rare large losses are common enough to be seen."""
    rng = np.random.default_rng(5)
    size = 3_000_000 // released
    x = rng.standard_normal((size, released))
    hidden = rng.integers(bins, size=size)
    there = np.flatnonzero(hidden < released)
    x[there, hidden[there]] += mu
    ratio = 1 + (np.exp(mu * x - mu * mu / 2) - 1).sum(axis=1) / bins
    profile = allocated(mu, 1 / bins, released, replaced=False)
    assert profile is not None
    for epsilon in (-0.2, -0.05, 0.02, 0.1, 0.3, 1.0):
        gain = (
            np.maximum(1 - math.exp(epsilon) / ratio, 0)
            if epsilon >= 0
            else np.maximum(math.exp(epsilon) / ratio - 1, 0)
        )
        error = gain.std() / math.sqrt(size) + 1e-9
        found = float(profile.curve(np.array([epsilon])).excess[0])
        assert gain.mean() - 5 * error <= found <= 1.03 * gain.mean() + 5 * error + 1e-5


def test_stored_masses_bound_the_law_and_keep_its_mean() -> None:
    for mu, count in ((0.01, 1000), (0.7, 37), (2.5, 6), (4.0, 3)):
        law = law_of_sum(mu, count)
        nodes = [np.arange(-512, 513) * law.step * 4.0**scale for scale in range(len(law.grids))]
        mass = sum(float(grid.sum()) for grid in law.grids)
        mean = sum(float(grid @ at) for grid, at in zip(law.grids, nodes, strict=True))
        second = sum(float(grid @ at**2) for grid, at in zip(law.grids, nodes, strict=True))
        variance = count * math.expm1(mu * mu)
        assert 1 <= mass + law.lost <= 1 + 1e-3
        assert mean == pytest.approx(0, abs=1e-4 * math.sqrt(variance))
        assert law.lost_mean < 1e-20
        assert second >= variance * (1 - 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    ("ratio", "bins", "steps", "times"),
    [(0.5, 2, 2, 30), (1, 500, 100, 30), (20, 10, 10, 30), (0.7, 60, 60, 3), (3, 9, 1, 1)],
)
def test_more_noise_fewer_steps_and_more_bins_lose_less(
    ratio: float, bins: int, steps: int, times: int, adjacency: Adjacency
) -> None:
    def cost(event: Event) -> float:
        return account(times * event, adjacency=adjacency).epsilon(1e-5)

    base = cost(AllocatedGaussian(ratio, Fraction(1, bins), steps))
    assert cost(AllocatedGaussian(1.5 * ratio, Fraction(1, bins), steps)) <= base
    assert base <= cost(AllocatedGaussian(ratio, Fraction(1, bins), bins)) * 1.005
    assert cost(AllocatedGaussian(ratio, Fraction(1, 2 * bins), steps)) <= base
    assert base <= cost(Gaussian(ratio if adjacency is ADDED else ratio / 2)) * 1.001


@pytest.mark.parametrize("method", ["rdp", "zcdp", "basic"])
def test_other_accountants_count_an_epoch_as_one_release(method: str) -> None:
    for event in (AllocatedGaussian(4, Fraction(1, 40), 40), ShuffledGaussian(4, 3, 121, 40)):
        one = account(3 * Gaussian(2), method, REPLACED).epsilon(1e-6)
        assert account(3 * event, method, REPLACED).epsilon(1e-6) == one
        assert account(3 * event, method, ADDED).epsilon(1e-6) <= one
        assert account(3 * event, "pld", REPLACED).epsilon(1e-6) < one


def test_with_hardly_any_noise_it_is_one_release() -> None:
    for ratio in (0.2, 0.01):
        found = account(AllocatedGaussian(ratio, Fraction(1, 9), 9)).epsilon(1e-5)
        assert found == account(Gaussian(ratio)).epsilon(1e-5)


def test_what_is_no_allocation_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="one of 11 steps at most") as caught:
        AllocatedGaussian(1, Fraction(1, 10), 11)
    assert "1/steps" in caught.value.fix
    with pytest.raises(InvalidParameterError, match="leave none of 100 units out"):
        ShuffledGaussian(1, 10, 100, 10)
    assert ShuffledGaussian(1, 10, 101, 10).allocated == AllocatedGaussian(Fraction(1, 2), Fraction(10, 101), 10)
    with pytest.raises(UnsupportedEventError):
        group(ShuffledGaussian(1, 10, 101, 10), 2)
    for event in (AllocatedGaussian(1, 0.1, 5), ShuffledGaussian(1, 10, 101, 10)):
        with pytest.raises(UnsupportedEventError):
            account(event, "gdp")
