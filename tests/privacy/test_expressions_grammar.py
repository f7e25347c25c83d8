"""Whatever the text, reading it ends in a tree or in a refusal that points at a place in it."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from defocus.errors import ExpressionError
from defocus.privacy.expressions import Argument, Call, Literal, Name, Node, Product, Sum, read

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
def test_a_refusal_says_what_is_wrong_where_and_what_to_do(text: str, what: str, position: int, fix: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        read(text)
    assert caught.value.what.startswith(what)
    assert caught.value.position == position
    assert caught.value.fix.startswith(fix)


@pytest.mark.parametrize("value", [None, 3, b"gaussian(1)", ["gaussian(1)"]])
def test_only_text_is_an_expression(value: object) -> None:
    with pytest.raises(ExpressionError, match="An expression is text"):
        read(value)


def test_a_text_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(ExpressionError, match="more than 20000"):
        read("(" * 1_000_000)
