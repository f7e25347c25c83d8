import json
import math
from pathlib import Path

import pytest
from tests.tables.answering import charged, opened

from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.privacy.events import DiscreteLaplace, Event
from defocus.tables.previewing import SIZES, Preview, PreviewColumn

VISITS = PreviewColumn("visits", "Laplace noise of scale 10", 14.1, 28.0)
STAY = PreviewColumn("stay", "two sums", by_size=tuple((n, 300 / n, 600 / n) for n in SIZES))


def previewed(folder: Path, event: Event | None = None, *columns: PreviewColumn) -> Preview:
    with opened(folder) as ledger:
        return Preview.of(
            columns or (VISITS, STAY),
            question="visits by <ward>",
            event=event or DiscreteLaplace(10, 5),
            ledger=ledger,
            rules=("at most 5 visits",),
        )


def test_it_says_errors_cost_and_what_would_be_left(tmp_path: Path) -> None:
    preview = previewed(tmp_path)
    text = str(preview)
    for words in (
        "14 (± 28)",
        "3.0 (± 6.0)",
        "0.0030 (± 0.0060)",
        "100 000 rows",
        "any group",
        "epsilon 0.5",
        "covers it",
    ):
        assert words in text
    assert preview.after is not None
    assert preview.after.epsilon == pytest.approx(2.5, rel=1e-6)
    assert preview.remaining.epsilon == pytest.approx(3, rel=1e-6)


def test_what_is_foretold_to_be_left_is_left(tmp_path: Path) -> None:
    charged(tmp_path)
    preview = previewed(tmp_path)
    charged(tmp_path)
    with opened(tmp_path) as ledger:
        assert ledger.remaining() == preview.after


def test_looking_charges_nothing(tmp_path: Path) -> None:
    previewed(tmp_path)
    preview = previewed(tmp_path)
    with opened(tmp_path) as ledger:
        assert len(ledger) == 1
        assert ledger.remaining() == preview.remaining


def test_it_says_when_the_budget_does_not_cover_it_and_the_ledger_agrees(tmp_path: Path) -> None:
    large = DiscreteLaplace(1, 5)
    preview = previewed(tmp_path, large)
    assert not preview.fits
    assert preview.after is None
    assert "does not cover it; left now: one release of epsilon 3" in str(preview)
    with opened(tmp_path) as ledger, pytest.raises(BudgetExceededError):
        ledger.charge(large, purpose="too much")


def test_a_table_of_sizes_alone_has_no_column_for_any_group(tmp_path: Path) -> None:
    text = str(previewed(tmp_path, None, STAY))
    assert "any group" not in text
    assert "1 000 rows" in text


def test_words_page_and_dictionary_agree(tmp_path: Path) -> None:
    preview = previewed(tmp_path)
    assert "by at most 1.649" in preview.explain()
    assert "at most 5 visits" in preview.explain()
    for page in (preview._repr_html_(), preview.explain(html=True)):
        assert "<ward>" not in page
        assert "&lt;ward&gt;" in page
    content = json.loads(json.dumps(preview.to_dict(), allow_nan=False))
    assert content["columns"][1]["by_size"][0] == {"rows": 100, "error": 3.0, "interval": 6.0}
    assert content["epsilon"] == pytest.approx(0.5)
    assert content["fits"] is True


def test_numbers_that_are_not_finite_are_dashes_and_null(tmp_path: Path) -> None:
    preview = previewed(tmp_path, None, PreviewColumn("p90", "quantiles", math.nan, math.inf))
    assert "– (± ∞)" in str(preview)
    assert preview.to_dict()["columns"][0]["error"] is None
    json.dumps(preview.to_dict(), allow_nan=False)


def test_half_told_columns_and_empty_previews_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="without an interval"):
        PreviewColumn("n", "how", 1.0)
    with opened(tmp_path) as ledger, pytest.raises(InvalidParameterError, match="at least one statistic"):
        Preview.of([], question="q", event=DiscreteLaplace(10, 5), ledger=ledger)
