"""Several owners who answer as one: the same integers, the same noise, and nobody's refusal stops the others."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, LedgerUnavailableError, TooFewPartiesError
from defocus.federated import Coordinator, federation
from defocus.federated.lockstep import Link
from defocus.mechanisms import Gaussian, Laplace
from defocus.mechanisms.noise_shares import NoiseShare
from defocus.privacy import account
from defocus.tables import Table

ROWS = 1200
COLUMNS: dict[str, Any] = {"stay": (0, 30), "ward": ["A", "B", "C"], "code": list(range(60))}
SQL = "SELECT ward, COUNT(*) AS visits, SUM(stay) AS days, AVG(stay) AS mean FROM visits GROUP BY ward"


@pytest.fixture
def rows() -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {
        "patient": random.integers(0, 300, ROWS),
        "ward": random.choice(["A", "B", "C"], ROWS),
        "stay": random.integers(0, 40, ROWS),
        "code": random.integers(0, 60, ROWS),
    }


@pytest.fixture
def opened(rows: dict[str, np.ndarray], tmp_path: Path) -> Iterator[Callable[..., Table]]:
    tables: list[Table] = []

    def make(name: str, mask: np.ndarray, **how: Any) -> Table:
        found = pa.table({column: values[mask] for column, values in rows.items()})
        facts: dict[str, Any] = {"columns": COLUMNS, "budget": dp.Budget(1e7, 1e-5)}
        facts |= {"unit": dp.user("patient"), **how}
        tables.append(dp.open(found, ledger=tmp_path / name, name="visits", **facts))
        return tables[-1]

    yield make
    for table in tables:
        table.close()


@pytest.fixture
def sites(opened: Callable[..., Table], rows: dict[str, np.ndarray]) -> dict[str, Table]:
    return {f"site {i}": opened(f"site{i}", rows["patient"] % 4 == i) for i in range(4)}


def exact(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """What meets noise at each site, or alone."""
    seen: list[list[int]] = []
    for kind in (Laplace, Gaussian, NoiseShare):
        plain = kind.sample

        def watched(self: Any, value: Any, bits: Any = None, plain: Any = plain) -> Any:
            seen.append(np.asarray(value).ravel().tolist())
            return plain(self, value, bits)

        monkeypatch.setattr(kind, "sample", watched)
    return seen


@pytest.mark.parametrize("rows_of_one", [3, None])
def test_before_noise_the_sites_add_up_to_their_union(
    sites: dict[str, Table], opened: Callable[..., Table], rows_of_one: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a declared bound, and with one that is found in a first step."""
    union = opened("union", np.ones(ROWS, np.bool_))
    together = federation(sites)
    if rows_of_one is not None:
        union, together = union.bound(rows=rows_of_one), together.bound(rows=rows_of_one)
    seen = exact(monkeypatch)
    answer = together.sql(SQL, epsilon=1e6)
    steps = len(seen) // 4
    added = [np.sum([one for one in seen if len(one) == length], axis=0) for length in {len(one): 0 for one in seen}]
    assert steps >= 1
    seen.clear()
    alone = union.sql(SQL, epsilon=1e6)
    assert {tuple(one) for one in seen} == {tuple(one.tolist()) for one in added}
    for name in ("visits", "days", "mean"):
        assert answer[name].values.tolist() == pytest.approx(alone[name].values.tolist(), abs=0.05)
    assert answer["visits"].errors.tolist() == pytest.approx((alone["visits"].errors * (4 / 3) ** 0.5).tolist())


def test_every_site_is_charged_with_the_whole_event(sites: dict[str, Table]) -> None:
    federation(sites).sql(SQL, epsilon=1)
    for table in sites.values():
        assert account(table.ledger.events()).epsilon() == pytest.approx(1)


@pytest.mark.parametrize(("dropouts", "colluding"), [(0, 0), (1, 0), (0, 2)])
def test_more_noise_is_added_for_sites_that_are_not_counted_on(
    sites: dict[str, Table], dropouts: int, colluding: int
) -> None:
    ask = {"epsilon": 1}
    plain = sites["site 0"].sql_query(SQL).preview(**ask)
    shared = federation(sites, dropouts=dropouts, colluding=colluding).sql_query(SQL).preview(**ask)
    stay = 4 - dropouts  # of a share of each of these, all but those that others may know make up the noise
    factor = (stay / (stay - max(1, colluding))) ** 0.5
    assert shared.columns[0].error == pytest.approx(plain.columns[0].error * factor, rel=0.01)
    assert shared.event == plain.event


def test_keys_that_each_site_finds_and_pays_for_apart_are_declared_to_all(sites: dict[str, Table]) -> None:
    """Over sites no keys are found: each releases its own, and the union of what is released is a list of keys."""
    found: set[int] = set()
    for table in sites.values():
        own = table.bound(rows=4).group_by("code", keys=None).agg(n=dp.count()).release(epsilon=20, delta=1e-6)
        found |= {int(key) for key in own.to_arrow()["code"].to_pylist()}
    assert found
    together = federation(sites).bound(rows=4).group_by("code", keys=sorted(found)).agg(n=dp.count())
    answer = together.release(epsilon=1e4)
    assert answer.to_arrow()["code"].to_pylist() == sorted(found)
    for table in sites.values():
        assert account(table.ledger.events()).epsilon(1e-6) > 1e4  # both releases, in the ledger of each


@pytest.mark.parametrize("sets", [[["ward"], ["code"]], [[], ["ward"], ["ward", "code"]]], ids=["tables", "tree"])
def test_sets_of_groups_are_weighed_by_the_noise_that_is_left(sites: dict[str, Table], sets: Any) -> None:
    """How much that is says each sum when it is over: what was planned for more must not scale any number."""
    ask = {"keys": {"ward": ["A", "B", "C"], "code": list(range(60))}, "sets": sets}
    found = [
        federation(sites, dropouts=gone).bound(rows=4).group_by("ward", "code", **ask).agg(n=dp.count())
        for gone in (0, 1)
    ]
    one, two = (each.release(epsilon=1e5)["n"] for each in found)
    assert one.values.tolist() == pytest.approx(two.values.tolist(), abs=0.1)
    assert one.errors.tolist() == pytest.approx(two.errors.tolist(), rel=1e-3)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_whatever_is_asked_allowing_for_drop_outs_changes_no_number_and_no_error(
    sites: dict[str, Table], delta: float | None
) -> None:
    ask = {
        "n": dp.count(),
        "s": dp.sum("stay"),
        "m": dp.mean("stay"),
        "v": dp.variance("stay"),
        "p": dp.count_units(),
        "r": dp.ratio("stay", "code"),
        "c": dp.covariance("stay", "code"),
    }
    found = [federation(sites, dropouts=gone).bound(rows=60).group_by("ward").agg(**ask) for gone in (0, 1)]
    one, two = (each.release(epsilon=1e6, delta=delta) for each in found)
    for name in ask:
        assert one[name].values.tolist() == pytest.approx(two[name].values.tolist(), rel=1e-2, abs=0.5)
        assert one[name].errors.tolist() == pytest.approx(two[name].errors.tolist(), rel=1e-2)


@pytest.mark.parametrize("gone", [0, 1])
def test_noise_for_drop_outs_that_did_not_happen_is_taken_off_and_the_answer_says_so(
    sites: dict[str, Table], monkeypatch: pytest.MonkeyPatch, gone: int
) -> None:
    """Its errors are those of the noise that is there, and its numbers the exact ones with it, integer by integer."""
    brought: list[np.ndarray] = []
    plain = Link._added

    def noted(self: Link, vector: Any, spare: Any) -> Any:
        brought.append(vector)
        return plain(self, vector, spare)

    monkeypatch.setattr(Link, "_added", noted)
    if gone:
        sites["site 0"].close()
    together = federation(sites, dropouts=1).bound(rows=1)
    ask = "SELECT COUNT(*) AS visits FROM visits"
    alone = sites["site 1"].bound(rows=1).sql_query(ask).preview(epsilon=1).columns[0].error
    foreseen = together.sql_query(ask).preview(epsilon=1).columns[0].error
    answer = together.sql(ask, epsilon=1)
    assert answer["visits"].errors[0] == pytest.approx(alone * ((4 - gone) / (3 - gone)) ** 0.5, rel=1e-3)
    assert foreseen == pytest.approx(alone * (3 / 2) ** 0.5, rel=1e-3)
    assert (np.sum(brought, axis=0) / (1 << 24) == answer["visits"].values).all() == (not gone)


def test_a_person_at_several_sites_moves_the_sum_by_all_of_it(sites: dict[str, Table]) -> None:
    one, two = (federation(sites, overlap=s).sql_query(SQL).preview(epsilon=1) for s in (1, 2))
    assert two.columns[0].error == pytest.approx(2 * one.columns[0].error, rel=0.01)
    assert "at most 2 sites" in " ".join(map(str, two.rules))


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_noise_of_an_answer_has_the_declared_scale_and_no_other(
    sites: dict[str, Table], delta: float | None
) -> None:
    query = federation(sites, dropouts=1).bound(rows=2).group_by("code").agg(visits=dp.count())
    one, two = (query.release(epsilon=0.1, delta=delta)["visits"] for _ in range(2))
    ratio = float(((one.values - two.values) ** 2 / (one.errors**2 + two.errors**2)).mean())
    assert 0.4 < ratio < 2.2  # 60 numbers: variances that are off by the number of sites, or of those honest, show


def test_a_site_that_refuses_takes_no_part_and_the_answer_says_so(
    sites: dict[str, Table], opened: Callable[..., Table], rows: dict[str, np.ndarray]
) -> None:
    poor = opened("poor", rows["patient"] % 4 == 3, budget=dp.Budget(0.1, 1e-5))
    before = poor.ledger.spent()
    answer = federation({**sites, "site 3": poor}, dropouts=1).sql(SQL, epsilon=1)
    told = " ".join(map(str, answer.rules))
    assert "site 3 took no part" in told
    assert poor.ledger.spent() == before
    assert abs(float(answer["visits"].values.sum()) - 900) < 400


def test_a_site_that_is_closed_stops_nobody_else(sites: dict[str, Table]) -> None:
    sites["site 0"].close()
    answer = federation(sites, dropouts=1).sql(SQL, epsilon=1)
    assert "site 0 took no part to the end, and its rows are not in these numbers" in " ".join(map(str, answer.rules))
    with pytest.raises(TooFewPartiesError, match="3 parties answered, but it takes 4") as caught:
        federation(sites).sql(SQL, epsilon=1)
    assert "is closed" in caught.value.what
    for table in sites.values():
        table.close()
    with pytest.raises(LedgerUnavailableError):
        federation(sites, dropouts=1).sql_query(SQL).preview(epsilon=1)


def test_too_many_refusals_leave_no_answer_and_name_the_sites(
    sites: dict[str, Table], opened: Callable[..., Table], rows: dict[str, np.ndarray]
) -> None:
    poor = opened("poor", rows["patient"] % 4 == 3, budget=dp.Budget(0.1, 1e-5))
    with pytest.raises(TooFewPartiesError, match="3 parties answered, but it takes 4") as caught:
        federation({**sites, "site 3": poor}).sql(SQL, epsilon=1)
    assert caught.value.what.endswith(" site 3: its budget does not cover this.")
    assert not any(sites["site 0"].ledger.spent())


def test_purposes_of_a_site_hold_for_that_site(
    sites: dict[str, Table], opened: Callable[..., Table], rows: dict[str, np.ndarray]
) -> None:
    strict = opened("strict", rows["patient"] % 4 == 3, purposes=["care"])
    answer = federation({**sites, "site 3": strict}, dropouts=1).sql(SQL, epsilon=1, purpose="research")
    assert "site 3 took no part" in " ".join(map(str, answer.rules))
    assert not any(strict.ledger.spent())


@pytest.mark.parametrize("moment", [1, 2])
def test_a_site_that_fails_in_the_middle_leaves_an_answer_of_the_others(
    sites: dict[str, Table], monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """It fails when it is about to add its share, in the first or the second step; what it was charged stays."""
    plain, calls = NoiseShare.sample, []

    def failing(self: Any, value: Any, bits: Any = None) -> Any:
        if threading.current_thread().name == "site site 2":
            calls.append(1)
            if len(calls) == moment:
                raise MemoryError
        return plain(self, value, bits)

    monkeypatch.setattr(NoiseShare, "sample", failing)
    answer = federation(sites, dropouts=1).sql(SQL, epsilon=1)
    assert "site 2 took no part to the end, and its rows are not in these numbers" in " ".join(map(str, answer.rules))
    assert any(sites["site 2"].ledger.spent())
    calls.clear()
    with pytest.raises(TooFewPartiesError, match="3 parties answered, but it takes 4") as caught:
        federation(sites).sql(SQL, epsilon=1)
    assert caught.value.what.count("site ") == caught.value.what.count("site 2: ") == 1


def test_a_coordinator_that_fails_leaves_nobody_waiting(
    sites: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Coordinator, "_unmask", failing)
    with pytest.raises(TooFewPartiesError):
        federation(sites).sql(SQL, epsilon=1)


@pytest.mark.parametrize(
    "how",
    [
        {"columns": {**COLUMNS, "stay": (0, 20)}},
        {"columns": {**COLUMNS, "ward": ["A", "B"]}},
        {"columns": {**COLUMNS, "ward": ["C", "B", "A"]}},
        {"bound": dp.tables.Bound(rows=7)},
        {"unit": dp.rows()},
    ],
)
def test_sites_that_declare_other_facts_are_refused_by_name_before_any_charge(
    sites: dict[str, Table], opened: Callable[..., Table], rows: dict[str, np.ndarray], how: dict[str, Any]
) -> None:
    odd = opened("odd", rows["patient"] % 4 == 3, **how)
    with pytest.raises(InvalidParameterError, match="'site 0' and 'odd' would not answer alike"):
        federation({**sites, "odd": odd}).sql(SQL, epsilon=1)
    assert not any(sites["site 0"].ledger.spent())


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        ("SELECT MEDIAN(stay) AS m FROM visits", "do not add up"),
        ("SELECT COUNT(DISTINCT stay) AS m FROM visits", "do not add up"),
    ],
)
def test_what_does_not_add_up_over_sites_is_refused_before_any_charge(
    sites: dict[str, Table], ask: str, match: str
) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        federation(sites).sql(ask, epsilon=1, delta=1e-6)
    assert not any(sites["site 0"].ledger.spent())


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"dropouts": 2}, "too few"),
        ({"overlap": 9}, "cannot be known"),
        ({"colluding": -1}, "colluding"),
    ],
)
def test_federations_that_cannot_hold_are_refused(sites: dict[str, Table], how: Any, match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        federation(sites, **how)
    with pytest.raises(InvalidParameterError, match="one ledger"):
        federation({"a": sites["site 0"], "b": sites["site 0"]})
    with pytest.raises(InvalidParameterError, match="not a table"):
        federation({"a": sites["site 0"], "b": "file.csv"})
    for name in ("nothing_like_it", "synthesise", "close", "ledger"):
        with pytest.raises(AttributeError, match="To fix"):
            getattr(federation(sites), name)
