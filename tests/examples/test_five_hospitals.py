"""The example of five hospitals: processes, one of which is killed and comes back."""

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "five_hospitals.py"


@pytest.mark.slow
def test_they_answer_with_one_killed_and_again_when_it_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE))["main"]()
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in out[:2]] == ["all five", "one is down"]
    assert "(10000)" in out[0]
    assert "(8000)" in out[1]
    assert out[2].startswith("  east took no part to the end, and its rows are not in these numbers")
    assert out[3].startswith("it is back") and "(10000)" in out[3]  # noqa: PT018
    left = {name: said for name, _, said in (line.partition(": ") for line in out[4:])}
    assert set(left) == {"north", "south", "east", "west", "centre"}
    assert left["east"] != left["north"] == left["south"]
