"""One site has its rows in Spark, in this process and in one of its own: the integers are those of the union."""

from pathlib import Path
from typing import Any

import pytest
from tests.federated.processes import declared, sites_in
from tests.federated.unions import FACTS, ROWS, adds_up

import defocus as dp

pytestmark = pytest.mark.slow


def test_a_site_on_spark_adds_up_with_the_others(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = spark.createDataFrame(ROWS[:100], "patient bigint, ward string, days bigint")
    adds_up(lambda: dp.open(frame, ledger=tmp_path / "north", **FACTS), tmp_path, monkeypatch)


def test_a_site_process_that_computes_in_spark_answers_with_the_others(tmp_path: Path) -> None:
    """Its dataset file says so, and nothing else: rows are the same integers, which are written down before noise."""
    names = ("north", "south", "west")
    declared(tmp_path, names, patience=300)
    data = tmp_path / "north-data.toml"
    data.write_text('engine = "local[1]"\n' + data.read_text())
    with sites_in(tmp_path, names) as sites:
        together = dp.federation(tmp_path / "federation.toml")
        answer = together.where("days < 10").agg(n=dp.count(), d=dp.sum("days")).release(epsilon=20)
        brought = {name: [one["exact"] for one in sites.sent(name)] for name in names}
    assert answer["n"].values[0] == pytest.approx(300, abs=20)
    assert answer["d"].values[0] == pytest.approx(3 * 10 * sum(range(10)), abs=300)
    assert brought["north"] == brought["south"] == brought["west"]
    assert "took no part" not in " ".join(map(str, answer.rules))
