import pytest

from defocus.errors import InvalidParameterError
from defocus.tables.datasets import parsed
from defocus.tables.writing import heading, key, value, write


def test_a_hostile_name_does_not_leave_its_quotes() -> None:
    hostile = 'x"\n[budget]\nepsilon = 1000 #'
    least = 'name = "t"\ndata = "t.csv"\nunit.rows = true\nbudget.epsilon = 1\n'
    dataset = parsed(f'{least}{heading("columns", hostile)}\nkind = "text"\n')
    assert list(dataset.columns) == [hostile]
    assert dataset.budget.epsilon == 1
    assert parsed(write(dataset)) == dataset


def test_the_comments_teach_what_may_be_changed() -> None:
    text = write(
        parsed('name = "t"\ndata = "t.csv"\nunit.column = "p"\nbudget.rho = 0.5\nbound.rows = 5\npurposes = "x"')
    )
    for lesson in (
        "without looking at the rows",
        "whom to protect",
        "for ever",
        "how much one person may count",
        "must name",
    ):
        assert lesson in text


def test_keys_are_quoted_only_where_they_must_be() -> None:
    assert key("patient_id") == "patient_id"
    assert key("a b") == '"a b"'
    assert heading("columns", "a.b") == '[columns."a.b"]'


@pytest.mark.parametrize("bad", [None, object(), {}, b"x", 1j, "\ud800"])
def test_what_toml_cannot_hold_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameterError):
        value(bad)


def test_where_spark_computes_is_written_and_read_again() -> None:
    text = 'name = "v"\ndata = "s3a://bucket/day=*/"\nengine = "spark://host:7077"\nunit.rows = true\nbudget.rho = 1\n'
    dataset = parsed(text)
    assert dataset.engine == "spark://host:7077"
    assert dataset.paths() == ["s3a://bucket/day=*/"]
    assert parsed(write(dataset)) == dataset


@pytest.mark.parametrize("promise", ["", 'people = "in one part"\n'])
def test_what_divides_the_data_is_written_and_read_again(promise: str) -> None:
    text = f'name = "v"\ndata = "v.csv"\nunit.column = "p"\nbudget.rho = 1\n[parts]\ncolumn = "the day"\n{promise}'
    dataset = parsed(text)
    assert dataset.parts is not None
    assert (dataset.parts.people is None) == (not promise)
    assert parsed(write(dataset)) == dataset
