"""The file of ``defocus train``: what is trained, on what, whom it protects, and what it may cost."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from defocus.errors import DatasetFileError, InvalidParameterError, Number
from defocus.learning.ledgers import price, total_of
from defocus.ledger import Ledger
from defocus.ledger.creation import beside, exists
from defocus.privacy.budgets import Budget
from defocus.privacy.events import Event
from defocus.privacy.units import Unit, rows, user
from defocus.release.charge import admitted
from defocus.tables.dataset_file import Section, parse

__all__ = [
    "ESTIMATORS",
    "EXAMPLES",
    "NETWORKS",
    "TEXTS",
    "TextForm",
    "Training",
    "expense",
    "needed",
    "opened",
    "parsed",
    "read",
    "text_of",
    "tried",
]


ESTIMATORS = ("logistic", "additive", "naive-bayes", "linear-regression", "k-means", "pca")
"""What is trained on tables."""
TEXTS = ("bag", "attention")
"""What is trained on texts."""
NETWORKS = ("linear", "mlp", "cnn", *TEXTS)
"""What is trained on arrays, images and texts."""
_UNSUPERVISED = ("k-means", "pca")

_TOP = """\
name = "patients"            # what the data is called in the ledger
data = "{data}"
ledger = "patients.ledger"   # made if there is none
out = "{out}"
epsilon = 1                  # the price of this training
delta = 1e-6
{size}
[unit]
rows = true                  # whom it protects: one row

# [budget]                   # the total of a new ledger; by default the price of this training
# epsilon = 3
# delta = 1e-6
"""
_SIZE = "# size = 5000                # the public number of examples or persons, if that of the data is private\n"
_USERS = '# column = "patient"         # or one person: the data has an array of that name, beside x and y\n'
_NETWORK = """# weights = [1, 5]           # what examples of each class count for
# hidden = 64                # how wide layers are

[training]                   # the batch size is suggested from public facts by default
# batch_size = 512
# epochs = 30
# max_grad_norm = 1.0
# rate = 0.001
# device = "cuda"
# checkpoint = "run.ckpt"    # secret: the run goes on from there if it was interrupted
# audit = 1000               # canaries, which show how much the run tells of one person at least

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
# weights = [1, 5]           # what rows of each class count for, in logistic and additive

[features]                   # the least and largest value of each, from what is known and not from the data
age = [18, 90]
pressure = [60, 220]

# [public]
# test = "volunteers.csv"    # rows that are public: the score on them is printed
""",
    "arrays": _TOP.format(data="patients.npz", out="model.safetensors", size=_SIZE).replace(
        "one row\n", f"one row\n{_USERS}"
    )
    + """
[model]                      # on the arrays x and y of the data
kind = "mlp"                 # or linear, cnn
classes = 2                  # y is from 0 to classes - 1
"""
    + _NETWORK.format(ending='.npz"   '),
    "images": _TOP.format(data="photos", out="model.safetensors", size=_SIZE)
    + """
[model]
kind = "cnn"                 # or linear, mlp
values = ["cat", "dog"]      # the folders in data, one for each class
side = 28                    # images are brought to so many pixels each way
colour = false
"""
    + _NETWORK.format(ending='"       '),
    "texts": _TOP.format(data="reviews", out="model.safetensors", size=_SIZE)
    + """
[model]
kind = "bag"                 # of words, in any order; or attention, which sees it
values = ["bad", "good"]     # the folders in data, one for each class, with a .txt file for each text
# text = "review"            # or data = "reviews.csv": the column with the texts, and values of the target
tokens = "words"             # or bytes
buckets = 1024               # words are numbered by a public hash, not by a list that is made of the data
length = 128                 # how many tokens of a text are read
"""
    + _NETWORK.format(ending='"       ').replace(
        "# [public]",
        """# [target]
# column = "opinion"         # of a table

# [public]""",
    ),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextForm:
    """How a text becomes numbers: by this alone, and by nothing that other texts say."""

    column: str | None
    """Where the texts are in a table."""
    tokens: str
    buckets: int
    length: int

    @property
    def vocabulary(self) -> int:
        """How many numbers there are; zero is none."""
        return self.buckets if self.tokens == "words" else 257


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
    price: Budget
    budget: Budget | None
    """The total of the ledger, where the file says it."""
    kind: str
    settings: Mapping[str, Any]
    """What the estimator or the network is given beyond its kind."""
    target: str | None
    values: tuple[Any, ...]
    """The classes that count; empty where there are none."""
    weights: tuple[Number, ...]
    """What each class counts for; empty where all count alike."""
    range: tuple[Number, Number] | None
    """The least and largest target of a regression."""
    features: Mapping[str, tuple[Number, Number]]
    side: int | None
    colour: bool
    form: TextForm | None
    """How texts are read, for networks that take them."""
    training: Mapping[str, Any]
    size: int | None
    test: Path | None

    @property
    def supervised(self) -> bool:
        """Whether there is a target to be learned."""
        return self.kind not in _UNSUPERVISED

    @property
    def terms(self) -> dict[str, Any]:
        """What a ledger is made with."""
        total = self.price if self.budget is None else self.budget
        return {"budget": total, "unit": self.unit, "dataset": self.name}


def read(path: Path) -> Training:
    """The file at a place."""
    return parsed(text_of(path), home=path.absolute().parent, file=path.name)


def text_of(path: Path) -> str:
    """What is written in it."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise DatasetFileError(
            f"The file {str(path)!r:.200} cannot be read.",
            fix="check its place; defocus train --example table prints one to begin with.",
        ) from error


def parsed(text: str, *, home: Path = Path(), file: str = "train.toml") -> Training:
    """The same from a text."""
    top = parse(text).only(
        *("name", "data", "ledger", "anchor_file", "out", "size", "epsilon", "delta", "rho", "unit", "budget", "model"),
        *("target", "features", "training", "public"),
    )
    data = needed(top, "data")
    name = top.word("name") or Path(data).stem
    model = top.section("model")
    kind = needed(model, "kind")
    if kind not in (*ESTIMATORS, *NETWORKS):
        model.refuse("kind", f"There is no model {kind!r:.60}", f"choose {', '.join((*ESTIMATORS, *NETWORKS))}.")
    ledger, anchor = top.word("ledger"), top.word("anchor_file")
    unit = _unit(top.section("unit"), network=kind in NETWORKS)
    network = kind in NETWORKS
    total = top.section("budget")
    budget = _budget(total.only("epsilon", "delta", "rho")) if total.values else None
    if ledger is None:
        ledger = str(beside(home / data, unit=unit, budget=budget or Budget(1), file=home / file))
    place, kept = ledger if "://" in ledger else str(home / ledger), None if anchor is None else str(home / anchor)
    target = top.section("target").only("column", "values", "weights", "low", "high")
    training = _training(top, network=network)
    test = top.section("public").only("test").word("test")
    return Training(
        name=name,
        data=home / data,
        ledger=place,
        anchor_file=kept,
        out=home / (top.word("out") or ("model.safetensors" if network else "model.json")),
        unit=unit,
        price=_price(top, lambda: total_of(place, budget, anchor_file=kept), network=network),
        budget=budget,
        kind=kind,
        settings=_settings(model, kind),
        target=target.word("column"),
        values=_values(model if network else target),
        weights=_weights(model if network else target, kind),
        range=_range(target),
        features={} if network else _features(top, kind, target),
        side=model.whole("side"),
        colour=model.flag("colour"),
        form=_form(model) if kind in TEXTS else None,
        training=training,
        size=top.whole("size"),
        test=None if test is None else home / test,
    )


def needed(section: Section, key: str) -> str:
    """Text that must be there."""
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


def _price(top: Section, total: Callable[[], Budget | None], *, network: bool) -> Budget:
    epsilon, delta, rho = (top.number(key) for key in ("epsilon", "delta", "rho"))
    if rho is not None and network:
        top.refuse("rho", "Networks are trained on samples, which have no rho", "write epsilon = 1 and delta = 1e-6.")
    if (rho is None) == (epsilon is None) or (rho is not None and delta is not None):
        top.refuse(None, "It is not said what the training may cost", "write epsilon = 1 and delta = 1e-6.")
    named = "epsilon" if rho is None else "rho"
    limit = total() if rho is None and delta is None else None
    return top.checked(named, lambda: price(epsilon=epsilon, delta=delta, rho=rho, total=limit))


def _budget(section: Section) -> Budget:
    given: dict[str, Any] = {key: section.number(key) for key in section.values}
    return section.checked(None, lambda: Budget(**given))


def _settings(model: Section, kind: str) -> dict[str, Any]:
    names = {
        "logistic": ("solver", "max_iter", "C"),
        "additive": ("max_depth", "max_iter"),
        "naive-bayes": ("n_bins",),
        "linear-regression": ("solver", "max_iter", "alpha"),
        "k-means": ("n_clusters", "max_iter"),
        "pca": ("n_components",),
        "linear": (),
        "mlp": ("hidden",),
        **dict.fromkeys(("cnn", *TEXTS), ("hidden",)),
    }[kind]
    of_data: tuple[str, ...] = ("classes", "values", "weights", "side", "colour") if kind in NETWORKS else ()
    if kind in TEXTS:
        of_data = ("values", "weights", "text", "tokens", "buckets", "length")
    model.only("kind", *names, *of_data)
    read: dict[str, Any] = {"solver": model.word, "C": model.number, "alpha": model.number}
    settings = {key: read.get(key, model.whole)(key) for key in names}
    return {key: value for key, value in settings.items() if value is not None}


def _form(model: Section) -> TextForm:
    tokens = model.word("tokens") or "words"
    if tokens not in {"words", "bytes"}:
        model.refuse("tokens", f"There are no tokens called {tokens!r:.60}", 'write tokens = "words" or "bytes".')
    sizes = {key: model.whole(key) or usual for key, usual in (("buckets", 1024), ("length", 128))}
    for key, value in sizes.items():
        if not 2 <= value <= _MOST:
            model.refuse(key, f"{key} is from 2 to {_MOST}", f"write {key} = 128.")
    return TextForm(column=model.word("text"), tokens=tokens, **sizes)


_MOST = 1 << 20


def _values(section: Section) -> tuple[Any, ...]:
    number = section.whole("classes")
    if number is not None:
        if number < 2:
            section.refuse("classes", "There must be at least two classes", "write classes = 2.")
        return tuple(range(number))
    listed = section.values.get("values", [])
    good = isinstance(listed, list) and all(isinstance(label, str | int | bool) for label in listed)
    if not good or len({str(label) for label in listed}) != len(listed) or (listed and len(listed) < 2):
        section.refuse("values", "values must list different classes, at least two", 'write values = ["no", "yes"].')
    return tuple(listed)


def _weights(section: Section, kind: str) -> tuple[Number, ...]:
    listed = section.values.get("weights")
    if listed is None:
        return ()
    if kind not in {"logistic", "additive", *NETWORKS}:
        section.refuse("weights", f"Classes of {kind} have no weights", "leave weights out.")
    good = isinstance(listed, list) and len(listed) == len(_values(section))
    if not good or any(type(each) not in {int, float} or not 0 < each < _MOST for each in listed):
        section.refuse("weights", "weights has a number above zero for each class", "write weights = [1, 5].")
    return tuple(listed)


def _range(target: Section) -> tuple[Number, Number] | None:
    low, high = target.number("low"), target.number("high")
    if (low is None) != (high is None) or (low is not None and high is not None and low >= high):
        target.refuse(None, "low and high of the target belong together", "write low = 0 and high = 100.")
    return None if low is None or high is None else (low, high)


def _features(top: Section, kind: str, target: Section) -> dict[str, tuple[Number, Number]]:
    section = top.section("features")
    features = {}
    for name, ends in section.values.items():
        good = isinstance(ends, list) and len(ends) == 2
        if not good or any(isinstance(end, bool) or not isinstance(end, int | float) for end in ends):
            section.refuse(name, "A feature has a least and a largest value", "write for example age = [18, 90].")
        low, high = ends
        if not -1e300 < low < high < 1e300:
            section.refuse(name, "The least value is below the largest, and both are finite", "write [18, 90].")
        features[name] = (low, high)
    if not features:
        section.refuse(None, "There are no features", "name columns with their bounds: age = [18, 90].")
    if kind not in _UNSUPERVISED and target.word("column") is None:
        target.refuse(None, "It is not said what is to be learned", 'write column = "ill".')
    if target.word("column") in features:
        target.refuse("column", "The target is one of the features", "leave it out of [features].")
    if kind == "linear-regression" and _range(target) is None:
        target.refuse(None, "The target of a regression has bounds", "write low = 0 and high = 100.")
    if kind in {"logistic", "additive", "naive-bayes"} and not _values(target):
        target.refuse(None, "The classes are not declared", 'write values = ["no", "yes"].')
    return features


def _training(top: Section, *, network: bool) -> dict[str, Any]:
    section = top.section("training").only(
        "batch_size", "epochs", "max_grad_norm", "rate", "device", "checkpoint", "audit"
    )
    if section.values and not network:
        section.refuse(None, "Estimators are not trained in batches", "leave [training] out.")
    settings: dict[str, Any] = {"batch_size": section.whole("batch_size"), "device": section.word("device")}
    settings |= {key: section.number(key) for key in ("epochs", "max_grad_norm", "rate")}
    settings["audit"] = section.whole("audit")
    for key, value in settings.items():
        if value is not None and not isinstance(value, str) and value <= 0:
            section.refuse(key, f"{key} must be above zero", f"write {key} = 1.")
    settings["checkpoint"] = section.word("checkpoint")
    return {key: value for key, value in settings.items() if value is not None}


@contextmanager
def tried(asked: Training) -> Iterator[Ledger]:
    """A ledger like that of the file, to try with synthetic data what would be refused; gone afterwards."""
    with TemporaryDirectory() as folder:
        terms = {**asked.terms, "budget": asked.price}
        with Ledger.open(Path(folder) / "tried.ledger", **terms) as ledger:
            yield ledger


def expense(asked: Training, event: Event, before: str) -> str:
    """What a training would cost, whom it would charge, and whether that is enough. Nothing is charged or made."""
    words = f"{asked.price}, charged to {Path(asked.ledger).name} before {before}"
    book = Ledger.find(asked.ledger, anchor_file=asked.anchor_file)
    if book is None:
        return words
    with _checked(book, asked) as ledger:
        if admitted(event, asked.price, ledger) is not None:
            return f"{words}, which covers it"
        return f"{words}: it will be refused, since there is less left: {ledger.remaining()}"


def opened(asked: Training) -> Ledger:
    """The ledger of the file, made if there is none; refused if it protects somebody else."""
    terms = {} if exists(asked.ledger) else asked.terms
    return _checked(Ledger.open(asked.ledger, anchor_file=asked.anchor_file, **terms), asked)


def _checked(ledger: Ledger, asked: Training) -> Ledger:
    if ledger.unit != asked.unit:
        protected = ledger.unit
        ledger.close()
        raise InvalidParameterError(
            f"The file protects {asked.unit}, but the ledger protects {protected}; nothing was charged.",
            fix="write the same [unit] as in the ledger.",
        )
    ledger.terms.hold(dataset=None, unit=None, budget=asked.budget)
    return ledger
