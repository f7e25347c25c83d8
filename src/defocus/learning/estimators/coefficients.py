r"""Coefficients with confidence intervals that hold sampling error and noise: one noisy Newton step.

From released coefficients :math:`w_0` (zero for squares, where descent ends for the logistic loss), three sums over
units are released: the gradient g of the loss without a ridge, its curvature H, and the meat M of the sandwich, the
sum of :math:`\psi\psi^T` for what :math:`\psi` each unit adds to the gradient. With noise :math:`\eta` in g and E in H,
the estimate :math:`w_1` solves :math:`\hat g + \hat H\,(w_1 - w_0) = 0`, while the best fit in the population,
:math:`w^*`, makes

.. math:: \hat g + \hat H\,(w^* - w_0) = \sum\psi(w^*) + \eta + E\,(w^* - w_0) + r ,

where r is zero for squares. The curvature of the logistic loss changes along the step; it is released at both ends for
half of its share each, and the mean of both leaves an r of third order. So
:math:`w_1 - w^* = -\hat H^{-1}(\sum\psi(w^*) + \eta + E\,(w^* - w_0))` with the released :math:`\hat H`: however noisy
it is, the first two terms have the covariance :math:`\hat H^{-1}(M + \sigma_g^2 I)\hat H^{-1}` given it. The third
has :math:`\hat H^{-1}Q(w^* - w_0)\hat H^{-1}` with

.. math:: Q(\delta) = s^2(|\delta|^2 I + \delta\delta^T) + (t^2 - 2s^2)\,\mathrm{diag}(\delta_i^2)

for noise of variance s² off the diagonal of H and t² on it, and depends on what is sought. As in Fieller's theorem, an
interval is all values that the sums do not reject: for :math:`\delta = (w_1 - w_0) + \tau u`, along the direction u in
which a coefficient errs, those :math:`\tau` with :math:`\tau^2 \le z^2(q_0 + q_1\tau + q_2\tau^2)`. Where
:math:`z^2 q_2 \ge 1`, no value is rejected: the noise drowns the curvature, and the interval is the whole line. It also
is where an eigenvalue of the curvature is no larger than the noise of one of its entries.

The meat has noise, too: its part of a variance, :math:`\hat m`, errs by a known standard deviation s, beside the
variance N of the other noise. A negative :math:`\hat m` is zero, and z is Student's quantile with
:math:`2(N + \max(\hat m, s))^2/s^2` degrees of freedom (Satterthwaite). So where s is not small, more than 95 % of the
intervals hold.

Reference:
    Huber (1967), The behavior of maximum likelihood estimates under nonstandard conditions; White (1980), A
    heteroskedasticity-consistent covariance matrix estimator; Fieller (1954), Some problems in interval estimation; Le
    Cam (1956), On the asymptotic theory of estimation and testing hypotheses, for the one step.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, final

import numpy as np
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from defocus.answers import plots
from defocus.answers.answer import Answer
from defocus.answers.columns import CONFIDENCE, AnswerColumn
from defocus.answers.rules import Effect, Rule
from defocus.answers.tables import Keys, plain
from defocus.errors import InvalidParameterError, Number, probability
from defocus.learning.estimators.base import PrivateEstimator
from defocus.learning.estimators.descent import PULL, ROW_BITS, grained, noised
from defocus.learning.estimators.fit_budget import FitBudget, Noise, Sum, deviation
from defocus.learning.estimators.grid import Floats, Held, moment_noise, moment_sum, noisy_moments
from defocus.ledger import Receipt
from defocus.noise import Bits
from defocus.privacy.budgets import Budget

__all__ = [
    "Coefficients",
    "Curve",
    "Inference",
    "InferringEstimator",
    "Shares",
    "inferred",
    "newton_sums",
    "unregularised",
]

_INTERCEPT = "(intercept)"
_DROWNED = 1e300
"""The q₂ of a coefficient of which nothing is known: a number, so that every file can hold it."""
_FEW = 10
"""With fewer degrees of freedom, an answer says that its intervals are wide for the noise in their own width."""
_MEAT_BITS = 15
"""What units add to a gradient measures up to 2**15 steps where it is squared: small ones are not rounded away."""
_LARGEST = 2.0**12
"""No coefficient is larger where scores are computed with it."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A loss of rows at whole coefficients: everything that a Newton step asks of it.

    ``residuals`` are whole numbers of at most PULL, one for each row, with what one of their steps stands for;
    ``roots`` are whole numbers from 0 to PULL, whose squares are the curvature in steps of ``bend`` / PULL². Both may
    depend on a row and its coefficients alone. ``confined`` moves coefficients to where residuals have a bound.
    """

    residuals: Callable[[Floats], tuple[Floats, float]]
    roots: Callable[[Floats], Floats]
    bend: float
    looks: int = 1
    """How often the curvature is released: once where it is the same everywhere, else at both ends of the step."""
    confined: Callable[[Floats], Floats] = lambda w: w


Shares: TypeAlias = tuple[float, float, float]
"""What the gradient, the curvature and the meat take of the price."""


def newton_sums(width: int, looks: int, shares: Shares) -> tuple[Sum, Sum, Sum]:
    r"""The gradient, the curvature, as often as it is looked at, and the meat.

    Guarantee:
        A row x has norm at most :math:`2^{13}`. It adds :math:`rx` to the gradient, with a whole
        :math:`|r| \le 2^{13}`, so at most :math:`2^{26}`. To the curvature it adds :math:`vv^T` with
        :math:`v = \mathrm{trunc}(kx/2^{13})` for a whole k from 0 to :math:`2^{13}`, and to the meat :math:`uu^T` with
        :math:`u = \mathrm{trunc}(rx/2^{11})`. Rounding towards zero makes no entry larger, so
        :math:`\|v\| \le 2^{13}` and :math:`\|u\| \le 2^{15}`, and the weighted entries of the sums move by at most
        :math:`5\cdot2^{26}` and :math:`5\cdot2^{30}` (:mod:`.grid`). A person adds the averages of rx and of vvᵀ, each
        entry rounded towards zero, which are no longer; and to the meat :math:`uu^T` of one vector, rounded from the
        average of rx.
    """
    gradient, curvature, meat = shares
    bent = replace(moment_sum(width, ROW_BITS, curvature), times=looks)
    return Sum(2**ROW_BITS * PULL, width, gradient), bent, moment_sum(width, _MEAT_BITS, meat)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inference:
    """Estimates, the two parts of their standard errors, and how intervals follow from these; all of it released."""

    estimates: Floats
    noise: Floats
    sampling: Floats
    lean: Floats
    """The q₁ of each."""
    slack: Floats
    """The q₂ of each."""
    freedom: Floats

    @property
    def table(self) -> Floats:
        """All of it, a row for each coefficient."""
        return np.column_stack([self.estimates, self.noise, self.sampling, self.lean, self.slack, self.freedom])

    @property
    def errors(self) -> Floats:
        """Standard errors, of noise and sampling together."""
        return np.asarray(np.hypot(self.noise, self.sampling))

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """Both ends of each interval of this confidence; infinite where noise leaves none.

        >>> known = Inference(*np.array([[1.0], [0.3], [0.4], [0.0], [0.0], [1e9]]))
        >>> [end.round(2).tolist() for end in known.ends(0.95)]
        [[0.02], [1.98]]
        """
        z2 = np.asarray(stdtrit(self.freedom, 0.5 + confidence / 2)) ** 2
        with np.errstate(all="ignore"):
            rest, middle = 1 - z2 * self.slack, z2 * self.lean / 2
            root = np.sqrt(middle**2 + rest * z2 * self.errors**2)
            low, high = self.estimates + (middle - root) / rest, self.estimates + (middle + root) / rest
        bounded = (rest > 0) & np.isfinite(low) & np.isfinite(high)
        return np.where(bounded, low, -np.inf), np.where(bounded, high, np.inf)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Bent:
    """A noisy curvature, and the standard errors of its entries on the diagonal and off it."""

    matrix: Floats
    on: float
    off: float

    @classmethod
    def released(cls, rows: Held, curve: Curve, w: Floats, noise: Noise, bits: Bits) -> "_Bent":
        seen = noisy_moments(rows.weighted(curve.roots(w), ROW_BITS), noise, bits, rows.persons)
        on, off = moment_noise(noise)
        scale = curve.bend / 4**ROW_BITS
        return cls(seen * scale, on * scale, off * scale)

    def and_then(self, other: "_Bent", number: int) -> "_Bent":
        """The mean of ``number`` of them, of which this was the mean of all but one."""
        shrink = math.sqrt((number - 1) / number)
        return _Bent(self.matrix + (other.matrix - self.matrix) / number, self.on * shrink, self.off * shrink)

    @property
    def drowned(self) -> bool:
        """Whether an eigenvalue is no larger than the noise of an entry."""
        return bool(np.linalg.eigvalsh(self.matrix)[0] <= self.off)

    @property
    def inverse(self) -> Floats:
        """Its inverse, once eigenvalues are as large as that."""
        values, vectors = np.linalg.eigh(self.matrix)
        lifted: Floats = vectors / np.maximum(values, self.off) @ vectors.T
        return lifted

    def solved(self, gradient: Floats) -> Floats:
        """The Newton step."""
        step: Floats = -self.inverse @ gradient
        return step

    def wobble(self, a: Floats, b: Floats) -> Floats:
        """The covariance of Ea and Eb, made symmetric, for the noise E; Q(a) for b = a."""
        outer = np.outer(a, b)
        both: Floats = self.off**2 * ((a @ b) * np.eye(len(a)) + (outer + outer.T) / 2)
        both += (self.on**2 - 2 * self.off**2) * np.diag(a * b)
        return both


def inferred(
    rows: Held, curve: Curve, w: Floats, *, noises: Sequence[Noise], bits: Bits, units: Callable[[Floats], Floats]
) -> Inference:
    """One step from ``w``, and what is known about its error, in the ``units`` of the data, an affine function.

    Everything here is paid for by the ``noises`` of :func:`newton_sums`.
    """
    pulled, curved, spread = noises
    start = grained(curve.confined(w)[:, np.newaxis])
    w = start[:, 0] / grained(np.ones(1))
    missed, step = curve.residuals(start)
    gradient = noised(rows.tallied(missed), pulled, bits)[:, 0] * (step / 2**ROW_BITS)
    error = deviation(pulled) * step / 2**ROW_BITS

    found = _Bent.released(rows, curve, start, curved, bits)
    for look in range(2, curve.looks + 1):
        end = np.clip(w + found.solved(gradient), -_LARGEST, _LARGEST)
        here = grained(curve.confined(end)[:, np.newaxis])
        found = found.and_then(_Bent.released(rows, curve, here, curved, bits), look)
    inverse, moved = found.inverse, found.solved(gradient)
    here = grained(curve.confined(np.clip(w + moved, -_LARGEST, _LARGEST))[:, np.newaxis])

    missed, step = curve.residuals(here)
    scale = (step / 2 ** (_MEAT_BITS - ROW_BITS)) ** 2
    meat = noisy_moments(rows.units(missed[:, 0], 2 * ROW_BITS - _MEAT_BITS), spread, bits) * scale
    there, beside = (each * scale for each in moment_noise(spread))

    zero = units(np.zeros(len(w)))
    sought = np.stack([units(each) - zero for each in np.eye(len(w))], axis=1)
    weights = sought @ inverse
    noisy = error**2 * np.eye(len(w)) + found.wobble(moved, moved)
    noise, sampling = (np.einsum("ij,jk,ik->i", weights, each, weights) for each in (noisy, meat))
    doubt = 2 * beside**2 * (weights**2).sum(axis=1) ** 2 + (there**2 - 2 * beside**2) * (weights**4).sum(axis=1)
    sampling = np.maximum(sampling, 0.0)
    along = weights @ noisy @ inverse
    with np.errstate(all="ignore"):
        along /= np.einsum("ij,ij->i", along, sought)[:, np.newaxis]
        freedom = 2 * (noise + np.maximum(sampling, np.sqrt(doubt))) ** 2 / doubt
    lean = [2 * a @ found.wobble(moved, u) @ a for a, u in zip(weights, along, strict=True)]
    slack = [a @ found.wobble(u, u) @ a for a, u in zip(weights, along, strict=True)]
    drowned = np.full(len(weights), found.drowned)
    return Inference(
        units(w + moved),
        np.sqrt(noise),
        np.sqrt(sampling),
        np.nan_to_num(lean),
        np.where(drowned, _DROWNED, np.nan_to_num(slack, nan=_DROWNED)),
        np.nan_to_num(freedom, nan=1.0, posinf=_DROWNED),
    )


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coefficients(Answer):
    """Coefficients of a regression with intervals for those of the population: of noise and sampling together.

    The columns ``noise`` and ``sampling`` are the two parts of each standard error, whose squares add up to its own.
    """

    inference: Inference
    features: Sequence[str]
    question: str = field()
    receipt: Receipt | None = field()
    asked: Budget | None = field()
    rules: tuple[Rule, ...] = field()
    things: tuple[str, str] = ("coefficient", "coefficients")

    @property
    def keys(self) -> Keys:
        """The features, and the intercept."""
        return {"feature": list(self.features)}

    @property
    def columns(self) -> tuple[AnswerColumn, ...]:
        """The estimates, and the parts of their standard errors."""
        found, (low, high) = self.inference, self.inference.ends(CONFIDENCE)
        how = "a Newton step on noisy sums; sandwich variance; Fieller's interval"
        whole = AnswerColumn(
            "coefficient",
            found.estimates,
            found.errors,
            low,
            high,
            integral=False,
            how=how,
            error_of="noise and sampling",
        )
        parts = {
            "noise": "discrete Gaussian noise, known exactly",
            "sampling": "which units are in the data; 0 if noise hides it",
        }
        unknown = np.full(len(low), np.nan)
        return whole, *(
            AnswerColumn(
                name,
                getattr(found, name),
                unknown,
                unknown,
                unknown,
                integral=False,
                how=f"the part of the standard error that is due to {why}",
                error_of="",
            )
            for name, why in parts.items()
        )

    @property
    def processing(self) -> Sequence[str]:
        """How they follow from what was released."""
        return ["coefficients solve a system of noisy sums, and their errors follow from the known noise of these"]

    @property
    def notes(self) -> Sequence[str]:
        """Which intervals are unbounded or wide, and what helps."""
        unbounded = int(np.isinf(self.inference.ends(CONFIDENCE)[0]).sum())
        few = int((self.inference.freedom < _FEW).sum())
        of, help_ = len(self.features), "more rows, a larger epsilon or fewer features"
        drowned = f"{unbounded} of {of} intervals are unbounded: the noise hides how features vary; {help_} bound them"
        wide = (
            f"{few} of {of} intervals are wider than they need be, since noise hides the sampling error; {help_} help"
        )
        return [*([drowned] if unbounded else []), *([wide] if few > unbounded else [])]

    def _ends(self, column: AnswerColumn, confidence: Number) -> tuple[Floats, Floats]:
        if not column.error_of:
            return column.interval(confidence)
        return self.inference.ends(float(probability("confidence", confidence, zero=False, one=False)))

    def _drawn(self, chosen: Sequence[AnswerColumn], look: plots.Look) -> Any:
        """A panel for each, since their units differ."""
        return plots.points(
            [plain(name, widest=24) for name in self.features], [chosen[0].taken([i]) for i in range(len(self))], look
        )


class InferringEstimator(PrivateEstimator):
    """An estimator that can pay for confidence intervals of its coefficients, with ``intervals=True``."""

    _OPTIONAL: ClassVar = {"inference_": ("coefficients", "facts")}

    inference_: Floats

    def coefficients(self) -> Coefficients:
        """The coefficients of the last fit with confidence intervals, if it was one with ``intervals=True``; free.

        Intervals are for the best fit in the population that units are drawn from independently, whether or not it is
        linear there, with values held to their bounds as in the fit. They hold sampling error and noise. With
        ``users``, the population is of persons, each of whom counts once, with the average of that person's rows.
        """
        check_is_fitted(self, "coef_")
        if "inference_" not in self.__dict__:
            raise InvalidParameterError(
                "The fit released nothing that intervals follow from.", fix="fit again, with intervals=True."
            )
        named = self.__dict__.get("_names") or getattr(self, "feature_names_in_", None)
        names = [f"x{place}" for place in range(self.n_features_in_)] if named is None else list(map(str, named))
        table = (
            self.inference_
            if self.__dict__.get("_constant", self.get_params()["fit_intercept"])
            else self.inference_[:-1]
        )
        return Coefficients(
            Inference(*table.T),
            [*names, _INTERCEPT][: len(table)],
            f"coefficients of {type(self).__name__}: {self._aim()} by {', '.join(names)}",
            self.__dict__.get("receipt_"),
            self.__dict__.get("_asked"),
            tuple(self._rules()),
        )

    @abstractmethod
    def _aim(self) -> str:
        """What is predicted, in words."""

    def _rules(self) -> list[Rule]:
        held = "rows are held to the norm" if self._limits is None else "features are cut to their bounds"
        missing = "missing ones are zero" if self._limits is None else "missing ones are in the middle"
        aimed = ", and the target to its own" if "target" in self.get_params() else ""
        unit = self.__dict__.get("_unit")
        who = {"user": "persons, each of whom counts once, with the average of all own rows", "rows": "rows"}
        drawn = [] if unit is None else [Rule(f"the data is a sample of {who[unit.kind]}, drawn independently")]
        whole = Rule(f"intervals are for the best fit in the population, where {held}{aimed}; {missing}", Effect.TOLD)
        return [whole, *drawn, Rule("coefficients are not regularised")]


def unregularised(name: str, given: object, solver: object, fine: tuple[object, ...], means: FitBudget) -> None:
    """Refuse what coefficients with intervals cannot have: Laplace noise, a ridge, a solver that leads elsewhere."""
    if means.pure:
        raise InvalidParameterError(
            f"Confidence intervals of coefficients rest on Gaussian noise, and {means.price} has no delta.",
            fix="pass one well below one over the number of rows, for example delta=1e-6.",
        )
    if given is not None:
        raise InvalidParameterError(f"{name}= shrinks coefficients, so no interval holds.", fix=f"leave {name}= out.")
    if solver not in fine:
        raise InvalidParameterError(f"With solver={solver!r:.40} there are no intervals.", fix="leave solver= out.")
