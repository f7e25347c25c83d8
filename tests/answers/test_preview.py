import json
import math
from pathlib import Path

import pytest
from tests.answers.making import charged, opened

from defocus.answers import Effect, Preview, PreviewColumn, Rule
from defocus.errors import BudgetExceededError, InvalidParameterError
from defocus.privacy.budgets import Budget
from defocus.privacy.events import NOTHING, Approximate, DiscreteGaussian, DiscreteLaplace, Event
from defocus.release.preview import previewed as made

VISITS = PreviewColumn("visits", "Laplace noise of scale 10", 14.1, 28.0)
STAY = PreviewColumn("stay", "two sums", by_size=tuple((n, 300 / n, 600 / n) for n in (100, 1_000, 10_000, 100_000)))


def previewed(
    folder: Path, event: Event | None = None, *columns: PreviewColumn, asked: Budget | None = None
) -> Preview:
    with opened(folder) as ledger:
        return made(
            columns or (VISITS, STAY),
            event or DiscreteLaplace(10, 5),
            question="visits by <ward>",
            asked=Budget(0.5) if asked is None else asked,
            replan=lambda delta: DiscreteLaplace(10, 5) + Approximate(0.1, delta or 0),
            ledger=ledger,
            rules=(Rule("at most 5 visits", Effect.BOUND),),
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
    assert preview.remaining is not None
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


def test_numbers_that_are_not_known_are_words_and_null(tmp_path: Path) -> None:
    preview = previewed(tmp_path, None, PreviewColumn("p90", "quantiles", math.nan, math.inf))
    assert "depends on the data" in str(preview)
    assert preview.to_dict()["columns"][0]["error"] is None
    json.dumps(preview.to_dict(), allow_nan=False)


def test_half_told_columns_and_empty_previews_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="without an interval"):
        PreviewColumn("n", "how", 1.0)
    with opened(tmp_path) as ledger, pytest.raises(InvalidParameterError, match="at least one statistic"):
        made([], NOTHING, question="q", asked=Budget(1), replan=lambda _: NOTHING, ledger=ledger)


def test_it_says_which_part_of_the_ledger_it_takes(tmp_path: Path) -> None:
    charged(tmp_path)
    preview = previewed(tmp_path)
    assert preview.prospect is not None
    assert [used.share for used in preview.prospect.used] == pytest.approx([1 / 6, 1 / 3])
    assert "used now: 16.7 % of epsilon; used afterwards: 33.3 % of epsilon" in str(preview)
    content = preview.to_dict()
    assert (content["used_now"]["epsilon"], content["used_after"]["epsilon"]) == pytest.approx((1 / 6, 1 / 3))
    assert content["delta_left_after"] == pytest.approx(5e-7)
    assert ", and delta 5e-7; used now" in str(preview)


def test_it_speaks_at_the_delta_that_was_asked_for(tmp_path: Path) -> None:
    asked = Budget(0.5, 1e-8)
    preview = previewed(tmp_path, DiscreteGaussian(20, 1), asked=asked)
    assert preview.promise is not None
    assert preview.promise.delta == 1e-8
    assert "at delta 1e-08 for this answer alone; asked for were epsilon 0.5 at delta 1e-08" in preview.explain()


def test_where_it_does_not_fit_it_says_which_delta_would(tmp_path: Path) -> None:
    charged(tmp_path)
    preview = previewed(tmp_path, Approximate(0.5, 1e-6), asked=Budget(1, 1e-6))
    assert not preview.fits
    assert "ask with delta=5e-07" in str(preview)
    assert preview.prospect is not None
    assert preview.to_dict()["instead"] == preview.prospect.remedy
