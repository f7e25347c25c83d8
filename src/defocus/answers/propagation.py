r"""How errors and intervals of formulas over released columns follow from the noise of the columns.

Let released numbers be :math:`x = \theta + F z`, where z are independent noises of mean 0 and variance 1 and F holds
the factors that :mod:`defocus.answers.noise_sources` keeps. A formula y = f(x) has derivatives J at these numbers.

Error:
    *Linear formulas*, among them sums, running sums, moving averages and differences over windows: J is constant and
    :math:`y - f(\theta) = JFz`, so the variance is exactly the squared norm of the lines of JF, whatever the law of z,
    with every covariance of columns that share a measurement. A combination of symmetric, log-concave noises is
    symmetric and log-concave; as many standard errors hold 95 % of it as of the column with the heaviest tails. Where
    a column is itself a quotient, such as a mean, F are its derivatives, and for the interval each line of F is
    lengthened until it reaches the further end of the column's own interval (Zou and Donner's recovery of variances
    from limits).

    *Quotients* of two linear formulas, such as shares: by Fieller, all q for which (above - q below), which is linear,
    may be zero. None where what is below may be zero.

    *Other formulas*: the standard error is that of the linear formula with the same derivatives (the delta method). The
    interval is the formula over intervals of its k linear parts, which hold together with 95 %: each fails with
    probability 0.05/k at most, by widening it as the normal law says, or by 1 + ln k / ln 20, since log-concave
    noise has P(|X| > c h) <= P(|X| > h)^c. Where a formula cannot be taken over intervals, the delta method serves.

    *Ranks*: s is before r for certain if the difference of their numbers is beyond its noise in all n - 1 comparisons
    of r together (0.05/(n - 1) each). With 95 %, the rank of r then is at least one more than the number of those
    before it, and at most n less the number of those after it; ties are compared as neither.

    *Open ends*: a multiple of a column is open where the column is, what is computed from it otherwise at both ends.

    *Columns that do not know their noise* add up: their errors and widened intervals, without regard to signs.

    *Why nothing is simulated*: quantiles of the formula over draws of the noise agree with the above where it is smooth
    (products are a third narrower), but do not hold where it is not. ``ABS(a - b)`` and ``RANK()`` of groups that tie,
    and the largest of many, are never in such an interval: benchmarks/derived_intervals.py.

    What is decided by noisy numbers, such as the order of a running sum of the largest groups, is taken as it came
    out, and the column says so.
Reference:
    Fieller (1954), Some problems in interval estimation; Zou and Donner (2008), Construction of confidence limits
    about effect measures; Klein, Wright and Wieczorek (2020), A joint confidence region for an overall ranking of
    populations.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse, special
from sqlglot import exp

from defocus.answers.columns import CLOSED, AnswerColumn, Floats, Tails
from defocus.answers.noise_sources import Mix, Mixture, atoms_of, fieller, matrix_of
from defocus.answers.released_table import ReleasedTable, window_parts, written

__all__ = [
    "Affine",
    "Propagation",
    "affine",
    "constant",
    "counted_entries",
    "entry_matrix",
    "numbers",
    "references",
]

_Ends: TypeAlias = tuple[Floats, Floats]
_NORMAL = 1.96
_LAPLACE = 2.1183
_MOST = 20_000_000
"""How many numbers a matrix of noises may have."""
_MOST_RANKED = 20_000
_MOST_PLACES = 15
_RANKS = (exp.Rank, exp.DenseRank, exp.RowNumber, exp.Ntile, exp.PercentRank, exp.CumeDist)
_WHOLE = (exp.Rank, exp.DenseRank, exp.RowNumber, exp.Ntile)
_PICKS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)


def constant(node: exp.Expression) -> float | None:
    """A constant number, or None."""
    bare = node.unnest()
    if isinstance(bare, exp.Neg):
        inner = constant(bare.this)
        return None if inner is None else -inner
    try:
        value = float(bare.name) if isinstance(bare, exp.Literal) and not bare.is_string else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@final
@dataclass(frozen=True, slots=True)
class Affine:
    """``factor`` times one released column, plus ``shift``."""

    reference: str
    factor: float
    shift: float

    def times(self, factor: float) -> "Affine":
        """The multiple multiplied."""
        return Affine(self.reference, self.factor * factor, self.shift * factor)


def affine(tree: exp.Expression, columns: Sequence[str]) -> Affine | None:
    """The formula as a multiple of one of the columns, if it is one."""
    bare = tree.unnest()
    if isinstance(bare, exp.Column):
        return Affine(bare.name, 1.0, 0.0) if bare.name in columns else None
    if isinstance(bare, exp.Neg):
        inner = affine(bare.this, columns)
        return None if inner is None else inner.times(-1.0)
    if not isinstance(bare, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = constant(bare.this), constant(bare.expression)
    number, inner = right if left is None else left, affine(bare.this if left is None else bare.expression, columns)
    if number is None or inner is None or (isinstance(bare, exp.Div) and not right):
        return None
    if isinstance(bare, exp.Mul | exp.Div):
        return inner.times(number if isinstance(bare, exp.Mul) else 1 / number)
    if isinstance(bare, exp.Sub):
        inner, number = (inner, -number) if left is None else (inner.times(-1.0), number)
    return replace(inner, shift=inner.shift + number)


def references(tree: exp.Expression, columns: Sequence[str]) -> list[str]:
    """The released columns in a formula, each once."""
    return list(dict.fromkeys(one.name for one in tree.find_all(exp.Column) if one.name in columns))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Form:
    """A formula near the released numbers: its values, and what noises are multiplied with in it."""

    values: Floats
    noise: Mix
    """For standard errors."""
    reach: Mix
    """For intervals: the same, but where a column's interval is wider than its error says."""
    unknown: Mix
    """What numbers of columns that do not know their noise are multiplied with."""
    linear: bool
    exact: bool
    """Whether the columns in it are linear in their noise."""

    @property
    def knows(self) -> bool:
        """Whether all columns in it know their noise."""
        return not self.unknown.number().any()

    def _with(self, change: Callable[[Mix], Mix], values: Floats, *, linear: bool) -> "_Form":
        noise = change(self.noise)
        reach = noise if self.reach is self.noise else change(self.reach)
        return _Form(values, noise, reach, change(self.unknown), linear and self.linear, self.exact)

    def scaled(self, by: Floats, values: Floats, *, linear: bool) -> "_Form":
        """The formula multiplied, entry by entry."""
        return self._with(lambda mix: mix.scaled(by), values, linear=linear)

    def mixed(self, weights: Any, members: Any, values: Floats) -> "_Form":
        """Sums of entries; with ``members``, each sum stands for all entries that it has."""
        sums = (lambda mix: mix.mixed(weights)) if members is None else (lambda mix: mix.pooled(weights, members))
        return self._with(sums, values, linear=True)

    def plus(self, other: "_Form", values: Floats) -> "_Form":
        """The sum of two formulas."""
        noise, both = self.noise + other.noise, self.linear and other.linear
        same = self.reach is self.noise and other.reach is other.noise
        reach = noise if same else self.reach + other.reach
        return _Form(values, noise, reach, self.unknown + other.unknown, both, self.exact and other.exact)


@final
class Propagation:
    """Errors and intervals of formulas over the columns of one answer."""

    def __init__(self, table: ReleasedTable, columns: Mapping[str, AnswerColumn]) -> None:
        self._table, self._columns = table, columns
        self._atoms = atoms_of((column.noise, len(column.values)) for column in columns.values())
        sizes = [_unknown_sizes(column) for column in columns.values()]
        self._unknown_errors, self._unknown_halves = (np.concatenate(parts) for parts in zip(*sizes, strict=True))
        self._forms: dict[str, _Form | None] = {}
        self._values: dict[str, Floats] = {}
        self._width = _NORMAL
        self._methods: dict[str, None] = {}
        self._picked = False

    def column(self, name: str, tree: exp.Expression, values: Floats) -> AnswerColumn:
        """The column of a formula; its values were computed already."""
        used = self._begin(tree)
        scaled, bare = affine(tree, used), tree.unnest()
        with np.errstate(all="ignore"):
            if scaled is not None:
                return _multiple(name, scaled, values, self._columns[scaled.reference])
            self._prepare(tree)
            form, ends = self._form(tree), self._ends(tree, max(1, self._parts(tree)))
            whole = isinstance(bare, exp.Window) and isinstance(window_parts(bare)[0], _WHOLE)
            return self._finished(name, values, used, form, ends, whole=whole)

    def aggregated(self, name: str, function: exp.Expression, values: Floats, weights: Any) -> AnswerColumn:
        """The column of an aggregate over entries; ``weights`` say which entries are in each."""
        used, form, ends = self._begin(function), None, _nothing(len(values))
        different = isinstance(function.this, exp.Distinct)
        with np.errstate(all="ignore"):
            if isinstance(function, exp.Sum | exp.Avg) and not different:
                form = self._sum(function, self._form(function.this), weights, None, values)
            elif isinstance(function, exp.Count) and not (different and used):
                form = self._public(values)
            elif isinstance(function, exp.Min | exp.Max):
                ends = self._extreme(function, weights, 1)
            return self._finished(name, values, used, form, ends if form is None else self._leaf(form, 1))

    def _begin(self, tree: exp.Expression) -> list[str]:
        """The columns in a formula, whose heaviest tails decide how wide intervals are."""
        used = references(tree, list(self._columns))
        noises = [self._columns[name].noise for name in used]
        self._width = max((_LAPLACE if noise is None else noise.width for noise in noises), default=_NORMAL)
        self._methods, self._picked = {}, False
        return used

    def _finished(
        self, name: str, values: Floats, used: list[str], form: _Form | None, ends: _Ends, *, whole: bool = False
    ) -> AnswerColumn:
        slack = 1e-9 * (1.0 + np.abs(values))
        holds = np.isfinite(ends[0]) & np.isfinite(ends[1]) & (ends[0] - slack <= values) & (values <= ends[1] + slack)
        sure = holds if "quotient" in self._methods else np.isfinite(values)
        errors, noise, exact, tails = np.full(len(values), np.nan), None, False, Tails.UNKNOWN
        if form is not None:
            told = form.noise.norms() + form.unknown.total(self._unknown_errors)
            errors = np.where(sure & np.isfinite(told), told, np.nan)
            exact = form.linear and form.exact and form.knows
            tails = Tails.LOG_CONCAVE if exact and form.reach is form.noise else Tails.UNKNOWN
            if used and form.knows:
                noise = Mixture(form.noise, self._atoms, self._width, linear=exact)
        error = "exact error" if exact else "error by the delta method"
        error = error if np.isfinite(errors).any() or (form is not None and not len(values)) else "no standard error"
        low, high = (
            np.where(holds, np.minimum(ends[0], values), np.nan),
            np.where(holds, np.maximum(ends[1], values), np.nan),
        )
        how = self._how(used, error, known=bool(holds.any()) or not len(values))
        made = AnswerColumn(name, values, errors, low, high, integral=whole, how=how, tails=tails, noise=noise)
        opened = any(self._columns[column].limits != CLOSED for column in used)
        return replace(made, limits=(-math.inf, math.inf)) if opened else made

    def _how(self, used: list[str], error: str, *, known: bool) -> str:
        """What the column was computed from, and by which rule its errors follow."""
        if not used:
            return "without noise"
        said = f"computed from {' and '.join(self._columns[column].name for column in used)}"
        ways = {"quotient": "Fieller's theorem", "arithmetic": "interval arithmetic", "rank": "pairwise comparisons"}
        way = " and ".join(word for method, word in ways.items() if method in self._methods)
        interval = "no interval" if not known else f"interval by {way}" if way else ""
        return "; ".join(part for part in (said, error, interval, _PICKED if self._picked else "") if part)

    # Forms: formulas near the released numbers.

    def _form(self, node: exp.Expression) -> _Form | None:
        """The formula near the released numbers; None where how it depends on noise is not known."""
        key = written(node)
        if key not in self._forms:
            self._forms[key] = self._made(node)
        return self._forms[key]

    def _is_noisy(self, node: exp.Expression | None) -> bool:
        return node is not None and any(one.name in self._columns for one in node.find_all(exp.Column))

    def _value(self, node: exp.Expression) -> Floats:
        """The values of a formula as DuckDB computes them."""
        key = written(node)
        if key not in self._values:
            self._values[key] = numbers(self._table.values([node])[0])
        return self._values[key]

    def _prepare(self, tree: exp.Expression) -> None:
        """Compute the parts of a formula at once."""
        kinds: Any = (exp.Column, exp.Window, *_RULES, *_SLOPES)
        wanted: dict[str, Any] = {written(node): node for node in tree.find_all(*kinds)}
        missing = {key: node for key, node in wanted.items() if key not in self._values}
        for key, values in zip(missing, self._table.values(list(missing.values())), strict=True):
            self._values[key] = numbers(values)

    def _made(self, node: exp.Expression) -> _Form | None:  # noqa: PLR0911  # one line for each kind of node
        if not self._is_noisy(node):
            return self._public(self._value(node))
        if isinstance(node, exp.Column):
            return self._column(node.name)
        if isinstance(node, exp.Paren):
            return self._form(node.this)
        if isinstance(node, exp.Window):
            return self._window(node)
        if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Greatest | exp.Least):
            return self._chosen(node)
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
            return self._binary(node)
        return self._unary(node)

    def _public(self, values: Floats) -> _Form:
        nothing = Mix.of(sparse.csr_array((len(values), self._atoms.number)))
        unknown = Mix.of(sparse.csr_array((len(values), len(self._unknown_errors))))
        return _Form(values, nothing, nothing, unknown, linear=True, exact=True)

    def _column(self, name: str) -> _Form:
        column, size = self._columns[name], len(self._columns[name].values)
        public = self._public(column.values)
        if column.noise is None:
            return replace(public, unknown=self._alone(name, np.ones(size)), exact=False)
        mix, half = matrix_of(column.noise, size, self._atoms), _half(column)
        errors = mix.norms()
        unsure = ~np.isfinite(errors) | ~np.isfinite(column.errors)
        mix = mix.scaled(np.where(unsure, np.nan, 1.0)) if unsure.any() else mix
        ratio = np.where(unsure, 0.0, np.where(errors > 0, half / (column.noise.width * errors), 1.0))
        if np.allclose(ratio, 1.0, rtol=1e-6):
            return replace(public, noise=mix, reach=mix, exact=column.noise.linear)
        # An entry that says nothing beyond its range is added as it is: both the value and the truth are within.
        reach, unknown = mix.without_nan().scaled(ratio), self._alone(name, unsure.astype(np.float64))
        return replace(public, noise=mix, reach=reach, unknown=unknown, exact=column.noise.linear)

    def _alone(self, name: str, by: Floats) -> Mix:
        """Entries of a column whose noise is not known."""
        rows, first = np.flatnonzero(by), list(self._columns).index(name) * len(by)
        return Mix.of(sparse.csr_array((by[rows], (rows, first + rows)), shape=(len(by), len(self._unknown_errors))))

    def _binary(self, node: exp.Expression) -> _Form | None:
        left, right = self._form(node.this), self._form(node.expression)
        if left is None or right is None:
            return None
        values, ones = self._value(node), np.ones(self._table.size)
        noisy = self._is_noisy(node.this), self._is_noisy(node.expression)
        if isinstance(node, exp.Add | exp.Sub):
            parts = (ones, True), (ones if isinstance(node, exp.Add) else -ones, True)
        elif isinstance(node, exp.Mul):
            parts = (right.values, not noisy[1]), (left.values, not noisy[0])
        else:
            parts = (1 / right.values, not noisy[1]), (-left.values / right.values**2, False)
        sides = zip((left, right), parts, noisy, strict=True)
        terms = [form.scaled(by, values, linear=linear) for form, (by, linear), used in sides if used]
        return terms[0] if len(terms) == 1 else terms[0].plus(terms[1], values)

    def _unary(self, node: exp.Expression) -> _Form | None:
        """A function of one argument, by its derivative."""
        slope, argument = _SLOPES.get(type(node)), node.expression if _has_base(node) else node.this
        if slope is None or not isinstance(argument, exp.Expression):
            return None
        others = [part for part in node.args.values() if isinstance(part, exp.Expression) and part is not argument]
        inner = None if any(map(self._is_noisy, others)) else self._form(argument)
        by = None if inner is None else slope(node, inner.values)
        return None if inner is None or by is None else inner.scaled(by, self._value(node), linear=_keeps(node))

    def _chosen(self, node: exp.Expression) -> _Form | None:
        """The branch that was taken; linear if no noise decided which."""
        branches, conditions = _branches(node)
        forms = [self._form(branch) for branch in branches]
        values = self._value(node)
        if isinstance(node, exp.Coalesce):
            masks = [~np.isnan(self._value(branch)) for branch in branches]
        elif isinstance(node, exp.Greatest | exp.Least):
            masks = [self._value(branch) == values for branch in branches]
        else:
            masks = [self._value(condition) == 1.0 for condition in conditions]
            masks.append(np.ones(len(values), np.bool_))
        fixed = not isinstance(node, exp.Greatest | exp.Least) and not any(map(self._is_noisy, conditions))
        total, free, fallen = None, np.ones(len(values), np.bool_), np.zeros(len(values), np.bool_)
        for form, mask, branch in zip(forms, masks, branches, strict=False):
            taken, free = free & mask, free & ~mask
            if not self._is_noisy(branch):
                fallen |= taken
                continue
            if form is None:
                return None
            part = form.scaled(taken.astype(np.float64), values, linear=True)
            total = part if total is None else total.plus(part, values)
        if total is None or fixed:
            return total  # None: noise only decides which of several constants it is
        # Where noise decided for a constant, the constant has no noise, but that it is shown has.
        lost = self._alone(next(iter(self._columns)), np.where(fallen, np.nan, 0.0))
        return replace(total, linear=False, unknown=total.unknown + lost)

    # Windows: which entries are in each frame is asked of the database itself.

    def _window(self, node: exp.Window) -> _Form | None:
        function, condition, _ = window_parts(node)
        if isinstance(function, _RANKS):
            return None
        self._decided(node, condition)
        if isinstance(function, _PICKS):
            return self._picks(node)
        if not isinstance(function, exp.Sum | exp.Avg | exp.Count) or isinstance(function.this, exp.Distinct):
            return None
        frame = self._frame(node)
        if frame is None:
            return None
        star = isinstance(function.this, exp.Star) or not isinstance(function.this, exp.Expression)
        inner = None if star else self._form(function.this)
        return self._sum(function, inner, *frame, self._value(node))

    def _decided(self, node: exp.Window, condition: exp.Expression | None) -> None:
        """Note where noisy numbers decide which entries are in a frame."""
        parts = [*(node.args.get("partition_by") or []), node.args.get("order"), condition]
        self._picked |= any(self._is_noisy(part) for part in parts if isinstance(part, exp.Expression))

    def _sum(
        self, function: exp.Expression, inner: _Form | None, weights: Any, members: Any, values: Floats
    ) -> _Form | None:
        """A sum, an average or a number of entries."""
        if isinstance(function, exp.Count):
            return self._public(values)
        if inner is None or not isinstance(function, exp.Sum | exp.Avg):
            return None
        if weights.nnz * max(1, inner.noise.size) / max(1, len(inner.values)) > _MOST:
            return None
        if isinstance(function, exp.Avg):
            number = np.asarray(weights.sum(axis=1)).ravel()
            weights = sparse.csr_array(sparse.diags_array(np.where(number > 0, 1 / number, 0.0)) @ weights)
        return inner.mixed(weights, members, values)

    def _frame(self, node: exp.Window) -> tuple[Any, Any] | None:
        """Which entries are in the frame of each, as a matrix; where it is a whole partition, its members as well."""
        test = counted_entries(node)
        size, place = self._table.size, self._table.place
        if _is_whole(node):
            first = exp.Window(this=exp.Min(this=place), partition_by=node.args.get("partition_by"), over="OVER")
            labels, kept = map(numbers, self._table.values([first, test]))
            _, inverse = np.unique(labels, return_inverse=True)
            shape = (size, int(inverse.max(initial=-1)) + 1)
            members = sparse.csr_array((np.ones(size), (np.arange(size), inverse)), shape=shape)
            inside = sparse.diags_array(np.where(kept == 1, 1.0, 0.0), format="csr")
            return sparse.csr_array(members.T @ inside), members
        counted, listed = (
            _over(node, exp.Filter(this=each, expression=exp.Where(this=test.copy())))
            for each in (exp.Count(this=place), exp.ArrayAgg(this=place))
        )
        if np.nansum(numbers(self._table.values([counted])[0])) > _MOST:
            return None
        return entry_matrix(self._table.values([listed])[0], size), None

    def _source(self, node: exp.Window) -> Floats:
        """From which entry a function such as LAG takes its value; not a number for none."""
        made = node.copy()
        function, _, _ = window_parts(made)
        function.set("this", exp.Case(ifs=[exp.If(this=_given(function.this), true=self._table.place)]))
        function.set("default", None)
        return self._value(made)

    def _picks(self, node: exp.Window) -> _Form | None:
        function, _, _ = window_parts(node)
        inner = self._form(function.this)
        others = [function.args.get("default"), function.args.get("offset")]
        if inner is None or any(self._is_noisy(part) for part in others if isinstance(part, exp.Expression)):
            return None
        source, size = self._source(node), self._table.size
        known = np.flatnonzero(~np.isnan(source))
        weights = sparse.csr_array((np.ones(len(known)), (known, source[known].astype(np.int64))), shape=(size, size))
        return inner.mixed(weights, None, self._value(node))

    # Ends: intervals of which all parts hold together.

    def _parts(self, node: exp.Expression) -> int:
        """How many intervals must hold together for a formula."""
        if not self._is_noisy(node):
            return 0
        form = self._form(node)
        if (form is not None and form.linear) or self._fieller(node) is not None:
            return 1
        if isinstance(node, exp.Window):
            function, _, _ = window_parts(node)
            if isinstance(function, exp.Min | exp.Max):
                frame = self._frame(node)
                return 1 if frame is None else _longest(frame[0]) * self._parts(function.this)
            return self._parts(function.this) if isinstance(function, _PICKS) else 1
        return max(1, sum(map(self._parts, _operands(node))))

    def _ends(self, node: exp.Expression, parts: int) -> _Ends:  # noqa: PLR0911  # one for each kind of node
        """The formula over intervals, of which there are so many parts; not a number where nothing is known."""
        values = self._value(node)
        if not self._is_noisy(node):
            return values, values
        if isinstance(node, exp.Paren):
            return self._ends(node.this, parts)
        if isinstance(node, exp.Column):
            column, factor = self._columns[node.name], self._stretch(parts)
            return values - factor * (values - column.low), values + factor * (column.high - values)
        form = self._form(node)
        if form is not None and form.linear:
            return self._leaf(form, parts)
        pair = self._fieller(node)
        if pair is not None:
            return self._quotients(*pair, parts)
        if isinstance(node, exp.Window):
            return self._window_ends(node, form, parts)
        rule = _RULES.get(type(node))
        if rule is None:
            return _nothing(len(values)) if form is None else self._leaf(form, parts)
        self._methods["arithmetic"] = None
        low, high = rule(node, [self._ends(part, parts) for part in _operands(node)])
        return low, high

    def _window_ends(self, node: exp.Window, form: _Form | None, parts: int) -> _Ends:
        function, _, _ = window_parts(node)
        size = self._table.size
        if isinstance(function, _RANKS):
            return self._ranks(node, function, parts)
        if isinstance(function, _PICKS) and form is not None:
            source, inner, values = self._source(node), self._ends(function.this, parts), self._value(node)
            places = np.where(np.isnan(source), 0, source).astype(np.int64)
            low, high = (np.where(np.isnan(source), values, end[places]) for end in inner)
            return low, high
        if isinstance(function, exp.Min | exp.Max):
            frame = self._frame(node)
            if frame is None:
                return _nothing(size)
            low, high = self._extreme(function, frame[0], parts)
            labels = None if frame[1] is None else np.asarray(frame[1].argmax(axis=1)).ravel()
            return (low, high) if labels is None else (low[labels], high[labels])
        return _nothing(size) if form is None else self._leaf(form, parts)

    def _extreme(self, function: exp.Expression, weights: Any, parts: int) -> _Ends:
        """The least or largest of the entries in each frame: the least of the ends."""
        self._methods["arithmetic"] = None
        together = max(parts, _longest(weights) * max(1, self._parts(function.this)))
        reduce = np.minimum if isinstance(function, exp.Min) else np.maximum
        made = []
        for end in self._ends(function.this, together):
            out = np.full(weights.shape[0], np.nan)
            filled = np.flatnonzero(np.diff(weights.indptr))
            if len(filled):
                out[filled] = reduce.reduceat(end[weights.indices], weights.indptr[:-1][filled])
            made.append(out)
        return made[0], made[1]

    def _leaf(self, form: _Form, parts: int) -> _Ends:
        """The ends of a linear formula, or of the one with the same derivatives."""
        spread = form.reach.norms()
        together = parts * np.maximum(1, form.unknown.number() + (spread > 0))
        half = self._width * self._stretch(together) * spread
        half += _log_concave(together) * form.unknown.total(self._unknown_halves)
        return form.values - half, form.values + half

    def _stretch(self, parts: Any) -> Any:
        """How much wider an interval is that fails with 0.05 divided by so many parts."""
        if self._width > _NORMAL:
            return _log_concave(parts)
        return special.ndtri(1 - 0.025 / np.maximum(parts, 1)) / special.ndtri(0.975)

    def _fieller(self, node: exp.Expression) -> tuple[_Form, _Form] | None:
        """Both sides of a quotient of linear formulas."""
        if not isinstance(node, exp.Div) or not self._is_noisy(node.expression):
            return None
        sides = [self._form(side) for side in (node.this, _bare(node.expression))]
        if any(form is None or not form.linear or not form.knows for form in sides):
            return None
        return sides[0], sides[1]  # type: ignore[return-value]  # none is None

    def _quotients(self, above: _Form, below: _Form, parts: int) -> _Ends:
        self._methods["quotient"] = None
        noise, top, bottom = (self._width * self._stretch(parts)) ** 2, above.reach, below.reach
        squares = noise * top.dot(top), noise * top.dot(bottom), noise * bottom.dot(bottom)
        return fieller(above.values, below.values, *squares)

    # Ranks.

    def _ranks(self, node: exp.Window, function: exp.Expression, parts: int) -> _Ends:
        size = self._table.size
        order = node.args.get("order")
        by = node.args.get("partition_by") or []
        if order is None or any(map(self._is_noisy, by)) or not self._is_noisy(order.expressions[0].this):
            return _nothing(size)
        self._methods["rank"] = None
        first = order.expressions[0]
        place = exp.Window(this=exp.Min(this=self._table.place), partition_by=by, over="OVER")
        labels = numbers(self._table.values([place])[0])
        form = self._form(first.this)
        apart = form is not None and form.linear and form.noise.apart and form.knows
        variance = form.reach.dot(form.reach) if form is not None and apart else None
        ends = dict[int, _Ends]()
        low, high = _nothing(size)
        rows = np.argsort(labels, kind="stable")
        for members in np.split(rows, np.flatnonzero(np.diff(labels[rows])) + 1):
            number = len(members)
            if not 0 < number <= _MOST_RANKED:
                continue
            if number not in ends:
                ends[number] = self._ends(first.this, parts * number)
            early, late = (end[members] for end in ends[number])
            values = self._value(first.this)[members]
            if first.args.get("desc"):
                early, late, values = -late, -early, -values
            if variance is not None:
                wide = self._width * float(self._stretch(parts * max(1, number - 1)))
                before, after = _compared(values, variance[members], wide)
            else:
                before, after = _beyond(early, late)
            least, most = _as_asked(function, before + 1.0, number - np.asarray(after, np.float64), early, late)
            low[members] = np.where(np.isnan(values), np.nan, least)
            high[members] = np.where(np.isnan(values), np.nan, most)
        return low, high


_PICKED = "as noisy numbers decide the order, fewer than 95 % of the intervals hold"


def _multiple(name: str, scaled: Affine, values: Floats, column: AnswerColumn) -> AnswerColumn:
    ends = np.sort(np.stack([scaled.factor * end + scaled.shift for end in (column.low, column.high)]), axis=0)
    how = f"computed from {column.name}: {column.how}"
    errors = abs(scaled.factor) * column.errors
    noise = None if column.noise is None else column.noise.scaled(np.full(len(values), scaled.factor))
    made = AnswerColumn(
        name, values, errors, ends[0], ends[1], integral=False, how=how, tails=column.tails, noise=noise
    )
    if not scaled.factor:
        return made
    least, most = column.limits if scaled.factor > 0 else column.limits[::-1]
    return replace(made, limits=(scaled.factor * least + scaled.shift, scaled.factor * most + scaled.shift))


def numbers(values: Any) -> Floats:
    """An Arrow column as floats, truth as 0 and 1; not a number where it is missing, infinite or of another kind."""
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return np.full(len(values), np.nan)
    floats = np.array(values.cast(pa.float64(), safe=False).to_numpy(), np.float64)
    return np.where(np.isfinite(floats), floats, np.nan)


def _nothing(size: int) -> _Ends:
    """Ends of which nothing is known."""
    return np.full(size, np.nan), np.full(size, np.nan)


def _half(column: AnswerColumn) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.fmax(column.values - column.low, column.high - column.values)


def _unknown_sizes(column: AnswerColumn) -> tuple[Floats, Floats]:
    """Errors and half-widths of the entries of a column, where its noises do not tell them."""
    errors = column.spread if column.absolute else column.errors
    return errors if column.noise is None else np.zeros(len(column.values)), _half(column)


def _log_concave(parts: Any) -> Any:
    return 1 + np.log(np.maximum(parts, 1)) / math.log(20)


def _is_whole(node: exp.Window) -> bool:
    """Whether each frame is the whole partition."""
    spec = node.args.get("spec")
    if spec is None:
        return node.args.get("order") is None
    ends = {str(spec.args.get(end) or "").upper() for end in ("start", "end")}
    return ends == {"UNBOUNDED"} and not spec.args.get("exclude")


def counted_entries(window: exp.Window) -> Any:
    """Whether an entry counts in the aggregate of a window: it meets the condition, and its argument is not NULL."""
    function, condition, _ = window_parts(window)
    tests: list[Any] = [] if condition is None else [exp.paren(condition.copy())]
    if isinstance(function.this, exp.Expression) and not isinstance(function.this, exp.Star | exp.Distinct):
        tests.append(_given(function.this))
    return exp.and_(*tests) if tests else exp.true()


def _given(node: exp.Expression) -> exp.Expression:
    return exp.Not(this=exp.Is(this=exp.paren(node.copy()), expression=exp.Null()))


def _over(node: exp.Window, function: exp.Expression) -> exp.Expression:
    made = node.copy()
    made.set("this", function)
    return made


def entry_matrix(lists: Any, size: int) -> Any:
    """Which of so many entries are in each list, as a matrix of ones."""
    column = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    places = pc.list_flatten(column).to_numpy()
    lines = np.repeat(np.arange(len(lengths)), lengths)
    return sparse.csr_array((np.ones(len(places)), (lines, places)), shape=(len(lengths), size))


def _longest(weights: Any) -> int:
    return max(1, int(np.diff(weights.indptr).max(initial=1)))


def _bare(node: exp.Expression) -> exp.Expression:
    """What a quotient is divided by, without NULLIF(…, 0) around it."""
    while isinstance(node, exp.Paren | exp.Nullif):
        node = node.this
    return node


def _has_base(node: exp.Expression) -> bool:
    """Whether it is a logarithm that names its base."""
    return isinstance(node, exp.Log) and node.args.get("expression") is not None


def _keeps(node: exp.Expression) -> bool:
    """Whether a function of one argument keeps it as it is, but for making it missing."""
    return isinstance(node, exp.Nullif | exp.Neg) or (isinstance(node, exp.Cast) and _is_float(node))


def _is_float(node: exp.Cast) -> bool:
    return node.to.this in exp.DataType.FLOAT_TYPES


def _branches(node: exp.Expression) -> tuple[list[exp.Expression], list[exp.Expression]]:
    """What a choice chooses from, and by which conditions."""
    if isinstance(node, exp.If):
        other = node.args.get("false") or exp.Null()
        return [node.args["true"], other], [node.this]
    if isinstance(node, exp.Case):
        operand = node.this
        ifs = node.args["ifs"]
        tests = [each.this if operand is None else exp.EQ(this=operand.copy(), expression=each.this) for each in ifs]
        return [*(each.args["true"] for each in ifs), node.args.get("default") or exp.Null()], tests
    return [node.this, *node.expressions], []


def _operands(node: exp.Expression) -> list[exp.Expression]:
    """What a rule works on: both sides of an operator, branches, the argument of a function."""
    if isinstance(node, exp.Case | exp.If | exp.Coalesce | exp.Greatest | exp.Least):
        return _branches(node)[0]
    if isinstance(node, exp.Pow):
        return [node.this]
    if isinstance(node, exp.Binary):
        return [node.this, node.expression]
    if _has_base(node):
        return [node.expression]
    return [node.this] if isinstance(node.this, exp.Expression) else []


def _power(node: exp.Expression, x: Floats) -> Floats | None:
    power = constant(node.expression)
    return None if power is None else power * np.power(x, power - 1)


def _logarithm(node: exp.Expression, x: Floats) -> Floats | None:
    base = constant(node.this) if _has_base(node) else 10.0
    return None if base is None or base <= 0 or base == 1 else 1 / (x * math.log(base))


_SLOPES: dict[type[exp.Expression], Callable[[Any, Floats], Floats | None]] = {
    exp.Neg: lambda _, x: np.full(len(x), -1.0),
    exp.Sqrt: lambda _, x: 1 / (2 * np.sqrt(x)),
    exp.Exp: lambda _, x: np.exp(x),
    exp.Ln: lambda _, x: 1 / x,
    exp.Log: _logarithm,
    exp.Abs: lambda _, x: np.where(x < 0, -1.0, 1.0),
    exp.Pow: _power,
    **dict.fromkeys((exp.Nullif, exp.Round, exp.Floor, exp.Ceil, exp.Cast), lambda _, x: np.ones(len(x))),
}
"""Derivatives of functions of one argument; rounding moves a number by less than a unit, which its interval has."""


def _products(_: Any, parts: list[_Ends]) -> _Ends:
    products = np.stack([x * y for x in parts[0] for y in parts[1]])
    return products.min(axis=0), products.max(axis=0)


def _divided(node: Any, parts: list[_Ends]) -> _Ends:
    top, bottom = parts
    crosses = (bottom[0] <= 0) & (bottom[1] >= 0)
    low, high = _products(node, [top, (1 / bottom[1], 1 / bottom[0])])
    return np.where(crosses, np.nan, low), np.where(crosses, np.nan, high)


def _absolute(_: Any, parts: list[_Ends]) -> _Ends:
    ((low, high),) = parts
    return np.abs(np.clip(0.0, low, high)), np.maximum(np.abs(low), np.abs(high))


def _rounded(node: Any, parts: list[_Ends]) -> _Ends:
    """Rounding keeps order, and moves a number by less than one unit of the last place."""
    ((low, high),) = parts
    if isinstance(node, exp.Cast) and _is_float(node):
        return low, high
    given = node.args.get("decimals")
    places = 0.0 if given is None else constant(given)
    if places is None or places != int(places) or abs(places) > _MOST_PLACES:
        return _nothing(len(low))
    unit = 10.0 ** -int(places)
    return np.floor(low / unit) * unit, np.ceil(high / unit) * unit


def _raised(node: Any, parts: list[_Ends]) -> _Ends:
    power, ((low, high),) = constant(node.expression), parts
    if power is None or power <= 0:
        return _nothing(len(low))
    if power == 2:
        low, high = _absolute(node, parts)
    return np.where(low >= 0, np.power(low, power), np.nan), np.power(high, power)


def _hull(_: Any, parts: list[_Ends]) -> _Ends:
    """Of all branches, since noise may decide between them; a branch that is missing has no numbers."""
    low, high = (np.stack([part[end] for part in parts]) for end in (0, 1))
    empty = np.isnan(low).all(axis=0)
    low, high = np.where(np.isnan(low), np.inf, low).min(axis=0), np.where(np.isnan(high), -np.inf, high).max(axis=0)
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


_RULES: dict[type[exp.Expression], Callable[[Any, list[_Ends]], _Ends]] = {
    exp.Neg: lambda _, p: (-p[0][1], -p[0][0]),
    exp.Add: lambda _, p: (p[0][0] + p[1][0], p[0][1] + p[1][1]),
    exp.Sub: lambda _, p: (p[0][0] - p[1][1], p[0][1] - p[1][0]),
    exp.Mul: _products,
    exp.Div: _divided,
    exp.Nullif: lambda _, p: p[0],
    exp.Sqrt: lambda _, p: (np.sqrt(np.maximum(p[0][0], 0)), np.sqrt(p[0][1])),
    exp.Exp: lambda _, p: (np.exp(p[0][0]), np.exp(p[0][1])),
    exp.Ln: lambda _, p: (np.log(p[0][0]), np.log(p[0][1])),
    exp.Abs: _absolute,
    exp.Round: _rounded,
    exp.Floor: _rounded,
    exp.Ceil: _rounded,
    exp.Cast: _rounded,
    exp.Pow: _raised,
    exp.Case: _hull,
    exp.If: _hull,
    exp.Coalesce: _hull,
    exp.Greatest: lambda _, p: (np.fmax.reduce([low for low, _ in p]), np.fmax.reduce([high for _, high in p])),
    exp.Least: lambda _, p: (np.fmin.reduce([low for low, _ in p]), np.fmin.reduce([high for _, high in p])),
}
"""Formulas over intervals."""


def _compared(values: Floats, variance: Floats, wide: float) -> tuple[Any, Any]:
    """How many entries are before and after each for certain: those whose difference is beyond its noise."""
    before, after = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    for start in range(0, len(values), 512):
        block = slice(start, start + 512)
        difference = values[None, :] - values[block, None]
        noise = wide * np.sqrt(variance[None, :] + variance[block, None])
        before[block], after[block] = (difference < -noise).sum(axis=1), (difference > noise).sum(axis=1)
    return before, after


def _beyond(early: Floats, late: Floats) -> tuple[Any, Any]:
    """How many intervals are wholly before and after each."""
    ends, starts = np.sort(late[~np.isnan(late)]), np.sort(early[~np.isnan(early)])
    return np.searchsorted(ends, early, side="left"), len(starts) - np.searchsorted(starts, late, side="right")


def _as_asked(function: exp.Expression, least: Floats, most: Floats, early: Floats, late: Floats) -> _Ends:
    """Bounds on ranks as those of what a function makes of ranks."""
    number = len(least)
    if isinstance(function, exp.DenseRank):
        return _chains(early, late), most
    if isinstance(function, exp.PercentRank):
        return (least - 1) / max(1, number - 1), (most - 1) / max(1, number - 1)
    if isinstance(function, exp.CumeDist):
        return least / number, most / number
    if isinstance(function, exp.Ntile):
        tiles = constant(function.this) if isinstance(function.this, exp.Expression) else None
        if tiles is None or tiles < 1:
            return _nothing(number)
        return _tile(least, number, int(tiles)), _tile(most, number, int(tiles))
    return least, most


def _chains(early: Floats, late: Floats) -> Floats:
    """One more than the longest chain of intervals, each wholly before the next, that ends before each interval."""
    longest = np.ones(len(early))
    ends: list[float] = []  # where the first chain of each length ends
    for row in np.argsort(late, kind="stable"):
        longest[row] = 1 + bisect_left(ends, early[row])
        if longest[row] > len(ends):
            ends.append(float(late[row]))
    return longest


def _tile(place: Floats, number: int, tiles: int) -> Floats:
    """The tile of a place: the first of NTILE have one entry more."""
    size, more = divmod(number, tiles)
    large = more * (size + 1)
    return np.where(
        place <= large, np.ceil(place / (size + 1)), more + np.ceil((place - large) / size) if size else float(number)
    )
