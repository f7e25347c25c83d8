"""The search from its definition: every neighbouring histogram, the whole law, all cuts of a coarse grid included."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from defocus.errors import DefocusError, InvalidParameterError, UnfitDataError
from defocus.mechanisms import Located, Quantiles, quantiles
from defocus.mechanisms.quantiles import STEPS, Node, Row, Search, depth, plan
from defocus.noise import Bits
from defocus.noise.testing import seeded
from defocus.privacy import events
from defocus.privacy.accounting import account

DECILES = tuple(Fraction(i, 10) for i in range(1, 10))
METHODS = ("search", "tree")
every_method = pytest.mark.parametrize("method", METHODS)


@every_method
@pytest.mark.parametrize("levels", [(0.5,), (0.5, 0.9), (0.1, 0.5, 0.9), DECILES], ids=len)
def test_every_release_costs_epsilon_and_no_more(levels: Any, method: str) -> None:
    event = Quantiles(levels=levels, epsilon=0.7, buckets=100, sensitivity=5, method=method).event
    assert account(event).epsilon(0) == pytest.approx(0.7, rel=1e-6)
    assert account(event, method="basic").epsilon(0) <= 0.7 * (1 + 1e-9)


def test_one_level_keeps_the_epsilon_it_was_given() -> None:
    assert Quantiles(levels=(0.5,), epsilon=0.7, buckets=9).event == events.Exponential(0.7)


@every_method
def test_a_replaced_user_moves_twice_as_much(method: str) -> None:
    added = Quantiles(levels=(0.5,), epsilon=1, buckets=50, sensitivity=6, method=method)
    replaced = Quantiles(levels=(0.5,), epsilon=1, buckets=50, sensitivity=3, replace=True, method=method)
    assert added.rank_error(0.9) == replaced.rank_error(0.9)
    assert added.error == replaced.error
    assert account(added.event).epsilon(0) == account(replaced.event).epsilon(0)


@given(st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 0.95]), min_size=1, max_size=6, unique=True))
def test_levels_are_answered_in_the_order_they_were_asked(levels: list[float]) -> None:
    counts = np.full(100, 10_000)
    for method in METHODS:
        found = Quantiles(levels=levels, epsilon=10, buckets=100, method=method).sample(counts, seeded(1))
        assert np.abs(found - 100 * np.array(levels)).max() <= 2


def test_a_level_means_the_decimal_that_was_written() -> None:
    assert Quantiles(levels=[0.9, np.float64(0.1)], epsilon=1, buckets=2).levels == (Fraction(9, 10), Fraction(1, 10))


@every_method
def test_a_matrix_is_answered_row_by_row(method: str) -> None:
    q = Quantiles(levels=(0.25, 0.5, 0.75), epsilon=1, buckets=30, method=method)
    counts = np.zeros((4, 30), np.int64)
    counts[range(4), [3, 9, 27, 0]] = 10**6
    found = q.locate(counts, seeded(1))
    assert found.buckets.tolist() == [[3] * 3, [9] * 3, [27] * 3, [0] * 3]
    assert q.sample(counts[0], seeded(1)).tolist() == [3, 3, 3]
    assert q.sample(np.zeros((0, 30), np.int64)).shape == (0, 3)
    if method == "tree":
        assert found.low is not None
        assert found.low.tolist() == found.buckets.tolist()
    else:
        assert found.low is None


@every_method
@given(counts=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=7, max_size=7), seed=st.integers(0, 50))
def test_no_histogram_is_refused(method: str, counts: list[int], seed: int) -> None:
    found = Quantiles(levels=(0.2, 0.5, 0.7), epsilon=1, buckets=7, method=method).sample(counts, seeded(seed))
    assert found.dtype == np.int64
    assert sorted(found.tolist()) == found.tolist()
    assert 0 <= found.min() <= found.max() < 7


def test_many_levels_take_the_tree_and_few_the_search() -> None:
    kind = {
        k: type(Quantiles(levels=[Fraction(i + 1, k + 1) for i in range(k)], epsilon=1, buckets=1024).event)
        for k in (1, 2, 3, 9)
    }
    assert kind == {1: events.Exponential, 2: events.Composed, 3: events.Composed, 9: events.DiscreteLaplace}


def test_weights_too_fine_for_the_noise_of_a_tree_are_searched() -> None:
    fine = {"levels": DECILES, "epsilon": 0.01, "buckets": 1024, "sensitivity": 2**38}
    assert isinstance(Quantiles(**fine).event, events.Composed)  # type: ignore[arg-type]  # named above
    with pytest.raises(InvalidParameterError, match="2\\*\\*40"):
        Quantiles(**fine, method="tree")  # type: ignore[arg-type]  # named above


@every_method
def test_rank_errors_scale_with_weights_and_shrink_with_epsilon(method: str) -> None:
    one = Quantiles(levels=DECILES, epsilon=1, buckets=64, method=method)
    heavy = Quantiles(levels=DECILES, epsilon=1, buckets=64, sensitivity=1000, method=method)
    precise = Quantiles(levels=DECILES, epsilon=4, buckets=64, method=method)
    assert heavy.rank_error(0.95) == pytest.approx(1000 * one.rank_error(0.95))
    assert precise.rank_error(0.95) == pytest.approx(one.rank_error(0.95) / 4)
    assert one.error < one.rank_error(0.95) == one.interval(0.95) < one.rank_error(0.99)


def test_the_published_bound_for_one_level_holds() -> None:
    """McSherry, Talwar (2007): losing more than (ln n + t)/c has probability at most e^−t; c = ε for a median."""
    q = Quantiles(levels=(0.5,), epsilon=0.5, buckets=1000)
    for t in (1.0, 3.0, 9.0):
        assert q.rank_error(1 - math.exp(-t)) <= (math.log(1000) + t) / 0.5


def test_intervals_widen_with_confidence() -> None:
    q, counts = Quantiles(levels=(0.5,), epsilon=1, buckets=64, method="tree"), np.full(64, 4)
    narrow, wide = (q.locate(counts, seeded(3), confidence=c) for c in (0.5, 0.999))
    assert isinstance(narrow, Located)
    assert narrow.low is not None
    assert wide.low is not None
    assert narrow.high is not None
    assert wide.high is not None
    assert wide.low <= narrow.low <= narrow.buckets <= narrow.high <= wide.high
    assert wide.high - wide.low > narrow.high - narrow.low


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ({"levels": ()}, "distinct"),
        ({"levels": (0.5, 0.5)}, "distinct"),
        ({"levels": (0.5, Fraction(1, 2))}, "distinct"),
        ({"levels": 0.5}, "sequence"),
        ({"levels": "half"}, "sequence"),
        ({"levels": {0.5: 1}}, "sequence"),
        ({"levels": (0,)}, "strictly between"),
        ({"levels": (1,)}, "strictly between"),
        ({"levels": (-0.5,)}, "strictly between"),
        ({"levels": (math.nan,)}, "finite"),
        ({"levels": (True,)}, "finite"),
        ({"levels": ("0.5",)}, "finite"),
        ({"levels": (math.pi / 4,)}, "million"),
        ({"levels": (1e-320,)}, "million"),
        ({"buckets": 0}, "buckets"),
        ({"buckets": 2**25}, "buckets"),
        ({"buckets": 2.0}, "buckets"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 5e-324}, "2\\*\\*500"),
        ({"sensitivity": 0.5}, "sensitivity"),
        ({"replace": "yes"}, "replace"),
        ({"method": "best"}, "no method named"),
        ({"method": None}, "no method named"),
    ],
)
def test_parameters_out_of_range_are_refused(what: dict[str, Any], match: str) -> None:
    with pytest.raises(DefocusError, match=match) as refusal:
        Quantiles(**{"levels": (0.5,), "epsilon": 1, "buckets": 8, **what})
    assert refusal.value.fix


@every_method
@pytest.mark.parametrize(
    "counts",
    [
        [1] * 7,
        np.ones((2, 7), np.int64),
        np.ones((2, 8)),
        np.ones((2, 2, 8), np.int64),
        [True] * 8,
        "12345678",
        None,
        [0.5] * 8,
    ],
    ids=lambda x: type(x).__name__,
)
def test_unfit_histograms_are_refused(method: str, counts: Any) -> None:
    q = Quantiles(levels=(0.5,), epsilon=1, buckets=8, method=method)
    for act in (q.check, q.sample, q.locate):
        with pytest.raises(UnfitDataError):
            act(counts)


HALF = Fraction(1, 2)
QUARTILES = (Fraction(1, 4), HALF, Fraction(3, 4))
Law = dict[tuple[int, ...], float]
Part = tuple[tuple[int, int], tuple[int, int], int]


def below(counts: Sequence[int], bucket: int, step: int, steps: int) -> Fraction:
    return sum(counts[:bucket]) + Fraction(step * counts[bucket], steps)


def loss(counts: Sequence[int], bucket: int, target: Fraction) -> Fraction:
    return max(Fraction(0), sum(counts[:bucket]) - target, target - sum(counts[: bucket + 1]))


def law(search: Search, counts: Sequence[int], steps: int) -> Law:
    """The law of everything that is chosen: for a cut, bucket and step; for a level without cut, the bucket."""
    found: Law = {(): 1.0}
    for node in search.nodes:
        found = extended(search, node, counts, ((0, 0), (search.buckets - 1, steps), steps), found)
    return found


def extended(search: Search, node: Node | None, counts: Sequence[int], part: Part, before: Law) -> Law:
    """The law ``before``, followed by what is chosen from ``node`` on, in a part with so many steps in a bucket."""
    if node is None:
        return before
    low, high, steps = part
    start, end = below(counts, *low, steps), below(counts, *high, steps)
    target, c = start + node.level * (end - start), float(search.rate(node))
    weights: Law = {}
    for t in range(low[0], high[0] + 1):
        if node.splits:
            first, last = low[1] if t == low[0] else 0, high[1] if t == high[0] else steps
            for x in range(first, last + 1):
                weights[t, x] = math.exp(-c * float(abs(below(counts, t, x, steps) - target)))
        else:
            weights[t,] = math.exp(-c * float(loss(counts, t, target)))
    total = math.fsum(weights.values())
    out: Law = {}
    for seen, p in before.items():
        for place, weight in weights.items():
            found: Law = {(*seen, *place): p * weight / total}
            if node.splits:
                cut = (place[0], place[-1])
                found = extended(search, node.lower, counts, (low, cut, steps), found)
                found = extended(search, node.upper, counts, (cut, high, steps), found)
            out |= found
    return out


def moves(buckets: int, most: int) -> Iterator[tuple[int, ...]]:
    """All that one user may add."""
    return (d for d in itertools.product(range(most + 1), repeat=buckets) if 0 < sum(d) <= most)


def ratios(p: Law, q: Law) -> list[float]:
    return [math.log(p[o] / q[o]) for o in p]


def span(p: Law, q: Law) -> float:
    return max(ratios(p, q)) - min(ratios(p, q))


def plus(h: Sequence[int], d: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(h, d, strict=True))


UNEVEN = (Fraction(1, 10), Fraction(1, 5), Fraction(9, 10))
FIFTHS = (Fraction(1, 5), Fraction(2, 5), Fraction(3, 5), Fraction(4, 5))
CASES = [
    ("median", (HALF,), 3, 2),
    ("high level", (Fraction(9, 10),), 3, 2),
    ("two levels", (HALF, Fraction(9, 10)), 3, 1),
    ("quartiles", QUARTILES, 2, 2),
    ("quartiles of three buckets", QUARTILES, 3, 1),
    ("uneven levels", UNEVEN, 2, 2),
    ("four levels", FIFTHS, 2, 1),
]


@pytest.mark.parametrize(("name", "levels", "buckets", "most"), CASES, ids=[c[0] for c in CASES])
def test_no_user_is_easier_to_see_than_promised_in_all_that_is_chosen(
    name: str, levels: tuple[Fraction, ...], buckets: int, most: int
) -> None:
    """Cuts are counted as seen, all small histograms and all users are tried, and accountants are asked too."""
    del name
    search = Search(levels, Fraction(3, 2), buckets, most)
    laws = {h: law(search, h, 2) for h in itertools.product(range(4), repeat=buckets)}
    pairs = [(laws[h], laws[plus(h, d)]) for h in laws for d in moves(buckets, most) if plus(h, d) in laws]
    assert len(pairs) > 15
    assert max(abs(x) for p, q in pairs for x in ratios(p, q)) <= 1.5 + 1e-9
    for epsilon in (0.0, 0.3, 0.8):
        promised = account(search.event).delta(epsilon)
        factor = math.exp(epsilon)
        for p, q in (*pairs, *((q, p) for p, q in pairs)):
            assert math.fsum(max(0.0, p[o] - factor * q[o]) for o in p) <= promised + 1e-12


@pytest.mark.parametrize(
    ("levels", "h", "at", "used"),
    [
        ((Fraction(9, 10),), (10, 10, 0, 0), 3, 0.77),
        (QUARTILES, (63, 0, 60, 0, 0, 0), 2, 0.89),
        (QUARTILES, (40, 20, 40, 3, 20), 0, 0.85),
        (UNEVEN, (3, 23, 50, 40, 40), 1, 0.8),
    ],
    ids=["one level", "quartiles", "other quartiles", "uneven"],
)
def test_the_promise_is_nearly_used_somewhere(
    levels: tuple[Fraction, ...], h: tuple[int, ...], at: int, used: float
) -> None:
    search = Search(levels, Fraction(3, 2), len(h), 2)
    seen = ratios(law(search, h, 2), law(search, plus(h, [2 * (i == at) for i in range(len(h))]), 2))
    assert used * 1.5 <= max(map(abs, seen)) <= 1.5


@pytest.mark.parametrize("level", [HALF, Fraction(9, 10), Fraction(1, 10)])
def test_one_level_has_a_range_of_exactly_epsilon(level: Fraction) -> None:
    """A larger rate would exceed it."""
    search = Search((level,), Fraction(3, 2), 6, 2)
    above = [(2, 50, 2, 2, 0, 0), (90, 90, 5, 5, 0, 0), (2, 5, 60, 5, 0, 0), (0, 20, 20, 2, 1, 0)]
    spans = [
        span(law(search, h, 2), law(search, plus(h, d), 2))
        for each in above
        for h in (each, each[::-1])
        for d in ((2, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 2))
    ]
    assert max(spans) == pytest.approx(1.5, abs=1e-9)


def test_the_two_parts_of_a_cut_share_one_range() -> None:
    """Given the cut, a user with weight on both sides moves each part by their weight in it: together epsilon'."""
    search, half = Search(QUARTILES, Fraction(2), 8, 2), (2, 5, 2, 0)
    (root,) = search.nodes
    cut, end = (4, 0), (7, 2)

    def spans(h: tuple[int, ...], g: tuple[int, ...]) -> float:
        sides: list[tuple[Node | None, Part]] = [(root.lower, ((0, 0), cut, 2)), (root.upper, (cut, end, 2))]
        laws = [[extended(search, node, x, part, {(): 1.0}) for x in (h, g)] for node, part in sides]
        return sum(span(*pair) for pair in laws)

    both = half + half
    assert spans(both, plus(both, (0, 0, 0, 1, 0, 0, 0, 1))) == pytest.approx(1, abs=1e-9)
    assert spans(both, plus(both, (0, 0, 0, 0, 0, 0, 0, 2))) == pytest.approx(1, abs=1e-9)
    rng = np.random.default_rng(1)
    for _ in range(300):
        h = tuple(rng.integers(0, 9, 8).tolist())
        d = np.bincount(rng.integers(0, 8, 2), minlength=8).tolist()
        assert spans(h, plus(h, d)) <= 1 + 1e-9


def outcomes(search: Search, law_of_all: Law) -> Law:
    """The law of the buckets alone: of each cut only its bucket is shown, and crossed levels are put in order."""
    shapes = []

    def visit(node: Node | None) -> None:
        if node is not None:
            shapes.append((node.index, node.splits))
            visit(node.lower)
            visit(node.upper)

    for node in search.nodes:
        visit(node)
    found: Law = {}
    for seen, p in law_of_all.items():
        rest = iter(seen)
        buckets = {}
        for index, splits in shapes:
            buckets[index] = next(rest)
            if splits:
                next(rest)
        key = tuple(sorted(buckets.values()))
        found[key] = found.get(key, 0.0) + p
    return found


def fit(found: Sequence[tuple[int, ...]], expected: Law) -> float:
    seen = Counter(found)
    common = [o for o, p in expected.items() if p * len(found) >= 8]
    counts = [seen[o] for o in common]
    means = [expected[o] * len(found) for o in common]
    if len(found) - sum(means) > 1:
        counts.append(len(found) - sum(counts))
        means.append(len(found) - sum(means))
    scale = len(found) / sum(means)
    return float(stats.chisquare(counts, [m * scale for m in means]).pvalue)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("levels", "counts"),
    [((HALF,), (6, 0, 9, 0, 8)), ((Fraction(1, 5), Fraction(9, 10)), (6, 0, 12, 8)), (QUARTILES, (12, 0, 70, 0))],
    ids=["one level", "two levels", "a heavy bucket is cut"],
)
def test_samples_have_the_declared_law_and_no_other(
    levels: tuple[Fraction, ...], counts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantiles, "STEPS", 8)
    monkeypatch.setattr(quantiles, "_LIGHT", 2)
    search = Search(levels, Fraction(1), len(counts), 2)
    rows = np.tile(np.array(counts), (5000, 1))
    found = [tuple(row) for row in search.locate(rows, seeded(17)).tolist()]
    assert fit(found, outcomes(search, law(search, counts, 8))) > 1e-4
    for off in (Fraction(11, 10), Fraction(10, 11)):
        wrong = Search(levels, off**2, len(counts), 2)
        assert fit(found, outcomes(wrong, law(wrong, counts, 8))) < 1e-6


@given(
    counts=st.lists(st.integers(0, 2**62), min_size=1, max_size=12),
    level=st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50),
)
def test_quick_bounds_never_exceed_the_exact_distance_and_are_close(counts: list[int], level: Fraction) -> None:
    row = Row(np.array(counts, np.int64))
    target = level * sum(counts)
    bounds, shift = row.bounds(0, len(counts) - 1, target), row.shift
    for t, bound in enumerate(bounds.tolist()):
        exact = loss(counts, t, target)
        assert row.distance(t, target) == exact
        assert Fraction(bound, 1 << shift) <= exact <= Fraction(bound + 1, 1 << shift) or bound == 2**63 - 1


@given(
    weight=st.integers(1, 2**50),
    start=st.integers(0, STEPS),
    length=st.integers(1, STEPS + 1),
    before=st.integers(0, 2**50),
    rank=st.fractions(-1, 2),
    speed=st.fractions(Fraction(1, 2**40), 8).filter(bool),
)
def test_cells_of_a_heavy_bucket_hold_every_step_once_and_bound_it(  # noqa: PLR0917  # hypothesis names them
    weight: int, start: int, length: int, before: int, rank: Fraction, speed: Fraction
) -> None:
    row = Row(np.array([before, weight]))
    end = min(start + length, STEPS + 1)
    target = max(Fraction(0), before + weight * rank)
    aim = quantiles._Aim(row, target, speed, None)
    cells = aim._cells(1, start, end - start, 0).T.tolist()
    steps = sorted((x, x + count) for _, x, count, _ in cells)
    assert steps[0][0] == start
    assert steps[-1][1] == end
    assert all(a[1] == b[0] for a, b in itertools.pairwise(steps))
    for bucket, x, count, bound in cells:
        for step in {x, x + count - 1, x + count // 2}:
            assert Fraction(bound, 1 << row.shift) <= abs(row.at((bucket, step)) - target)


def test_cuts_and_targets_use_the_linear_weight_before_a_place() -> None:
    row = Row(np.array([4, 8, 2]))
    assert [row.at((0, 0)), row.at((1, STEPS // 2)), row.at((2, STEPS))] == [0, 8, 14]
    assert Row(np.array([-5, 3])).at((1, STEPS)) == 3


@given(st.integers(1, 40))
def test_the_plan_finds_every_level_once_in_as_few_rounds_as_possible(k: int) -> None:
    levels = tuple(Fraction(i + 1, k + 1) for i in range(k))
    nodes = list(quantiles._all(plan(levels)))
    assert sorted(node.index for node in nodes) == list(range(k))
    assert depth(plan(levels)) == (k if k <= 2 else k.bit_length())
    assert all(0 < node.level < 1 for node in nodes)


def test_levels_within_a_part_are_relative_to_it() -> None:
    (root,) = plan((Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)))
    assert root.lower is not None
    assert root.upper is not None
    assert (root.level, root.lower.level, root.upper.level) == (HALF, Fraction(1, 5), Fraction(4, 5))


def test_errors_on_the_way_to_a_level_count_by_how_far_they_move_its_target() -> None:
    """Without any noise but an error e of the cut, the targets move by exactly the stated share of e."""
    levels = (Fraction(1, 8), Fraction(1, 4), Fraction(3, 8), HALF, Fraction(3, 4))
    paths = {path[-1][1].index: path for path in quantiles._paths(plan(levels))}
    for i, level in enumerate(levels):
        low, high, moved = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(0)), {}
        for _, node in paths[i]:
            exact = low[0] + node.level * (high[0] - low[0])
            error = low[1] + node.level * (high[1] - low[1]) + (1 if node is paths[i][0][1] else 0)
            moved[node.index] = error
            low, high = (low, (exact, error)) if level < levels[node.index] else ((exact, error), high)
        assert float(moved[i]) == pytest.approx(paths[i][0][0])


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["spread", "one bucket", "two far apart", "sparse"])
@pytest.mark.parametrize("levels", [(HALF,), QUARTILES], ids=["median", "quartiles"])
def test_the_rank_error_is_rarely_exceeded_whatever_the_histogram(name: str, levels: tuple[Fraction, ...]) -> None:
    histograms: dict[str, Any] = {
        "spread": np.full(64, 3),
        "one bucket": np.where(np.arange(64) == 20, 5000, 0),
        "two far apart": np.where(np.isin(np.arange(64), [0, 63]), 40, 0),
        "sparse": np.where(np.arange(64) % 9 == 4, 11, 0),
    }
    counts = histograms[name]
    search = Search(levels, 1, 64, 1)
    found = search.locate(np.tile(counts, (400, 1)), seeded(5))
    for i, level in enumerate(levels):
        target = level * int(counts.sum())
        errors = [float(loss(counts.tolist(), t, target)) for t in found[:, i].tolist()]
        assert np.mean([e > search.rank_error(0.05) for e in errors]) <= 0.05
        assert np.mean(errors) <= search.error * 1.05


def test_weights_of_any_64_bits_are_searched() -> None:
    search = Search(QUARTILES, 1, 4, 1)
    rows = np.array([[2**63 - 1] * 4, [0, 0, 0, 2**63 - 1], [-(2**63), 5, -1, 0], [0, 0, 0, 0]])
    found = search.locate(rows, seeded(2))
    assert found[0].tolist() in ([0, 1, 2], [0, 2, 3], [1, 2, 3], [0, 1, 3], [0, 2, 2], [1, 1, 2], [1, 2, 2], [1, 1, 3])
    assert found[1].tolist() == [3, 3, 3]
    assert np.all(np.diff(found, axis=1) >= 0)


@pytest.mark.statistical
def test_an_empty_histogram_gives_uniform_buckets() -> None:
    found = Search((HALF,), 1, 10, 1).locate(np.zeros((5000, 10), np.int64), seeded(9))[:, 0]
    assert stats.chisquare(np.bincount(found, minlength=10)).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), 1, 10**6, 2**400])
@pytest.mark.parametrize("weight", [1, 1000, 2**40 + 1, 2**62 + 1])
def test_a_bucket_whose_steps_lie_far_apart_is_cut_without_many_proposals(weight: int, epsilon: Any) -> None:
    """Where the nearest cut is still far from the target, distances count from that of the nearest."""
    counts = np.array([3, weight, 0, 7, weight // 3])
    calls = 0

    class Counting(Bits):
        def words(self, n: int) -> Any:
            return source.words(n)

        def integer(self, nbits: int) -> int:
            nonlocal calls
            calls += 1
            return source.integer(nbits)

    source = seeded(4)
    levels = (Fraction(1, 7), Fraction(1, 3), Fraction(5, 7))
    Search(levels, epsilon, 5, 1).locate(np.tile(counts, (20, 1)), Counting())
    assert calls < 20 * 3 * 20
