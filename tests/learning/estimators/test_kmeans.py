"""K-means: starts that keep apart, exact assignment, and what is found."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from sklearn.cluster import KMeans as Plain

from defocus.errors import InvalidParameterError
from defocus.learning import KMeans
from defocus.learning.estimators import kmeans
from defocus.learning.estimators.kmeans import assigned, starts, summed_up
from defocus.mechanisms import Gaussian
from defocus.noise.testing import seeded


@pytest.mark.parametrize(("clusters", "width"), [(1, 1), (3, 1), (8, 2), (20, 30)])
def test_starts_lie_in_the_ball_keep_apart_and_never_change(clusters: int, width: int) -> None:
    found = starts(clusters, width)
    assert found.shape == (clusters, width)
    assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-9
    assert (found == starts(clusters, width)).all()
    apart = np.linalg.norm(found[:, None] - found, axis=2) + np.eye(clusters)
    assert apart.min() > 0.05


def test_a_row_belongs_to_the_first_nearest_centre_whoever_is_beside_it() -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.integers(-4096, 4096, (50, 3)).astype(float), rng.integers(-4096, 4096, (4, 3)).astype(float)
    together = assigned(rows, centres)
    plain = ((rows[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (together == plain).all()
    assert all(assigned(rows[i : i + 1], centres)[0] == together[i] for i in range(50))
    assert assigned(np.zeros((1, 1)), np.array([[1.0], [-1.0]]))[0] == 0


def test_it_finds_clusters_in_the_units_of_the_data() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[110.0, 20.0], [190.0, 20.0], [150.0, 80.0]])
    X = centres[rng.integers(0, 3, 9000)] + rng.normal(0, 3, (9000, 2))
    model = KMeans(3, epsilon=1, delta=1e-6, bounds=([100, 0], [200, 100]), bits=seeded(1)).fit(X)
    order = np.argsort(model.cluster_centers_[:, 0])
    assert model.cluster_centers_[order] == pytest.approx(centres[[0, 2, 1]], abs=1.5)
    assert len(set(model.labels_[:50])) == 3
    assert model.transform(X).shape == (9000, 3)
    assert (model.transform(X).argmin(axis=1) == model.labels_).all()


def test_it_comes_close_to_the_best_clusters_there_are() -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(-0.6, 0.6, (5, 2))[rng.integers(0, 5, 10_000)] + rng.normal(0, 0.05, (10_000, 2))
    best = Plain(5, n_init=5, random_state=0).fit(X).inertia_
    found = KMeans(5, epsilon=1, delta=1e-6, bits=seeded(1)).fit(X).transform(X).min(axis=1)
    assert (found**2).sum() < 1.3 * best


def test_with_few_rows_it_begins_at_fixed_points() -> None:
    found = KMeans(3, epsilon=0.1, delta=1e-6, bits=seeded(1)).fit(np.zeros((4, 2))).cluster_centers_
    assert np.linalg.norm(found, axis=1).max() <= 1
    edge = KMeans(9, epsilon=3, delta=1e-6, bits=seeded(1)).fit(np.ones((400, 2))).cluster_centers_
    assert np.linalg.norm(edge, axis=1).max() <= 1.001


def test_where_the_mean_may_be_noise_starts_are_spread_over_half_the_ball() -> None:
    noise = Gaussian(sigma=Fraction(100), sensitivity=Fraction(1))
    unsure = kmeans._area(np.array([3.0, -5.0, 400.0, 70.0]), 1, noise, 1000)
    assert (unsure.middle.tolist(), unsure.spread) == ([0.0, 0.0], 500.0)
    sure = kmeans._area(np.array([2e6, 0.0, 4000.0, 1e6]), 1, noise, 1000)
    assert sure.middle[0] == pytest.approx(500, rel=1e-4)


def test_it_finds_clusters_of_many_features_that_lie_far_from_the_middle() -> None:
    rng = np.random.default_rng(2)
    X = (
        0.6 + 0.15 * rng.choice([-1, 1], (3, 40))[rng.integers(0, 3, 6000)] + rng.normal(0, 0.05, (6000, 40))
    ) / 40**0.5
    best = Plain(3, n_init=5, random_state=0).fit(X).inertia_
    found = KMeans(3, epsilon=3, delta=1e-6, bits=seeded(1)).fit(X).transform(X).min(axis=1)
    assert (found**2).sum() < 2 * best


def test_refuses_no_clusters_and_no_rounds() -> None:
    with pytest.raises(InvalidParameterError, match="n_clusters"):
        KMeans(0).fit([[0.0]])
    with pytest.raises(InvalidParameterError, match="max_iter"):
        KMeans(max_iter=0).fit([[0.0]])


def test_it_never_holds_a_number_for_every_row_and_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kmeans, "_AT_ONCE", 1 << 14)
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (20_000, 4))
    model = KMeans(2, bits=seeded(1))
    tracemalloc.start()
    try:
        model.fit(X)
        assert tracemalloc.get_traced_memory()[1] < 20_000 * 64 * 8 / 2  # there are 64 small clusters
    finally:
        tracemalloc.stop()
    apart = np.linalg.norm(X[:, np.newaxis] - model.cluster_centers_, axis=2)
    assert model.transform(X) == pytest.approx(apart, abs=1e-6)
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1"]
    assert model.set_output(transform="pandas").transform(X[:2]).shape == (2, 2)


def test_sums_of_clusters_are_exact_however_rows_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows, centres = rng.integers(-4096, 4096, (50, 3)).astype(float), rng.integers(-4096, 4096, (4, 3)).astype(float)
    together, cells = summed_up(rows, centres, 7), assigned(rows, centres)
    assert together[:, :3].tolist() == [rows[cells == k].sum(axis=0).tolist() for k in range(4)]
    assert together[:, 3].tolist() == [7 * (cells == k).sum() for k in range(4)]
    monkeypatch.setattr(kmeans, "_AT_ONCE", 12)
    assert (summed_up(rows, centres, 7) == together).all()
