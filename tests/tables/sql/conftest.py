"""One hospital for all questions: nothing that is asked changes it."""

from collections.abc import Iterator

import pytest
from tests.tables.sql.hospital import hospital

from defocus.tables import Table


@pytest.fixture(scope="package")
def visits() -> Iterator[Table]:
    with hospital() as table:
        yield table
