"""Tables that live in different places have no engine in common."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.engines.choosing import engine_for
from defocus.engines.origins import origin_of
from defocus.errors import SourceError


def test_servers_of_spark_connect_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "visits.parquet")
    kind = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})

    def connected(endpoint: str) -> Any:
        session: Any = kind()
        session.client = SimpleNamespace(_builder=SimpleNamespace(endpoint=endpoint))
        return origin_of(tmp_path / "visits.parquet", engine=session)

    monkeypatch.setattr("defocus.engines.choosing.SparkEngine", lambda session, own: (session, own))
    engine_for([connected("one:15002"), connected("one:15002")])
    with pytest.raises(SourceError, match="different Sparks"):
        engine_for([connected("one:15002"), connected("two:15002")])
