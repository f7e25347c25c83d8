import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import defocus as dp
from defocus.errors import InvalidParameterError, SourceError, UnknownColumnError
from defocus.noise.testing import seeded
from defocus.synthesis import PeopleGenerator, PeopleSynthesiser
from defocus.synthesis.counting import counter_of
from defocus.tables.weights import RowSampler

FACTS: dict[str, Any] = {"sex": ["f", "m"], "day": (0, 99)}


def visits(n: int = 1500) -> pa.Table:
    """People of whom women come more often, and who stay as sick as they were."""
    rng = np.random.default_rng(3)
    found: dict[str, list[Any]] = {"who": [], "sex": [], "day": [], "sick": []}
    for one in range(n):
        woman, sick, day = rng.random() < 0.5, rng.random() < 0.5, int(rng.integers(0, 30))
        for _ in range(min(3, 1 + rng.poisson(1.5 if woman else 0.3))):
            for name, value in zip(found, (one, "f" if woman else "m", day, bool(sick)), strict=True):
                found[name].append(value)
            sick, day = sick if rng.random() < 0.9 else not sick, day + int(rng.integers(5, 30))
    return pa.table(found)


def opened(where: Path, data: Any, **more: Any) -> Any:
    given = {"unit": dp.user("who"), "budget": dp.Budget(20, 1e-3), "name": "v", "columns": FACTS, **more}
    return dp.open(data, ledger=where / "a.ledger", **given)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PeopleGenerator:
    with opened(tmp_path_factory.mktemp("made"), visits()) as table:
        how = {"order": "day", "person": ["sex"], "bits": seeded(1)}
        found: PeopleGenerator = table.bound(rows=3).synthesise(epsilon=8, delta=1e-6, **how)
        charges = [entry for entry in table.ledger.entries() if entry.kind == "charge"]
        assert len(charges) == 1
        return found


@pytest.mark.slow
def test_rows_per_person_dependence_and_order_are_kept(made: PeopleGenerator) -> None:
    persons, rows = made.sample_tables(3000, bits=seeded(2))
    assert persons.schema == pa.schema([("who", pa.int64()), ("sex", pa.string())])
    assert rows.schema == pa.schema([("who", pa.int64()), ("day", pa.int64()), ("sick", pa.bool_())])
    assert set(rows["who"].to_pylist()) <= set(persons["who"].to_pylist())  # the foreign key
    frame, real = made.sample(3000, bits=seeded(2)).to_pandas(), visits().to_pandas()
    for data in (frame, real):
        data["before"] = data.groupby("who").sick.shift()
        data["gap"] = data.groupby("who").day.diff()
    for sex in ("f", "m"):
        often = [data[data.sex == sex].groupby("who").size().mean() for data in (frame, real)]
        assert often[0] == pytest.approx(often[1], abs=0.15)
    pairs = frame.dropna(subset=["before", "sick"])
    assert (pairs.sick.astype(bool) == pairs.before.astype(bool)).mean() > 0.8
    assert frame.gap.min() >= 0
    assert frame.gap.mean() == pytest.approx(real.gap.mean(), rel=0.3)


@pytest.mark.slow
def test_people_are_drawn_given_a_condition_and_kept_in_a_file(made: PeopleGenerator, tmp_path: Path) -> None:
    persons, rows = made.sample_tables(50, where="sex = 'f'")
    assert set(persons["sex"].to_pylist()) == {"f"}
    assert persons.num_rows == 50
    assert rows.num_rows > 50
    made.save(tmp_path / "p.json")
    again = PeopleGenerator.load(tmp_path / "p.json")
    assert again.sample(20, bits=seeded(4)).equals(made.sample(20, bits=seeded(4)))
    assert "persons" not in made.explain() or made.distance < 0.2
    (tmp_path / "x.json").write_text("{}", "utf-8")
    with pytest.raises(SourceError, match="saved people"):
        PeopleGenerator.load(tmp_path / "x.json")
    with pytest.raises(InvalidParameterError, match="Too few"):
        made.sample(5, where="sex = 'x'")


@pytest.mark.slow
def test_a_second_table_has_people_without_any_row(tmp_path: Path) -> None:
    patients = pa.table({"who": range(2000), "sex": ["f", "m"] * 1000})
    data = visits().drop_columns(["sex"])
    with opened(tmp_path, data, private={"patients": patients}, columns={"day": (0, 99)}) as table:
        how = {"order": "day", "person": ["sex"], "persons": "patients", "columns": {"sex": ["f", "m"]}}
        made = table.bound(rows=3).synthesise(epsilon=8, delta=1e-6, **how)
        persons, rows = made.sample_tables(bits=seeded(5))
        assert persons.num_rows == pytest.approx(2000, abs=60)
        assert len(set(rows["who"].to_pylist())) == pytest.approx(1500, abs=90)


def small_tables() -> Iterator[list[tuple[int, str, int, bool | None]]]:
    """Small tables with odd people: many rows, ties, nothing but missing values."""
    rng = np.random.default_rng(0)
    for people in (1, 2, 3):
        for _ in range(3):
            yield [
                (one, "fmx"[rng.integers(3)], int(rng.integers(-5, 120)), (True, False, None)[rng.integers(3)])
                for one in range(people)
                for _ in range(rng.integers(1, 9))
            ]


@pytest.mark.slow
def test_no_person_moves_any_marginal_of_a_view_by_more_than_is_planned(tmp_path: Path) -> None:
    """By brute force: every person of small tables is left out in turn, and all marginals of three columns compared."""
    kinds = pa.schema([("who", pa.int64()), ("sex", pa.string()), ("day", pa.int64()), ("sick", pa.bool_())])
    for number, rows in enumerate(small_tables()):
        people = sorted({row[0] for row in rows})
        variants = [rows, *([row for row in rows if row[0] != gone] for gone in people)]
        counted: list[list[tuple[int, Any]]] = []
        for place, variant in enumerate(variants):
            data = pa.Table.from_pylist([dict(zip(kinds.names, row, strict=True)) for row in variant], schema=kinds)
            home = tmp_path / f"{number}-{place}"
            home.mkdir()
            with opened(home, data) as table:
                wanted = PeopleSynthesiser(table.bound(rows=2), "day", ["sex"])
                counted.append([])
                for view in wanted._views():
                    counter = counter_of(
                        view.rows, view.domains, bound=view.bound, grid=view.grid, chance=RowSampler.drawn(seeded(1))
                    )
                    sets = list(itertools.combinations(range(len(view.domains)), 2))
                    found = counter.counts(sets, [np.arange(domain.size) for domain in view.domains])
                    counted[-1].append((view.weight, found))
        for other in counted[1:]:
            for (weight, mine), (_, theirs) in zip(counted[0], other, strict=True):
                for one, two in zip(mine, theirs, strict=True):
                    assert np.abs(one - two).sum() <= weight
                    assert (one >= two).all()  # nobody else's rows changed


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"order": "when"}, UnknownColumnError, "when"),
        ({"order": "sex"}, InvalidParameterError, "never changes"),
        ({"person": "sex"}, InvalidParameterError, "list"),
        ({"columns": {"sex": None}}, InvalidParameterError, "to be found"),
        ({"accept": 2}, InvalidParameterError, "accept"),
    ],
)
def test_what_cannot_be_made_is_refused_before_any_charge(change: Any, error: Any, word: str, tmp_path: Path) -> None:
    with opened(tmp_path, visits(5)) as table:
        with pytest.raises(error, match=word) as caught:
            table.synthesise(**{"epsilon": 1, "delta": 1e-6, "order": "day", "person": ["sex"], **change})
        assert "To fix" in str(caught.value)
        assert not [entry for entry in table.ledger.entries() if entry.kind == "charge"]


def test_the_preview_is_free_and_rows_of_single_people_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, visits(5)) as table:
        shown = PeopleSynthesiser(table.bound(rows=2), "day", ["sex"]).preview(epsilon=1, delta=1e-6)
        assert [column.name for column in shown.columns] == ["persons", "rows"]
        with pytest.raises(InvalidParameterError, match="a person may have several"):
            PeopleSynthesiser(table.per_person(day="MAX(day)"), "day")


def test_a_whole_table_of_persons_is_charged_to_everybody(tmp_path: Path) -> None:
    """Whichever part of the visits is asked about: all persons are counted."""
    who = list(range(60))
    visits = pa.table({"who": who, "day": [i % 9 for i in who], "h": ["A" if i < 20 else "B" for i in who]})
    persons = pa.table({"who": who, "sex": ["f" if i % 2 else "m" for i in who]})
    how: dict[str, Any] = {"parts": dp.parts("h", people="in one part"), "private": {"persons": persons}}
    how |= {"columns": {"day": (0, 9), "h": ["A", "B"]}, "budget": dp.Budget(20, 1e-3), "ledger": tmp_path / "a"}
    with dp.open(visits, unit=dp.user("who"), name="v", **how) as table:
        part = table.part("A").bound(rows=1)
        asked: dict[str, Any] = {"order": "day", "person": ["sex"], "columns": {"sex": ["f", "m"]}, "only": ["day"]}
        before = table.part("B").remaining()
        dp.synthesis.PeopleSynthesiser(part, persons="persons", **asked).fit(epsilon=5, delta=1e-6)
        assert table.part("B").remaining() != before


@pytest.mark.slow
def test_what_a_refusal_of_intervals_advises_has_intervals(tmp_path: Path) -> None:
    """One row of each person, with features: share of sick days and number of visits."""
    data = visits(600)
    how: dict[str, Any] = {"unit": dp.user("who"), "budget": dp.Budget(30, 1e-4), "ledger": tmp_path / "a", "name": "v"}
    with dp.open(data, columns=FACTS, **how) as table:
        people = table.bound(rows=4).synthesise(epsilon=6, delta=1e-6, order="day", person=["sex"], bits=seeded(1))
        with pytest.raises(InvalidParameterError, match=r"per_person\(…\)\.synthesise") as caught:
            people.infer(lambda rows: (rows.num_rows, 0.0))
        assert "infer has intervals" in caught.value.fix
        single = table.per_person(visits="COUNT(*)", sick="BOOL_OR(sick)")
        made = single.synthesise(epsilon=6, delta=1e-6, columns={"visits": (0, 9)}, bits=seeded(2))
    truth = data.group_by("who").aggregate([("day", "count")])["day_count"].to_numpy().mean()

    def mean(rows: pa.Table) -> tuple[float, float]:
        own = rows["visits"].drop_null().to_numpy()
        return own.mean(), own.var() / len(own)

    low, high = made.infer(mean, number=10, bits=seeded(3)).interval(0.999)
    assert low[0] < truth < high[0] < low[0] + 1
