"""Text stays text on a page."""

from defocus.privacy.html import html_facts, html_lines, html_table

_LOUD = "<script>alert('&')</script>"


def test_nothing_is_taken_for_markup() -> None:
    for page in (html_facts({_LOUD: _LOUD}), html_table([_LOUD], [[_LOUD]]), html_lines([_LOUD] * 2)):
        assert "<script>" not in page
        assert page.count("&lt;script&gt;") == 2


def test_every_row_and_cell_is_there() -> None:
    page = html_table(["a", "b"], [["1", "2"], ["3", "4"]])
    assert page.count("<tr>") == 3
    assert page.count("<td>") == 4
    assert html_facts({"a": "1", "b": "2"}).count("<tr>") == 2


def test_sentences_stand_below_each_other_and_numbers_to_the_right() -> None:
    assert "one<br>&lt;two&gt;" in html_facts({"a": ["one", "<two>"]})
    page = html_table(["a", "b"], [["1", "2"]], right=[False, True])
    assert '<td style="text-align:left">1</td><td style="text-align:right;white-space:nowrap">2</td>' in page
