import json
import sys
from typing import Any

import numpy as np
import pytest

from defocus.audit import Finding, batched, lower_bound
from defocus.audit.events import Split
from defocus.audit.findings import Picture, draw, sketch
from defocus.audit.outcomes import read
from defocus.errors import MissingExtraError


@pytest.fixture(scope="module")
def leak() -> Finding:
    return lower_bound(lambda data: data, ("<a>", "<b>"), trials=2000, claimed=1)


@pytest.fixture(scope="module")
def quiet() -> Finding:
    rng = np.random.default_rng(1)
    return lower_bound(batched(lambda _data, n: rng.normal(0, 1, n)), (0, 1), trials=2000, claimed=1)


def test_the_verdict_is_a_violation_or_what_would_have_been_found(leak: Finding, quiet: Finding) -> None:
    assert leak.verdict == "violation"
    assert leak.violation
    assert quiet.verdict == f"none found (would detect >= {quiet.detectable:.3g})"
    assert not quiet.violation


def test_nothing_is_ever_called_proved(leak: Finding, quiet: Finding) -> None:
    for finding in (leak, quiet):
        text = f"{finding} {finding.explain()} {finding._repr_html_()} {json.dumps(finding.to_json())}"
        assert "prove" not in text.lower()
        assert "safe" not in text.lower()


def test_it_prints_the_bound_the_claim_the_event_and_the_pair(leak: Finding) -> None:
    for text in (str(leak), leak.explain(), leak._repr_html_()):
        for part in (f"{leak.epsilon_lower:.4g}", "99.9 %", "2000"):
            assert part in text
    assert "event: output is" in str(leak)
    assert "the claim is false" in leak.explain()
    assert "100.0000% and 0.0000%" in str(leak)


def test_html_is_escaped(leak: Finding) -> None:
    assert "<a>" not in leak._repr_html_()
    assert "&lt;a&gt;" in leak._repr_html_()


def test_it_survives_json(leak: Finding) -> None:
    data = json.loads(json.dumps(leak.to_json()))
    assert data["epsilon_lower"] == leak.epsilon_lower
    assert data["verdict"] == "violation"
    assert data["picture"]["marks"] == ["<a>", "<b>", "another value"]


def test_too_few_runs_to_detect_anything_are_still_json() -> None:
    finding = lower_bound(lambda _data: 0, (0, 1), trials=64, claimed=9)
    assert finding.verdict == "none found (would detect >= inf)"
    assert json.loads(json.dumps(finding.to_json(), allow_nan=False))["detectable"] is None


def test_without_a_claim_there_is_nothing_to_contradict() -> None:
    finding = lower_bound(lambda data: data, (0, 1), trials=2000)
    assert not finding.violation
    assert finding.epsilon_lower > 4
    assert "nothing to contradict" in finding.explain()


def test_the_picture_has_both_distributions(leak: Finding, quiet: Finding) -> None:
    assert leak.picture.first == (1.0, 0.0, 0.0)
    assert leak.picture.second == (0.0, 1.0, 0.0)
    assert len(quiet.picture.marks) == len(quiet.picture.first) + 1
    assert 0.95 < sum(quiet.picture.first) <= 1
    for finding in (leak, quiet):
        axes = finding.plot().axes[0]
        assert finding.verdict in axes.get_title()
        assert axes.get_ylabel() == "share of runs"


def test_a_missing_plotting_library_is_named_with_its_extra(leak: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "matplotlib.figure", missing)
    with pytest.raises(MissingExtraError, match=r"(?s)matplotlib.*defocus\[plot\]"):
        leak.plot()


SPLIT = Split(n=400, learn=100, train=200)


def test_numbers_get_bars_between_edges() -> None:
    rng = np.random.default_rng(1)
    picture = sketch(read((rng.normal(0, 1, 400), rng.normal(5, 1, 400)), 200), SPLIT)
    assert picture.of == "output"
    assert len(picture.marks) == len(picture.first) + 1 == len(picture.second) + 1
    assert np.argmax(picture.first) < np.argmax(picture.second)


def test_few_values_get_a_bar_each() -> None:
    picture = sketch(read((np.zeros(400, dtype=int), np.ones(400, dtype=int)), 200), SPLIT)
    assert picture == Picture("output", ("0", "1", "another value"), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def test_the_kind_of_output_is_shown_where_it_varies() -> None:
    picture = sketch(read(([None] * 400, [1.0] * 400), 200), SPLIT)
    assert picture.of == "kind of output"
    assert picture.marks[:2] == ("NoneType", "float")


def test_a_constant_answer_has_a_picture_too() -> None:
    assert sketch([], SPLIT).first == (1.0,)
    assert sketch(read((["x"] * 400, ["x"] * 400), 200), SPLIT).second == (1.0,)


def test_values_that_are_never_finite_have_a_picture_too() -> None:
    outputs = np.full(400, np.nan)
    picture = sketch(read((outputs, outputs), 200), SPLIT)
    assert draw(picture, title="all NaN").axes


def test_drawing_shows_both_data_sets() -> None:
    figure = draw(Picture("output", ("a", "b"), (1.0, 0.0), (0.5, 0.5)), title="two letters")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["first data set", "second data set"]
    assert axes.get_title() == "two letters"
