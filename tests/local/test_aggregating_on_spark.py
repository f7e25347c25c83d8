from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.local.making import small

from defocus.local import mean
from defocus.local.aggregation import count_files, write_parquet
from defocus.local.clients import Client
from defocus.local.designs import Design
from defocus.local.servers import Server
from defocus.noise.testing import seeded

DESIGNS: dict[str, Design] = {name: small(name, 70, 1) for name in ("k-rr", "subset", "rappor")}
DESIGNS["laplace"] = mean("laplace", 0, 69, 1).design


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_spark_counts_what_a_server_counts(name: str, tmp_path: Path, spark: Any) -> None:
    made = DESIGNS[name]
    reports = Client(made).encode(np.arange(400) % 70, seeded(1))
    path = tmp_path / "x.parquet"
    write_parquet(reports, path)
    counted = count_files(made, path, engine=spark)
    server = Server(made)
    server.add_reports(reports)
    assert np.array_equal(counted.tally, server.state().tally)
