import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local.making import small_oracle

from defocus.errors import InvalidParameterError
from defocus.local import Client, Memory, Oracle, Server, best, best_mean, choices, mean, oracle, shuffling
from defocus.local.designs import NAMES, NUMERIC_NAMES, Rappor
from defocus.local.designs.rappor import rappor_regression
from defocus.noise.testing import seeded


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in NAMES if name != "rappor"])
def test_estimates_are_unbiased_and_have_the_stated_variance_and_no_other(name: str) -> None:
    """200 categories in 40 runs: the mean squared error over the theory is within 5 %, and 10 % more is excluded."""
    asked, bits = small_oracle(name, 200, 1, outside="refuse"), seeded(17)
    people = np.concatenate([np.zeros(400, np.int64), np.arange(2000) % 200])
    true = np.bincount(people, minlength=200)
    runs = np.array([asked.estimate(asked.encode(people, bits)).counts for _ in range(40)])
    shared = (true * (true - 1)).sum()
    theory = np.array([asked.variance(len(people), int(c), pairs=int(shared - c * (c - 1))) for c in true])
    z = (runs - true) / np.sqrt(theory)
    spread = np.sqrt(2 / z.size)
    assert abs((z**2).mean() - 1) < 4 * spread
    assert abs((z**2).mean() - 1.1) > 2 * spread
    assert abs(z[:, 0].mean()) < 4 / np.sqrt(40)
    assert abs(z.mean(axis=0)).max() < 5 / np.sqrt(40)


@pytest.mark.slow
@pytest.mark.statistical
def test_regression_is_unbiased_and_has_the_stated_variance_and_no_other() -> None:
    asked, bits = oracle("rappor", 20, 3, outside="refuse", width=32, cohorts=8), seeded(4)
    people = np.concatenate([np.zeros(4000, np.int64), np.arange(6000) % 20])
    true = np.bincount(people, minlength=20)
    assert isinstance(asked.design, Rappor)
    theory = rappor_regression(asked.design).variances(true.astype(float), *asked.design.bit_variances())
    runs = np.array([asked.estimate(asked.encode(people, bits)).counts for _ in range(300)])
    z = (runs - true) / np.sqrt(theory)
    assert abs((z**2).mean() - 1) < 0.05
    assert abs(z.mean(axis=0)).max() < 4 / np.sqrt(300)
    stated = asked.estimate(asked.encode(people, bits)).variances
    assert stated == pytest.approx(theory, rel=0.1)
    assert asked.variance(10_000, 4300) == pytest.approx(theory[0], rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_hold_the_truth_as_often_as_they_say(name: str) -> None:
    asked, bits = small_oracle(name, 50, 2, outside="refuse"), seeded(3)
    people = np.repeat(np.arange(50), np.arange(50) * 4)
    intervals = [asked.estimate(asked.encode(people, bits)).interval(0.9) for _ in range(10)]
    true = np.arange(50) * 4
    inside = [(low <= true) & (true <= high) for low, high in intervals]
    assert 0.85 < np.mean(inside) < 0.95


def test_an_oracle_estimates_from_reports_messages_servers_and_states() -> None:
    asked = oracle("k-rr", ["a", "b", "c"], 3, outside="other")
    reports = asked.encode(["a"] * 50 + ["z"] * 10, seeded(1))
    server = asked.server()
    assert server.add(reports.to_bytes())
    found = [asked.estimate(x).counts for x in (reports, reports.to_bytes(), list(reports), server, server.state())]
    for each in found:
        assert np.array_equal(each, found[0])
    estimate = asked.estimate(reports)
    assert estimate.reports == 60
    assert estimate.label(3) == "other"
    assert estimate.top(1)[0][0] == "a"
    assert "60 reports" in repr(estimate)
    assert "unbiased" in estimate._repr_html_()
    assert estimate.frequencies.sum() == pytest.approx(1)


def test_the_description_makes_both_sides_elsewhere() -> None:
    text = oracle("hadamard", 10, 1).to_json()
    again = Oracle.from_json(text)
    assert again == oracle("hadamard", 10, 1)
    server = Server.from_json(text)
    assert server.add(again.client().report(3))


def test_nobody_can_be_estimated() -> None:
    asked = oracle("oue", 10, 1)
    estimate = asked.estimate(asked.encode([]))
    assert estimate.reports == 0
    assert not estimate.counts.any()


def test_a_client_needs_numpy_and_the_standard_library_only() -> None:
    """Every other package is hidden from it, and it encodes and remembers all the same."""
    code = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        first = name.partition(".")[0]
        if first not in sys.stdlib_module_names and first not in {"numpy", "defocus"}:
            raise ModuleNotFoundError(first, name=first)

sys.meta_path.insert(0, Hidden())
from defocus.errors import InvalidParameterError
from defocus.local import Client, Memory
from defocus.local.clients import HistogramClient, PrefixClient, SumClient
for text in sys.stdin.read().splitlines():
    client = Client.from_json(text)
    one, other = client.report(0, nonce=True), client.encode([0, 1]).to_bytes(nonce=True)
    try:
        memory = Memory.from_json(Memory(client.design).to_json())
        print(len(memory.report(0)) == len(one) - 16 and client.design.name in {"rappor", "duchi", "d-bit"})
    except InvalidParameterError:
        print(client.design.name not in {"rappor", "duchi", "d-bit"})
"""
    asked = [small_oracle(name, 10, 1).to_json() for name in NAMES]
    asked += [mean(name, 0, 9, 1).to_json() for name in NUMERIC_NAMES]
    found = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], input="\n".join(asked), capture_output=True, text=True, check=False
    )
    assert found.stdout.split() == ["True"] * len(asked), found.stderr


def test_stated_errors_of_a_sketch_include_collisions_of_a_frequent_category() -> None:
    """Over the choice of hash functions, on average; for one choice it is a rough guess."""
    people = np.concatenate([np.zeros(20_000, np.int64), np.arange(1000) % 50])
    true = np.bincount(people, minlength=50)
    stated = []
    for seed in range(20):
        asked = oracle("cms", 50, 4, rows=4, width=16, seed=seed)
        stated.append(asked.estimate(asked.encode(people, seeded(seed))).variances[7])
    asked = oracle("cms", 50, 4, rows=4, width=16)
    pairs = int((true * (true - 1)).sum() - true[7] * (true[7] - 1))
    assert np.mean(stated) == pytest.approx(asked.variance(21_000, int(true[7]), pairs=pairs), rel=0.2)
    assert asked.variance(21_000, int(true[7]), pairs=pairs) > 10 * asked.variance(21_000, int(true[7]))


@pytest.mark.parametrize("given", [[1, 2, 3], np.arange(3), [None], 7, None, [b"x", 1]])
def test_values_that_nobody_randomised_are_no_reports(given: object) -> None:
    for asked in (oracle("k-rr", 5, 1), mean("duchi", 0, 9, 1)):
        with pytest.raises(InvalidParameterError, match=r"type [^\n]*\nTo fix: randomise values first"):
            asked.estimate(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_nobody_has_an_error(name: str) -> None:
    asked = small_oracle(name, 10, 1)
    nothing: tuple[Any, ...] = (asked.encode([]), [], b"junk", "{}")
    for empty in nothing:
        estimate = asked.estimate(empty)
        assert estimate.reports == 0
        assert np.isnan(estimate.errors).all()
        assert "±" not in repr(estimate)


def test_an_oracle_serves_where_its_design_does() -> None:
    duchi, keys = mean("duchi", 0, 24, 1), (shuffling.Key.generate().public, shuffling.Key.generate().public)
    assert Memory(duchi).design == duchi.design
    assert Client(duchi).design == Server(duchi).design == duchi.design  # type: ignore[arg-type]  # at runtime
    assert shuffling.Round(duchi, 10, *keys) == shuffling.Round(duchi.design, 10, *keys)  # type: ignore[arg-type]
    assert shuffling.amplified(duchi, 10) == shuffling.amplified(duchi.design, 10)
    assert shuffling.local_event(duchi) == shuffling.local_event(duchi.design)
    for make in (Client, Server, Memory, lambda x: shuffling.Round(x, 10, *keys), lambda x: shuffling.amplified(x, 9)):
        with pytest.raises(InvalidParameterError, match=r"got str\.\nTo fix: pass an oracle"):
            make("duchi")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("krr", "k-rr"), ("GRR", "k-rr"), ("OUE", "oue"), ("Basic RAPPOR", "sue"), ("HR", "hadamard"), ("d_bit", "d-bit")],
)
def test_an_oracle_answers_to_the_names_that_papers_use(said: str, meant: str) -> None:
    assert oracle(said, 5, 1).design == oracle(meant, 5, 1).design
    assert mean("1-bit", 0, 1, 1).design == mean("duchi", 0, 1, 1).design


@given(st.integers(2, 3000), st.sampled_from([0.25, 1, 2, 4]))
def test_the_best_is_within_two_percent_of_the_least_variance_and_short(size: int, epsilon: float) -> None:
    found, chosen = choices(size, epsilon), best(size, epsilon)
    least = found[0].variance
    assert [each.variance for each in found] == sorted(each.variance for each in found)
    assert chosen.variance(1) <= 1.02 * least
    assert all(each.report_bytes >= chosen.report_bytes for each in found if each.variance <= 1.02 * least)


def test_randomised_response_wins_where_it_is_known_to() -> None:
    """Wang et al. (2017): when there are fewer than 3 e**epsilon + 2 categories."""
    for epsilon in (1, 2, 3):
        limit = 3 * math.exp(epsilon) + 2
        assert best(2, epsilon).name in {"k-rr", "pgr"}
        assert best(int(limit * 0.5), epsilon).variance(1) <= choices(int(limit * 0.5), epsilon)[0].variance * 1.02
        assert best(int(limit * 4), epsilon).name != "k-rr"


def test_reports_can_be_kept_short_and_large_domains_are_served() -> None:
    assert best(1000, 1, most_bytes=2).report_bytes == 2
    assert best(1_000_000, 1).report_bytes <= 4
    with pytest.raises(InvalidParameterError, match="reports that short"):
        best(1_000_000, 1, most_bytes=1)
    assert best(["a", "b"], 1, outside="other").domain.size == 3
    assert "variance" in repr(choices(10, 1)[0])


def test_the_best_mean_has_the_least_worst_variance() -> None:
    assert best_mean(-1, 1, 1).worst_variance == pytest.approx(4.29, rel=0.01)
    assert best_mean(-1, 1, 4).worst_variance == pytest.approx(0.219, rel=0.01)
