import pytest

from defocus.engines.names import check_names, lasting, unique
from defocus.errors import SourceError


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "a"),
        ("a", "A"),
        ("ß", "SS"),
        ("é", "e\u0301"),
        ("ﬁ", "fi"),
        ("Ａ", "a"),
        ("İ", "i\u0307"),
        ("K", "\u212a"),
    ],
)
def test_names_that_look_or_fold_alike_are_refused(pair: tuple[str, str]) -> None:
    for names in (pair, pair[::-1]):
        with pytest.raises(SourceError, match="look the same") as caught:
            check_names(names, "t")
        assert "rename one" in caught.value.fix


@pytest.mark.parametrize(
    "name", ["", " ", "\t", "a\0b", "a\nb", "\ud800", "x" * 1001, "a\x85b", 5, None, b"a", ("a", "b")]
)
def test_names_that_cannot_be_written_are_refused(name: object) -> None:
    with pytest.raises(SourceError, match="To fix: "):
        check_names(["good", name], "t")


@pytest.mark.parametrize(
    "name", ['"', "'; DROP TABLE t; --", "a b", "ward.x", "{x}", "%s", "Größe", "日本", "-1", "SELECT", "*"]
)
def test_strange_names_are_names(name: str) -> None:
    assert check_names(["a", name], "t") == ["a", name]


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(SourceError, match="no column"):
        check_names([], "t")


def test_a_unique_name_is_unlike_any_other_and_lasts_as_what_was_given() -> None:
    assert unique("visits") != unique("visits")
    digest = 64 * "a"
    assert lasting(f'{unique("0")} of "{unique(f"files {digest}")}"') == f'0 of "files {digest}"'
