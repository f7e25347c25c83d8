"""What private estimators have in common: how they are charged, copied, kept and restored."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from defocus.answers.preview import Preview, PreviewColumn
from defocus.errors import InvalidParameterError
from defocus.learning.estimators.fit_budget import FitBudget, Plan, fit_budget, packed, unpacked
from defocus.learning.estimators.inputs import Data, data_of
from defocus.learning.examples import PrivateExamples
from defocus.ledger import Ledger
from defocus.noise import Bits
from defocus.noise.bits import source
from defocus.privacy.expressions import unparse
from defocus.release import promise
from defocus.release.charge import admitted
from defocus.release.preview import previewed

__all__ = ["PrivateEstimator"]

_Made = TypeVar("_Made")


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator, ABC):
    """An estimator whose fit is charged before it looks at the data, once for each call of fit.

    The fields of an estimator are its parameters, as scikit-learn reads them off the signature; they are kept as they
    were given, and checked by fit. All estimators have these:

    Args:
        epsilon: with ``delta``, the price of one fit; 1 by default.
        delta: by default that of the ledger's budget; 1e-6 for a ledger of rho or mu. With ``delta=0`` the fit is
            purely epsilon-DP: sums get discrete Laplace noise, and what would descend perturbs its objective.
        rho: the price of one fit, instead of epsilon and delta.
        ledger: the ledger that is charged for every fit: open, or its place. Rows in memory have no place of their own,
            so a fit without a ledger is refused.
        unit: whom it protects, ``rows()``, or ``user("id")`` with ``fit(X, y, users=…)``; as the ledger says by
            default.
        budget: the total of the ledger, with which it is made if it does not exist.
        purpose: why, for the ledger; the name of the estimator by default.
        who: by whom, for the ledger; the account's name by default.
        request: a name under which the ledger keeps what was fitted: a fit under the same name is returned again, free.
        bits: the source of random bits; the system's by default.
        random_state: refused unless None: noise that can be drawn again protects nobody.

    ``fit(X, y, users=…)`` says whose each row is, where the ledger protects persons, ``user("id")``. Where a guarantee
    names what one row moves, one person then moves no more, with however many rows (:class:`.grid.Persons`). ``X`` may
    also be ``table.examples(inputs, target)``, which brings its ledger, its persons and what is declared about it.

    After a fit, ``event_`` says what was spent, ``receipt_`` that it was charged, and ``bounds_``, of those that have
    bounds, what rows were held to. A clone charges the same ledger. ``score`` is exact and charges nothing, so on
    private rows it is for their owner only; :func:`defocus.learning.evaluate` is the private way.
    Public are the names and number of features, the parameters, and that there is any row.
    """

    _SPARSE: ClassVar[bool] = False
    """Whether sparse rows are fine."""
    _RELEASED: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What a fit finds that its event pays for, and its shape; nothing else is written to a file for others."""
    _OPTIONAL: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Likewise, where it was asked for."""
    _WITHHELD: ClassVar[tuple[str, ...]] = ()
    """What a fit leaves in memory that tells of single rows, and that no file may hold."""

    epsilon: Any = None
    delta: Any = None
    rho: Any = None
    ledger: Any = None
    unit: Any = None
    budget: Any = None
    purpose: str | None = None
    who: str | None = None
    request: str | None = None
    bits: Any = None
    random_state: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters; random_state only where it was given, since scikit-learn sets one that it finds."""
        parameters: dict[str, Any] = super().get_params(deep)
        return {name: value for name, value in parameters.items() if name != "random_state" or value is not None}

    @abstractmethod
    def fit(self, X: Any, y: Any = None, users: Any = None) -> Any:
        """Charge, then fit; ``users`` says whose each row is, for a ledger that protects ``user(…)``."""

    def preview(self, X: Any, y: Any = None, users: Any = None) -> Preview:
        """What a fit would cost and how it would be made private. Free: of the examples of a table no row is read.

        Guarantee:
            A plan depends on parameters, types and the number of features only, so it is that of a fit to no rows.

        >>> import tempfile
        >>> import pyarrow as pa
        >>> import defocus as dp
        >>> home = tempfile.TemporaryDirectory()
        >>> people = pa.table({"person": [1, 1, 2], "age": [30, 31, 50]})
        >>> how = {"unit": dp.user("person"), "budget": dp.Budget(1), "ledger": f"{home.name}/a", "name": "visits"}
        >>> visits = dp.open(people, **how).declare(age=(18, 90))
        >>> dp.learning.KMeans(2, epsilon=0.5, delta=0).preview(visits.examples(["age"])).fits
        True
        >>> visits.close(); home.cleanup()
        """
        found = self._foretold(X, y, users)
        if not isinstance(found.means.ledger, Ledger):
            raise InvalidParameterError("A preview needs an open ledger.", fix="pass ledger=Ledger.open(…).")
        column = PreviewColumn("fit", found.plan.method, math.nan, math.nan)
        return previewed(
            [column],
            found.plan.event,
            question=f"fit {type(self).__name__}",
            asked=found.means.price,
            replan=lambda delta: self._foretold(X, y, users, delta=delta).plan.event,
            ledger=found.means.ledger,
            thing="model",
        )

    def _foretold(self, X: Any, y: Any, users: Any, **changed: Any) -> "_PlannedError":
        """The plan of a fit and what it may spend; of the examples of a table no row is read."""
        twin = clone(self).set_params(**changed)
        vars(twin)["_only_planned"] = True
        try:
            twin.fit(X.empty() if isinstance(X, PrivateExamples) else X, y, users)
        except _PlannedError as found:
            return found
        raise AssertionError

    def _is_paid_with_rows(self, X: PrivateExamples, y: Any, users: Any) -> bool:
        """Whether a fit to a table will be charged, so that its rows are needed: neither refused nor recalled."""
        if self.request is not None and X.ledger.recall(self.request) is not None:
            return False
        found = self._foretold(X, y, users)
        return admitted(found.plan.event, found.means.price, X.ledger) is not None

    def _told(self, X: Any, y: Any, users: Any) -> tuple[Self, FitBudget, Bits, Data]:
        """The parameters as they are now, what a fit may spend, where its noise comes from, and what it is fitted to.

        A fit goes by this copy alone: were a parameter set while it lasts, it would do other things than it paid for.
        Rows of a table are read for a fit that its ledger admits. Any other goes on without rows, and is refused, or
        recalled, by the same plan: what is refused took no time that depends on them.
        """
        if self.random_state is not None:
            raise InvalidParameterError(
                "random_state is not supported: whoever can draw the noise of a private fit again can take it off.",
                fix="leave random_state= out.",
            )
        told: Self = clone(self)
        self._about = X.facts if isinstance(X, PrivateExamples) else ""
        named = ("epsilon", "delta", "rho", "ledger", "unit", "budget")
        if isinstance(X, PrivateExamples) and "_only_planned" not in vars(self):
            data = data_of(told, X if self._is_paid_with_rows(X, y, users) else X.empty(), y, users)
        else:
            data = data_of(told, X, y, users)
        means = fit_budget(**{name: getattr(told, name) for name in named}, persons=data.persons)
        return told, means, source(told.bits), data

    @property
    def _limits(self) -> Any:
        """The bounds that the last fit held rows to; of a restored model, its own."""
        return self.__dict__.get("bounds_", getattr(self, "bounds", None))

    def _spend(
        self,
        plan: Plan,
        means: FitBudget,
        compute: Callable[[], _Made],
        written: Callable[[_Made], Any] = packed,
        read: Callable[[Any], _Made] = unpacked,
    ) -> _Made:
        """What ``compute`` makes, once the event of the plan is charged; or what was kept for the same request."""
        if self.__dict__.pop("_only_planned", False):
            raise _PlannedError(plan, means)
        why = f"fit {type(self).__name__}" if self.purpose is None else self.purpose
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in _BESIDE}
        result, self.receipt_ = means.spend(
            plan.event,
            compute,
            purpose=why,
            who=self.who,
            written=written,
            read=read,
            request=self.request,
            facts=repr((type(self).__name__, given, self._about)),
        )
        self.event_ = plan.event
        for name in self._OPTIONAL:
            self.__dict__.pop(name, None)
        self._asked, self._unit, self._method = means.price, means.unit, plan.method
        return result

    def explain(self) -> str:
        """What the last fit promises to whom, by which method, what it spent, and where that is written down."""
        check_is_fitted(self, "event_")
        guarantee = promise(self.event_, self._asked, self._unit.adjacency)
        lines = (
            f"{type(self).__name__} protects {self._unit}: {guarantee}.",
            f"method:  {self._method}",
            *self._assumed(),
            f"spent:   {unparse(self.event_)}",
            f"charged: {self.receipt_}",
        )
        return "\n".join(lines)

    def _assumed(self) -> tuple[str, ...]:
        """What rows were held to where no bounds were declared: rows as they come may all be far longer."""
        limits = getattr(self, "_limits", getattr(self, "bounds", ()))
        norm = getattr(self, "norm", None)
        if norm is None or limits is not None:
            return ()
        told = f"rows:    held to norm {float(norm):g}: longer ones are scaled down to it"
        return (f"{told}. Where features are not scaled, declare their bounds=",)

    def released(self) -> dict[str, Any]:
        """What the last fit found that anybody may see, by name: no more than ``event_`` pays for."""
        check_is_fitted(self, "event_")
        asked = [name for name in self._OPTIONAL if name in self.__dict__]
        return {name: getattr(self, name) for name in ("n_features_in_", *self._RELEASED, *asked)}

    @classmethod
    def restored(cls, released: Mapping[str, Any], **parameters: Any) -> Self:
        """An estimator that predicts as the one did that ``released`` this, with the same parameters.

        It spent nothing and cannot explain what the other one did. What does not fit together is refused.
        """
        if not isinstance(released, Mapping):
            raise _not_released(cls)
        model = cls(**parameters)
        sizes: dict[str, int] = {}
        asked = {name: shape for name, shape in cls._OPTIONAL.items() if name in released}
        for name, shape in {"n_features_in_": (), **cls._RELEASED, **asked}.items():
            value = _number_or_labels(released.get(name), labels=name == "classes_")
            if value is None or value.ndim != len(shape):
                raise _not_released(cls)
            for part, size in zip(shape, value.shape, strict=True):
                if not size or sizes.setdefault(part, size) != size:
                    raise _not_released(cls)
            setattr(model, name, value if shape else value[()])
        model.n_features_in_ = int(model.n_features_in_)
        classes = sizes.get("classes", 1)
        wanted = {
            "features": model.n_features_in_,
            "scores": classes if classes > 2 else 1,
            "coefficients": model.n_features_in_ + 1,
            "facts": 6,
        }
        if any(sizes.get(part, size) != size for part, size in wanted.items()):
            raise _not_released(cls)
        return model

    def __getstate__(self) -> dict[str, Any]:
        """What is kept in a file: nothing that tells of single rows, as the labels of a clustering do.

        A ledger is named and not kept: to fit again, it is opened where it was.
        """
        contents: dict[str, Any] = super().__getstate__()
        state = {name: value for name, value in contents.items() if name not in self._WITHHELD}
        ledger = state.get("ledger")
        return {**state, "ledger": ledger.where} if isinstance(ledger, Ledger) else state

    def __sklearn_clone__(self) -> Any:
        """The same parameters, unfitted. A ledger and a source of bits are one thing each, and never copied."""
        given: dict[str, Any] = {
            name: value if isinstance(value, Ledger | Bits) else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        twin = type(self)(**given)
        for name in ("_metadata_request", "_sklearn_output_config"):
            if hasattr(self, name):
                setattr(twin, name, copy.deepcopy(getattr(self, name)))
        return twin

    def __sklearn_tags__(self) -> Any:
        """NaN is a missing value, whose outcome is declared; noise is fresh in every fit."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self._SPARSE
        tags.non_deterministic = True
        return tags


_BESIDE = ("ledger", "purpose", "who", "request", "bits", "random_state")
"""Parameters that change nothing about what is fitted."""


@final
class _PlannedError(Exception):
    """Ends a fit that was only to be planned, before anything is charged."""

    def __init__(self, plan: Plan, means: FitBudget) -> None:
        super().__init__()
        self.plan, self.means = plan, means


def _number_or_labels(value: Any, *, labels: bool) -> NDArray[Any] | None:
    """An array of what was released, or None for what cannot have been."""
    try:
        array = np.asarray(value) if labels else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    finite = array.dtype.kind in "biufU" and (array.dtype.kind == "U" or bool(np.isfinite(array).all()))
    return array if finite else None


def _not_released(kind: type) -> InvalidParameterError:
    return InvalidParameterError(
        f"This is not what a {kind.__name__} released.", fix="pass what released() gave, whole and unchanged."
    )
