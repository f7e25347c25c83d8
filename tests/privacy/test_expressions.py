"""Expressions and events are two spellings of one thing."""

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from defocus.errors import ExpressionError
from defocus.privacy import events
from defocus.privacy.events import (
    NOTHING,
    AllocatedGaussian,
    Approximate,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    Sampled,
    SampledBatch,
    SampledGaussian,
    Selected,
    SelectedPoisson,
    ShuffledGaussian,
    compose,
)
from defocus.privacy.expressions import (
    Argument,
    Call,
    Literal,
    Name,
    Node,
    Product,
    Sum,
    family,
    names,
    parse,
    read,
    sketch,
    unparse,
)

numbers = st.one_of(
    st.integers(1, 10**9),
    st.floats(1e-6, 1e6),
    st.fractions(Fraction(1, 10**6), 10**6),
)
small = st.floats(1e-9, 0.999)
simple: st.SearchStrategy[Event] = st.one_of(
    st.builds(Gaussian, numbers),
    st.builds(Laplace, numbers),
    st.builds(DiscreteGaussian, numbers, numbers, st.integers(1, 100)),
    st.builds(DiscreteLaplace, numbers, st.integers(1, 100)),
    st.builds(Pure, numbers),
    st.builds(Approximate, numbers, small),
    st.builds(Concentrated, numbers),
    st.builds(Exponential, numbers),
    st.builds(RandomizedResponse, numbers, st.integers(2, 100)),
    st.builds(SampledGaussian, numbers, small),
    st.builds(lambda ratio, steps: AllocatedGaussian(ratio, Fraction(1, steps), steps), numbers, st.integers(1, 99)),
    st.builds(lambda ratio, size: ShuffledGaussian(ratio, size, 9 * size, 8), numbers, st.integers(1, 99)),
)


def composed(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    repeated = st.builds(lambda event, times: times * event, inner, st.integers(0, 10**6))
    return st.one_of(
        st.lists(repeated, max_size=4).map(compose),
        st.builds(Sampled, inner, small),
        st.builds(lambda event, size: SampledBatch(event, size, size + 5), inner, st.integers(1, 100)),
        st.builds(Selected, inner, small, st.floats(-0.9, 9)),
        st.builds(SelectedPoisson, inner, numbers),
    )


some_event = st.recursive(simple, composed, max_leaves=6)


@given(some_event)
def test_an_event_survives_writing_and_reading(event: Event) -> None:
    assert parse(unparse(event)) == event


@given(some_event, some_event, st.integers(0, 1000))
def test_plus_and_times_mean_what_they_mean_in_python(a: Event, b: Event, times: int) -> None:
    assert parse(f"({unparse(a)}) + ({unparse(b)})") == a + b
    assert parse(f"{times} * ({unparse(a)})") == parse(f"({unparse(a)}) * {times}") == times * a


@given(st.floats(1e-3, 1e3))
def test_an_unknown_is_replaced_by_its_value(value: float) -> None:
    make = family("10 * sampled(gaussian(x), 0.01) + laplace(2 * x)")
    assert make(value) == 10 * Sampled(Gaussian(value), 0.01) + Laplace(2 * value)


def test_the_example_of_the_documentation_is_read() -> None:
    text = "1000 * sampled(gaussian(1.0), 0.01) + laplace(20) + 10 * randomized_response(1, categories=3)"
    assert parse(text) == 1000 * Sampled(Gaussian(1.0), 0.01) + Laplace(20) + 10 * RandomizedResponse(1, 3)


def test_every_event_has_a_name() -> None:
    kinds = [getattr(events, name) for name in events.__all__]
    wanted = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Event)} - {Event, Composed}
    assert len(names()) == len(wanted) + 1
    assert "discrete_gaussian" in names()
    assert parse("nothing") == NOTHING


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ("gaussian(1)", Gaussian(1)),
        ("gaussian(ratio=1/3)", Gaussian(Fraction(1, 3))),
        ("1e3 * gaussian(.5)", 1000 * Gaussian(0.5)),
        ("2 * 3 * gaussian(1) * 5", 30 * Gaussian(1)),
        ("sampled_batch(gaussian(1), 256, 6e4)", SampledBatch(Gaussian(1), 256, 60_000)),
        ("sampled_batch(population=9, size=3, event=laplace(1))", SampledBatch(Laplace(1), 3, 9)),
        ("randomized_response(categories=3, 1)", RandomizedResponse(1, 3)),
        ("sampled(2 * gaussian(1) + laplace(1), 1e-2)", Sampled(2 * Gaussian(1) + Laplace(1), 0.01)),
        ("0 * gaussian(1)", NOTHING),
        ("\n gaussian ( 1 ) \t", Gaussian(1)),
    ],
)
def test_the_ways_to_write_an_event(text: str, event: Event) -> None:
    assert parse(text) == event


def test_whole_numbers_stay_exact_and_decimals_are_the_floats_they_store() -> None:
    def number(text: str) -> Any:
        return parse(f"gaussian({text})").ratio  # type: ignore[attr-defined] # it is a Gaussian

    assert type(number("3")) is int
    assert type(number("3.0")) is float
    assert type(number("3/7")) is Fraction
    assert number("0.1") == 0.1


def test_numbers_of_numpy_are_written_plainly() -> None:
    half: Any = np.float64(1.5)
    one: Any = np.int64(1)
    assert unparse(Gaussian(half)) == "gaussian(1.5)"
    assert unparse(RandomizedResponse(one, 3)) == "randomized_response(1, categories=3)"


def test_a_fraction_that_is_whole_is_written_as_a_whole_number() -> None:
    assert unparse(Gaussian(Fraction(4))) == "gaussian(4)"
    assert unparse(Gaussian(Fraction(4, 3))) == "gaussian(4/3)"


@pytest.mark.parametrize(
    ("text", "what", "position", "fix"),
    [
        ("2 * gausian(1)", "There is no event called gausian", 4, "did you mean gaussian?"),
        ("Gaussian(1)", "There is no event called Gaussian", 0, "did you mean gaussian?"),
        ("randomised_response(1)", "There is no event called randomised_response", 0, "did you mean randomized"),
        ("__import__(1)", "There is no event called __import__", 0, "use one of "),
        ("qqq(1)", "There is no event called qqq", 0, "use one of allocated_gaussian, approximate, "),
        ("gaussian", "gaussian needs its parameters", 0, "write gaussian(ratio)."),
        ("sampled(gaussian(1))", "sampled needs rate", 0, "write sampled(event, rate)."),
        ("gaussian(1, 2)", "gaussian does not take another argument", 12, "write gaussian(ratio)."),
        ("gaussian(sigma=2)", "gaussian does not take sigma", 9, "write gaussian(ratio), where ratio is the noise"),
        ("laplace(scale=2)", "laplace does not take scale", 8, "write laplace(ratio), where ratio is the noise"),
        ("pure(scale=2)", "pure does not take scale", 5, "write pure(epsilon)."),
        ("gaussian(ratio=1, ratio=2)", "gaussian already has its ratio", 18, "write gaussian(ratio)."),
        ("laplace(1) + gaussian(-1)", "ratio must be positive, but it is -1", 22, "pass ratio > 0."),
        ("sampled(gaussian(1), 2)", "rate must lie in (0, 1], but it is 2", 21, "write 2/N, with N the number"),
        ("sampled(gaussian(1), 1.5)", "rate must lie in (0, 1], but it is 1.5", 21, "choose rate in (0, 1]."),
        ("sampled(1, 0.1)", "A number is not an event", 8, "write an event"),
        ("gaussian(laplace(1))", "The ratio of gaussian is one number", 9, "write the number out."),
        ("gaussian(2 * 3)", "The ratio of gaussian is one number", 9, "write the number out."),
        ("gaussian(x)", "x is not a number", 9, "only calibration leaves a number open"),
        ("n * gaussian(1)", "n is not a count", 0, "write the count as a whole number."),
        ("5", "A number is not an event", 0, "write an event"),
        ("2 * 3", "A product needs exactly one event", 0, "write a count times an event"),
        ("gaussian(1) * laplace(2)", "A product needs exactly one event", 14, "write a count times an event"),
        ("2.5 * gaussian(1)", "An event is repeated a whole number of times", 0, "write 10 * "),
        ("-2 * gaussian(1)", "An event is repeated a whole number of times", 0, "write 10 * "),
        ("1e200 * gaussian(1)", "There are too many repetitions", 0, "repeat less than 2**63 times."),
        ("1e10 * 1e10 * gaussian(1)", "There are too many repetitions", 0, "repeat less than 2**63 times."),
        ("randomized_response(1, 2.5)", "categories must be a whole number", 23, "pass an int"),
    ],
)
def test_a_refusal_says_what_is_wrong_where_and_what_to_do(text: str, what: str, position: int, fix: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert caught.value.what.startswith(what)
    assert caught.value.position == position
    assert caught.value.fix.startswith(fix)


def test_the_caret_stands_under_the_place_in_a_long_text() -> None:
    text = "gaussian(1) + " * 20 + "gausian(1)" + " + gaussian(1)" * 20
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    shown, caret = caught.value.what.splitlines()[1:]
    assert shown[caret.index("^") :].startswith("gausian(1)")
    assert len(shown) <= 80


def test_a_refusal_survives_a_process_boundary() -> None:
    with pytest.raises(ExpressionError) as caught:
        parse("gaussian(0)")
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 # our own bytes
    assert str(copy) == str(caught.value)
    assert copy.position == 9


@pytest.mark.parametrize(
    ("exact", "brief"),
    [
        ("1000 * sampled(discrete_gaussian(250, sensitivity=3, dimension=4), rate=1/3)",
         "1000 * sampled(discrete_gaussian(83.33, dimension=4), rate=0.3333)"),
        ("shuffled(randomized_response(1, categories=3), users=1000000)",
         "shuffled(randomized_response(1, categories=3), users=1000000)"),
        ("discrete_laplace(271308812, sensitivity=83886080) + gaussian(1e300)",
         "discrete_laplace(3.234) + gaussian(1e+300)"),
        ("nothing", "nothing"),
    ],
)  # fmt: skip
def test_a_sketch_has_few_digits_and_noise_in_units_of_the_sensitivity(exact: str, brief: str) -> None:
    assert sketch(parse(exact)) == brief


HOSTILE = [
    "__import__('os').system('true')",
    "gaussian.__class__.__mro__",
    "(lambda: 1)()",
    "gaussian(1); laplace(2)",
    "gaussian[0]",
    "{}",
    "f'{x}'",
    "10**10**10",
    "1e999999 * gaussian(1)",
    "gaussian(1e999999)",
    "gaussian(1e-999999)",
    "gaussian(" + "9" * 5000 + ")",
    "gaussian(1e" + "9" * 5000 + ")",
    "gaussian(1/" + "0" * 50 + ")",
    "(" * 5000 + "gaussian(1)" + ")" * 5000,
    "sampled(" * 500,
    "+".join(["gaussian(1)"] * 5000),
    "gaussian(\u0661)",  # an Arabic digit
    "gaussian(\uff11)",  # a full-width digit
    "gaussi\u0430n(1)",  # a Cyrillic letter
    "gaussian(1\x00)",
    "\x1b[31mgaussian(1)",
    "gaussian(1)\u202e",
    "gaussian(-inf)",
    "1_000 * gaussian(1)",
    "0x10 * gaussian(1)",
    "gaussian(1j)",
    "",
    " ",
    "\n",
    "*",
    "+ gaussian(1)",
    "gaussian(1) +",
    "gaussian(1",
    "gaussian(1))",
    "gaussian(,)",
    "gaussian(1,)",
    "gaussian(=1)",
    "gaussian(ratio=)",
    "-gaussian(1)",
    "gaussian(--1)",
    "gaussian(1//2)",
    "2 3 gaussian(1)",
]


def outcome(text: str) -> Node | ExpressionError:
    try:
        return read(text)
    except ExpressionError as error:
        return error


@pytest.mark.parametrize("text", HOSTILE, ids=[repr(text[:24]) for text in HOSTILE])
def test_hostile_text_is_refused_in_plain_words(text: str) -> None:
    error = outcome(text)
    assert isinstance(error, ExpressionError)
    assert 0 <= error.position <= len(text)
    assert "To fix: " in str(error)
    assert str(error).isascii()
    assert all(c.isprintable() or c == "\n" for c in str(error))
    assert max(map(len, str(error).splitlines())) < 120


def test_names_that_mean_something_in_python_are_only_names_here() -> None:
    assert read("gaussian(nan)") == Call("gaussian", (Argument(None, Name("nan", 9), 9),), 0)
    assert read("__import__") == Name("__import__", 0)


@pytest.mark.slow
@given(st.one_of(st.text(max_size=200), st.text(alphabet="0123456789.eE+-*/(),= xgl_", max_size=60)))
@example("1/2/3")
@example("a(b=c=d)")
def test_any_text_is_read_or_refused(text: str) -> None:
    result = outcome(text)
    assert not isinstance(result, ExpressionError) or 0 <= result.position <= len(text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_it_was_written(value: float) -> None:
    tree = read(repr(value))
    assert isinstance(tree, Literal)
    assert tree.value == value
    assert tree.exact == Fraction(repr(value))


@given(st.integers(-(10**200), 10**200), st.integers(1, 10**200))
def test_a_fraction_stays_exact(top: int, bottom: int) -> None:
    tree = read(f"{top}/{bottom}")
    assert isinstance(tree, Literal)
    assert isinstance(tree.value, Fraction)
    assert tree.value == tree.exact == Fraction(top, bottom)


def test_a_whole_number_stays_an_int() -> None:
    tree = read(str(2**62 + 1))
    assert isinstance(tree, Literal)
    assert type(tree.value) is int
    assert tree.value == 2**62 + 1


def test_sums_products_and_arguments_have_their_places() -> None:
    tree = read("2*f(a, b=3) + g")
    assert tree == Sum(
        (
            Product(
                (
                    Literal(2, Fraction(2), 0),
                    Call(
                        "f",
                        (Argument(None, Name("a", 4), 4), Argument("b", Literal(3, Fraction(3), 9), 7)),
                        2,
                    ),
                ),
                0,
            ),
            Name("g", 14),
        ),
        0,
    )


def test_thirty_levels_are_read_and_forty_are_not() -> None:
    assert read("(" * 30 + "a" + ")" * 30) == Name("a", 30)
    with pytest.raises(ExpressionError, match="Nested more than 32 deep"):
        read("(" * 40 + "a" + ")" * 40)


@pytest.mark.parametrize(
    ("text", "what", "position", "fix"),
    [
        ("f(1", "A parenthesis is not closed", 3, "add )."),
        ("10**10", "There are no powers", 3, "write the number out."),
        ("f(1) - g(2)", "A loss cannot be subtracted", 5, "compose events with + only."),
        ("2 f(1)", "Between 2 and f something is missing", 2, "write *."),
        ("f(1/0)", "A fraction cannot have the denominator zero", 4, "divide by something else."),
        ("f(1.5/2)", "A fraction is made of two whole numbers", 2, "write for example 1/3, or a decimal."),
        ("f(1e400)", "The number is out of range", 2, "use numbers between 1e-300 and 1e300."),
        ("f(1e-400)", "The number is out of range", 2, "use numbers between 1e-300 and 1e300."),
        ("f(\x00)", "The character U+0000 has no meaning here", 2, "use names, decimal digits"),
        ("1,000 * f(1)", "A number is written without commas", 1, "write 1000."),
        ("10 × f(1)", "The character × has no meaning here", 3, "write * instead."),
        ("f(1 ÷ 3)", "The character ÷ has no meaning here", 4, "write / instead."),
        ("", "The expression ends too early", 0, "complete it"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_with_its_place(text: str, what: str, position: int, fix: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read(text)
    assert caught.value.what.startswith(what)
    assert caught.value.position == position
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize("value", [None, 3, b"gaussian(1)", ["gaussian(1)"]])
def test_only_text_is_an_expression(value: object) -> None:
    with pytest.raises(ExpressionError, match="An expression is text"):
        read(value)
