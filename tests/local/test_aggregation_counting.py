from typing import Any

import numpy as np
import pytest

from defocus.errors import InvalidParameterError, MismatchedOracleError
from defocus.local.aggregation import counted
from defocus.local.clients import Client
from defocus.local.designs import design
from defocus.local.servers import Server
from defocus.noise.testing import seeded

ASKED = design("k-rr", 5, 1)
REPORTS = Client(ASKED).encode([1, 2, 3] * 20, seeded(1))


def test_everything_that_holds_reports_is_counted_alike() -> None:
    server = Server(ASKED)
    server.add_reports(REPORTS)
    batch = REPORTS.to_bytes()
    given: list[Any] = [REPORTS, server, server.state(), batch, bytearray(batch), memoryview(batch), list(REPORTS)]
    for each in [*given, iter(REPORTS), [batch]]:
        assert np.array_equal(counted(ASKED, each).tally, server.state().tally)
    assert counted(ASKED, Client(ASKED).report_json(3)).reports == 1


def test_messages_that_are_none_are_rejected_and_counted() -> None:
    found = counted(ASKED, [b"junk", "{}", *REPORTS])
    assert (found.reports, dict(found.rejected)) == (60, {"truncated": 1, "malformed": 1})
    with pytest.raises(MismatchedOracleError):
        counted(design("k-rr", 5, 2), REPORTS)


@pytest.mark.parametrize("given", [[3], range(4), np.arange(3), (None,), 3.5, None, [b"junk", 1.5], [["a"]]])
def test_what_is_no_message_is_refused_without_quoting_it(given: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"value of type \w+\.\nTo fix: randomise values first"):
        counted(ASKED, given)
