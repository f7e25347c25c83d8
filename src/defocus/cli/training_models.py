"""What ``defocus train`` keeps of an estimator: a JSON file of what the fit released, read back with care."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, final

from defocus import learning
from defocus.errors import InvalidParameterError, UnfitDataError

__all__ = ["CLASSIFIERS", "ESTIMATORS", "Kept", "kept", "loaded", "write"]

ESTIMATORS = {
    "logistic": "LogisticRegression",
    "additive": "AdditiveModel",
    "naive-bayes": "NaiveBayes",
    "linear-regression": "LinearRegression",
    "k-means": "KMeans",
    "pca": "PCA",
}
CLASSIFIERS = ("LogisticRegression", "AdditiveModel", "NaiveBayes")
_FORMAT = "defocus model 1"
_LONGEST = 1 << 28
_FAR = 1e300


@final
@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A model that predicts, the bounds of the features that it takes, and the classes that its numbers stand for."""

    kind: str
    model: Any
    features: Mapping[str, tuple[float, float]]
    classes: tuple[Any, ...]


def write(place: Path, kind: str, features: Mapping[str, Any], classes: tuple[Any, ...], released: Any) -> None:
    """Keep what a fit released, and nothing else."""
    fitted = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in released.items()}
    told = {"format": _FORMAT, "model": kind, "features": features, "classes": list(classes), "fitted": fitted}
    place.write_text(json.dumps(told, indent=2, default=float) + "\n", encoding="utf-8")


def loaded(place: Path, form: str) -> Mapping[str, Any]:
    """The object in a JSON file that says it is of this ``form``."""
    found = None
    try:
        with place.open("rb") as file:
            found = json.loads(file.read(_LONGEST))
    except OSError as error:
        problem = error.strerror or "cannot be opened"
    except (ValueError, RecursionError):
        problem = "is damaged or no model"
    else:
        problem = "was not written by this version of defocus train"
    if isinstance(found, dict) and found.get("format") == form:
        return found
    raise UnfitDataError(f"The model {place.name!r:.100}: {problem}.", fix="name the file that defocus train wrote.")


def kept(place: Path) -> Kept:
    """The model in a file. What does not fit together is refused."""
    told = loaded(place, _FORMAT)
    kind, features, classes = str(told.get("model")), told.get("features"), told.get("classes")
    model = None
    if kind in ESTIMATORS.values() and _bounds(features) and _names(classes):
        low, high = zip(*features.values(), strict=True)
        with suppress(InvalidParameterError):
            model = getattr(learning, kind).restored(told.get("fitted"), bounds=(low, high))
        numbered = kind not in CLASSIFIERS or (model and model.classes_.tolist() == list(range(len(classes))))
        if model is not None and numbered and model.n_features_in_ == len(features):
            return Kept(kind, model, features, tuple(classes))
    raise UnfitDataError(
        f"The model {place.name!r:.100} is damaged: its parts do not fit together.", fix="write it again."
    )


def _bounds(features: Any) -> TypeGuard[dict[str, tuple[float, float]]]:
    """Whether this is a least and a largest value for every feature."""
    return bool(features) and isinstance(features, dict) and all(map(_pair, features.values()))


def _names(classes: Any) -> TypeGuard[list[str | int]]:
    """Whether this can be a list of classes."""
    return isinstance(classes, list) and all(isinstance(each, str | int) for each in classes)


def _pair(ends: Any) -> bool:
    if not isinstance(ends, list) or len(ends) != 2:
        return False
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends)
    return numbers and -_FAR < ends[0] < ends[1] < _FAR
