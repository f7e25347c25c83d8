"""The file of ``defocus train``: what is trained, on what, whom it protects, and what it may cost."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from defocus.errors import DatasetFileError, InvalidParameterError, Number
from defocus.ledger import Ledger
from defocus.ledger.default_place import beside
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.units import Unit, rows, user
from defocus.release.charge import admitted
from defocus.tables.dataset_file import Section, parse

__all__ = ["ESTIMATORS", "EXAMPLES", "NETWORKS", "Training", "opened", "parsed", "price", "read", "tried"]


ESTIMATORS = ("logistic", "additive", "naive-bayes", "linear-regression", "k-means", "pca")
"""What is trained on tables."""
NETWORKS = ("linear", "mlp", "cnn")
"""What is trained on arrays and images."""
_UNSUPERVISED = ("k-means", "pca")

_TOP = """\
name = "patients"            # what the data is called in the ledger
data = "{data}"
ledger = "patients.ledger"   # made if there is none
out = "{out}"
{size}
[unit]
rows = true                  # whom it protects: one row

[budget]
epsilon = 1
delta = 1e-6
"""
_SIZE = "# size = 5000                # the public number of examples or persons, if that of the data is private\n"
_USERS = '# column = "patient"         # or one person: the data has an array of that name, beside x and y\n'
_NETWORK = """# hidden = 64                # how wide layers are, for mlp and cnn

[training]                   # batch and epochs are suggested from public facts, unless both are given
# batch = 512
# epochs = 30
# clip = 1.0
# rate = 0.001
# device = "cuda"
# checkpoint = "run.ckpt"    # secret: the run goes on from there if it was interrupted

# [public]
# test = "volunteers{ending} # examples that are public: the accuracy on them is printed
"""
EXAMPLES = {
    "table": _TOP.format(data="patients.csv", out="model.json", size="")
    + """
[model]
kind = "logistic"            # or additive, naive-bayes, linear-regression, k-means, pca

[target]
column = "ill"
values = ["no", "yes"]       # all classes that count; for linear-regression: low and high

[features]                   # the least and largest value of each, from what is known and not from the data
age = [18, 90]
pressure = [60, 220]

# [public]
# test = "volunteers.csv"    # rows that are public: the score on them is printed
""",
    "arrays": _TOP.format(data="patients.npz", out="model.pt", size=_SIZE).replace("one row\n", f"one row\n{_USERS}")
    + """
[model]                      # on the arrays x and y of the data
kind = "mlp"                 # or linear, cnn
classes = 2                  # y is from 0 to classes - 1
"""
    + _NETWORK.format(ending='.npz"   '),
    "images": _TOP.format(data="photos", out="model.pt", size=_SIZE)
    + """
[model]
kind = "cnn"                 # or linear, mlp
values = ["cat", "dog"]      # the folders in data, one for each class
side = 28                    # images are brought to so many pixels each way
colour = false
"""
    + _NETWORK.format(ending='"       '),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """Everything the file says. Places are seen from the folder of the file."""

    name: str
    data: Path
    ledger: str
    anchor_file: str | None
    out: Path
    unit: Unit
    budget: Budget
    kind: str
    settings: Mapping[str, Any]
    """What the estimator or the network is given beyond its kind."""
    target: str | None
    values: tuple[Any, ...]
    """The classes that count; empty where there are none."""
    range: tuple[Number, Number] | None
    """The least and largest target of a regression."""
    features: Mapping[str, tuple[Number, Number]]
    side: int | None
    colour: bool
    training: Mapping[str, Any]
    size: int | None
    test: Path | None

    @property
    def supervised(self) -> bool:
        """Whether there is a target to be learned."""
        return self.kind not in _UNSUPERVISED


def read(path: Path) -> Training:
    """The file at a place."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise DatasetFileError(
            f"The file {str(path)!r:.200} cannot be read.",
            fix="check its place; defocus train --example table prints one to begin with.",
        ) from error
    return parsed(text, home=path.absolute().parent, file=path.name)


def parsed(text: str, *, home: Path = Path(), file: str = "train.toml") -> Training:
    """The same from a text."""
    top = parse(text).only(
        *("name", "data", "ledger", "anchor_file", "out", "size", "unit", "budget", "model", "target", "features"),
        *("training", "public"),
    )
    data = _needed(top, "data")
    name = top.word("name") or Path(data).stem
    model = top.section("model")
    kind = _needed(model, "kind")
    if kind not in (*ESTIMATORS, *NETWORKS):
        model.refuse("kind", f"There is no model {kind!r:.60}", f"choose {', '.join((*ESTIMATORS, *NETWORKS))}.")
    ledger, anchor = top.word("ledger"), top.word("anchor_file")
    unit = _unit(top.section("unit"), network=kind in NETWORKS)
    budget = _budget(top.section("budget"), network=kind in NETWORKS)
    place = str(beside(home / data, unit=unit, budget=budget, file=home / file)) if ledger is None else ledger
    network = kind in NETWORKS
    target = top.section("target").only("column", "values", "low", "high")
    training = _training(top, network=network)
    test = top.section("public").only("test").word("test")
    return Training(
        name=name,
        data=home / data,
        ledger=place if "://" in place else str(home / place),
        anchor_file=None if anchor is None else str(home / anchor),
        out=home / (top.word("out") or ("model.pt" if network else "model.json")),
        unit=unit,
        budget=budget,
        kind=kind,
        settings=_settings(model, kind),
        target=target.word("column"),
        values=_values(model if network else target),
        range=_range(target),
        features={} if network else _features(top, kind, target),
        side=model.whole("side"),
        colour=model.flag("colour"),
        training=training,
        size=top.whole("size"),
        test=None if test is None else home / test,
    )


def _needed(section: Section, key: str) -> str:
    value = section.word(key)
    if value is None:
        section.refuse(None, f"{key} is missing", f'write {key} = "…".')
    return value


def _unit(section: Section, *, network: bool) -> Unit:
    column = section.only("rows", "column", "replace").word("column")
    if column is not None and not network:
        section.refuse("column", "Estimators protect one row", "write rows = true, with one row for each person.")
    if (column is None) == (not section.flag("rows")):
        section.refuse(None, "It is not said whom to protect", "write rows = true; or column, the array of users.")
    return rows(replace=section.flag("replace")) if column is None else user(column)


def _budget(section: Section, *, network: bool) -> Budget:
    section.only("epsilon", "delta", "rho")
    epsilon, delta, rho = (section.number(key) for key in ("epsilon", "delta", "rho"))
    if rho is not None and not network:
        if epsilon is not None or delta is not None:
            section.refuse("rho", "A budget is either rho, or epsilon and delta", "leave one of them out.")
        return section.checked("rho", lambda: Budget(rho=rho))
    if epsilon is None or delta is None:
        section.refuse(None, "Training needs a budget of epsilon and delta", "write epsilon = 1 and delta = 1e-6.")
    return section.checked("epsilon", lambda: Budget(epsilon, delta))


def _settings(model: Section, kind: str) -> dict[str, Any]:
    known = {
        "logistic": ("by", "steps", "ridge"),
        "additive": ("depth", "steps"),
        "naive-bayes": ("bins",),
        "linear-regression": ("ridge",),
        "k-means": ("clusters", "iterations"),
        "pca": ("components",),
        "linear": (),
        "mlp": ("hidden",),
        "cnn": ("hidden",),
    }[kind]
    of_images = ("classes", "values", "side", "colour") if kind in NETWORKS else ()
    model.only("kind", *known, *of_images)
    names = {"clusters": "n_clusters", "components": "n_components"}
    found: dict[str, Any] = {}
    for key in known:
        value = model.word(key) if key == "by" else model.number(key) if key == "ridge" else model.whole(key)
        if value is not None:
            found[names.get(key, key)] = value
    return found


def _values(section: Section) -> tuple[Any, ...]:
    number = section.whole("classes")
    if number is not None:
        if number < 2:
            section.refuse("classes", "There must be at least two classes", "write classes = 2.")
        return tuple(range(number))
    listed = section.values.get("values", [])
    good = isinstance(listed, list) and all(isinstance(each, str | int | bool) for each in listed)
    if not good or len({str(each) for each in listed}) != len(listed) or (listed and len(listed) < 2):
        section.refuse("values", "values must list different classes, at least two", 'write values = ["no", "yes"].')
    return tuple(listed)


def _range(target: Section) -> tuple[Number, Number] | None:
    low, high = target.number("low"), target.number("high")
    if (low is None) != (high is None) or (low is not None and high is not None and low >= high):
        target.refuse(None, "low and high of the target belong together", "write low = 0 and high = 100.")
    return None if low is None or high is None else (low, high)


def _features(top: Section, kind: str, target: Section) -> dict[str, tuple[Number, Number]]:
    section = top.section("features")
    found = {}
    for name, ends in section.values.items():
        good = isinstance(ends, list) and len(ends) == 2
        if not good or any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
            section.refuse(name, "A feature has a least and a largest value", "write for example age = [18, 90].")
        low, high = ends
        if not -1e300 < low < high < 1e300:
            section.refuse(name, "The least value is below the largest, and both are finite", "write [18, 90].")
        found[name] = (low, high)
    if not found:
        section.refuse(None, "There are no features", "name columns with their bounds: age = [18, 90].")
    if kind not in _UNSUPERVISED and target.word("column") is None:
        target.refuse(None, "It is not said what is to be learned", 'write column = "ill".')
    if target.word("column") in found:
        target.refuse("column", "The target is one of the features", "leave it out of [features].")
    if kind == "linear-regression" and _range(target) is None:
        target.refuse(None, "The target of a regression has bounds", "write low = 0 and high = 100.")
    if kind in {"logistic", "additive", "naive-bayes"} and not _values(target):
        target.refuse(None, "The classes are not declared", 'write values = ["no", "yes"].')
    return found


def _training(top: Section, *, network: bool) -> dict[str, Any]:
    section = top.section("training").only("batch", "epochs", "clip", "rate", "device", "checkpoint")
    if section.values and not network:
        section.refuse(None, "Estimators are not trained in batches", "leave [training] out.")
    made: dict[str, Any] = {"batch": section.whole("batch"), "device": section.word("device")}
    made |= {key: section.number(key) for key in ("epochs", "clip", "rate")}
    for key, value in made.items():
        if value is not None and not isinstance(value, str) and value <= 0:
            section.refuse(key, f"{key} must be above zero", f"write {key} = 1.")
    if (made["batch"] is None) != (made["epochs"] is None):
        section.refuse(None, "batch and epochs belong together", "write both, or leave both to be suggested.")
    made["checkpoint"] = section.word("checkpoint")
    return {key: value for key, value in made.items() if value is not None}


@contextmanager
def tried(asked: Training) -> Iterator[Ledger]:
    """A ledger like that of the file, to try with made-up data what would be refused; gone afterwards."""
    with TemporaryDirectory() as folder:
        terms: dict[str, Any] = {"budget": asked.budget, "unit": asked.unit, "dataset": asked.name}
        with Ledger.open(Path(folder) / "tried.ledger", **terms) as ledger:
            yield ledger


def price(asked: Training, event: Event, before: str) -> str:
    """What a training would cost, whom it would charge, and whether that is enough. Nothing is charged or made."""
    words = f"{asked.budget}, charged to {Path(asked.ledger).name} before {before}"
    found = Ledger.find(asked.ledger, anchor_file=asked.anchor_file)
    if found is None:
        return words
    with _checked(found, asked) as ledger:
        if admitted(event, asked.budget, ledger) is not None:
            return f"{words}, which covers it"
        return f"{words}: it will be refused, since there is less left: {ledger.remaining()}"


def opened(asked: Training) -> Ledger:
    """The ledger of the file, made if there is none; refused if it protects somebody else."""
    terms: dict[str, Any] = {"budget": asked.budget, "unit": asked.unit, "dataset": asked.name}
    there = "://" in asked.ledger or Path(asked.ledger).exists()
    return _checked(Ledger.open(asked.ledger, anchor_file=asked.anchor_file, **({} if there else terms)), asked)


def _checked(ledger: Ledger, asked: Training) -> Ledger:
    if ledger.unit != asked.unit:
        protected = ledger.unit
        ledger.close()
        raise InvalidParameterError(
            f"The file protects {asked.unit}, but the ledger protects {protected}; nothing was charged.",
            fix="write the same [unit] as in the ledger.",
        )
    return ledger
