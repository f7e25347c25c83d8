"""A release does what was planned, no more."""

import math
import re
from pathlib import Path

import pyarrow as pa
import pytest

from defocus.answers import Effect
from defocus.errors import InvalidParameterError
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.privacy.budgets import Budget
from defocus.privacy.units import user
from defocus.tables import count, count_units, mean
from defocus.tables.open import open as opened


def test_a_bound_on_rows_that_was_found_does_not_change_in_how_many_groups_people_count(tmp_path: Path) -> None:
    wards = list(range(64))
    table = pa.table({"u": [i for i in range(3000) for _ in wards], "k": wards * 3000})
    ledger = Ledger.open(tmp_path / "a.ledger", budget=Budget(100), unit=user("u"), dataset="a")
    with opened(table, ledger=ledger) as visits:
        asked = visits.bound(rows="find", groups=5).group_by("k", keys=wards).agg(n=count(), people=count_units())
        answer = asked.release(epsilon=50, bits=seeded(1))
    assert any(re.search("at most (64|91|128) rows, a bound that was found", rule) for rule in answer.rules)
    people = answer.columns[1].values
    # Everybody is in 64 groups and planned to count in 5 of them.
    assert math.isclose(people.mean(), 3000 * 5 / 64, rel_tol=0.05)


def test_named_and_found_keys_meet_and_nobody_is_asked_for_a_group_alone(tmp_path: Path) -> None:
    people = range(900)
    data = {"u": [*people, *people], "k": ["a"] * 900 + ["b"] * 900, "m": [i % 3 for i in people] * 2}
    data["k"][0] = "rare"
    ledger = Ledger.open(tmp_path / "a.ledger", budget=Budget(100, 1e-3), unit=user("u"), dataset="a")
    with opened(pa.table(data), ledger=ledger) as visits:
        asked = visits.group_by("k", "m", keys={"k": None, "m": [0, 1, 9]}).agg(n=count())
        answer = asked.release(epsilon=20, delta=1e-5, bits=seeded(1))
        shown = list(zip(answer.keys["k"].to_pylist(), answer.keys["m"].to_pylist(), strict=True))
        assert shown == [(k, m) for k in "ab" for m in (0, 1, 9)]
        assert answer.columns[0].values.round(-2).tolist() == [300, 300, 0, 300, 300, 0]
        told = [rule for rule in answer.rules if rule.startswith("groups are found privately: one with ")]
        assert told[0].effect is Effect.TOLD
        assert "where each u stands for one of its groups" in told[0]
        left = visits.remaining()
        with pytest.raises(InvalidParameterError, match="Each group would be one u") as caught:
            visits.group_by("u", keys=None).agg(n=count())
        assert "per_person" in caught.value.fix
        assert visits.remaining() == left
        assert len(visits.group_by("u", "k", keys={"u": [1, 2], "k": None}).agg(n=count()).by) == 2


def test_where_no_group_is_found_it_is_told_how_many_people_there_are(tmp_path: Path) -> None:
    table = pa.table({"u": range(300), "k": range(300)})
    ledger = Ledger.open(tmp_path / "a.ledger", budget=Budget(100, 1e-3), unit=user("u"), dataset="a")
    with opened(table, ledger=ledger) as visits:
        answer = visits.group_by("k", keys=None).agg(n=count()).release(epsilon=2, delta=1e-6, bits=seeded(1))
    assert len(answer) == 0
    (said,) = [rule for rule in answer.rules if rule.startswith("no group was found: about ")]
    assert abs(int(said.split("about ")[1].split(" ")[0]) - 300) < 60
    assert "one group needs" in str(answer)


def test_bounds_are_found_by_people_and_not_by_the_rows_of_a_few(tmp_path: Path) -> None:
    """Ten people have nearly all rows, with small values; the others have large ones."""
    who = [i for i in range(2000) for _ in range(3000 if i < 10 else 1)]
    table = pa.table({"u": who, "x": [1.5 if i < 10 else 900.0 for i in who]})
    ledger = Ledger.open(tmp_path / "a.ledger", budget=Budget(100), unit=user("u"), dataset="a")
    with opened(table, ledger=ledger) as visits:
        answer = visits.agg(x=mean("x", bounds="find")).release(epsilon=2, bits=seeded(1))
        few = visits.where("u < 3").agg(x=mean("x", bounds="find")).release(epsilon=0.1, bits=seeded(1))
    (said,) = [rule for rule in answer.rules if rule.startswith("values of x beyond ")]
    assert re.search("and (1024|2048), bounds that were found privately, are cut: at most", said)
    assert "the values of a u, on average, lie beyond" in said
    assert [math.isnan(few.columns[0].values[0]), few.columns[0].low[0], few.columns[0].high[0]] == [
        True,
        -math.inf,
        math.inf,
    ]
    assert "no bounds were found for x" in str(few)
