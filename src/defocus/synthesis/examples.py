"""Synthetic images and sequences: a private autoencoder of examples that are no rows of a table, for one charge."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from defocus.answers import Preview, PreviewColumn, explanation, export
from defocus.errors import (
    InvalidParameterError,
    MissingExtraError,
    NotDeclaredError,
    Number,
    UnknownColumnError,
    count,
    whole,
)
from defocus.learning.ledgers import checked_scratch, place_of
from defocus.ledger import Ledger, Receipt
from defocus.noise import Bits
from defocus.noise.bits import source as bits_of
from defocus.privacy.budgets import Budget
from defocus.privacy.one_run import OneRun
from defocus.privacy.units import Unit
from defocus.release.paid_computation import silence
from defocus.release.preview import planned
from defocus.synthesis.forms import Decoder, Form, Images, Sequences, form_of, placed, places_drawn, places_of
from defocus.synthesis.generator import seeded
from defocus.synthesis.saving import packed, saved, unpacked

__all__ = ["ExampleGenerator", "ExampleSynthesiser"]

_FORMAT = "defocus synthetic examples 2"
_MOST_WEIGHTS = 1e6
"""So large may a weight of a saved decoder be: sums of their products are numbers."""
_WIDEST = 4096


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExampleSynthesiser:
    """Which synthetic images or sequences are asked for. :meth:`preview` is free; :meth:`fit` charges once and trains.

    A variational autoencoder is trained by :class:`defocus.learning.Trainer` (:mod:`defocus.synthesis.autoencoder`).

    Guarantee:
        One charge, before the first example is drawn. What decides shapes, symbols, classes and errors is declared, and
        an example that has not the declared form, or none of the declared classes, counts as zero.
    Assumes:
        What the trainer assumes; above all that the number of examples, or ``size``, is public.

    Args:
        data: the private examples: an array or a tensor with one in each row, a list, or a column of a frame.
        form: what an example is: :class:`Images` or :class:`Sequences`.
        unit: what is protected, ``rows()`` or ``user("id")``.
        labels: the class of each example, to draw examples of one class.
        classes: the declared classes: texts or whole numbers.
        ledger: what is charged: an open ledger or the place of one.
        budget: the total of the ledger, with which it is made if it does not exist.
        users: for ``unit=user(…)``, the user of each example.
        size: the public number of units, if that of the data is not public.
        scratch: to try things out: why the data may be used freely. Nothing is charged, and nobody is protected.

    >>> import tempfile
    >>> import defocus as dp
    >>> home = tempfile.TemporaryDirectory()
    >>> stripes = np.tile([0.0, 1.0], (200, 4, 2))
    >>> wanted = ExampleSynthesiser(stripes, Images((4, 4)), unit=dp.rows(), ledger=f"{home.name}/stripes.ledger")
    >>> made = wanted.fit(epsilon=8, delta=1e-5, epochs=5, progress=False)
    >>> images, labels = made.sample(3)
    >>> images.shape, labels
    ((3, 4, 4), None)
    >>> home.cleanup()
    """

    data: Any = field(repr=False)
    form: Form
    unit: Unit
    labels: Any = field(default=None, repr=False)
    classes: Any = None
    ledger: Ledger | str | Path | None = None
    budget: Budget | None = None
    users: Any = field(default=None, repr=False)
    size: int | None = None
    scratch: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.form, Images | Sequences):
            raise InvalidParameterError(
                f"The form of examples is Images or Sequences, not {type(self.form).__name__}.",
                fix="declare for example form=Images((28, 28), (0, 255, 1)).",
            )
        if (self.labels is None) != (self.classes is None):
            raise NotDeclaredError(
                "Labels have declared classes, and classes are those of labels.",
                fix="pass both: labels=y, classes=range(10); or neither.",
            )
        if self.classes is not None:
            object.__setattr__(self, "classes", places_of(self.classes))

    def __repr__(self) -> str:
        return f"ExampleSynthesiser({self.question})"

    @property
    def question(self) -> str:
        """What is asked, in one line."""
        return f"synthetic {self.form}" + (f" in {len(self.classes)} classes" if self.classes is not None else "")

    def preview(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        epochs: Number | None = None,
        batch_size: Number | None = None,
    ) -> Preview:
        """What it would cost, and with how much noise each step is taken. Free."""
        run = self._trainer(epsilon=epsilon, delta=delta, rho=rho, epochs=epochs, batch_size=batch_size)[1]
        how = f"{run.plan.steps} steps, Gaussian noise of {run.plan.noise_in_words(0)} times a gradient's length"
        column = PreviewColumn("examples", how, np.nan, np.nan, depends="depends on what there is to be learned")
        place = self._place()
        ledger = place if isinstance(place, Ledger) else None if place is None else Ledger.find(place)
        try:
            return planned([column], run.plan.event, question=self.question, ledger=ledger)
        finally:
            if ledger is not None and ledger is not place:
                ledger.close()

    def fit(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        epochs: Number | None = None,
        batch_size: Number | None = None,
        purpose: str | None = None,
        who: str | None = None,
        checkpoint: str | Path | None = None,
        progress: bool = True,
        audit: int | None = None,
        bits: Bits | None = None,
    ) -> "ExampleGenerator":
        """Charge, train, and keep the decoder.

        Args:
            epsilon: the price, with ``delta``.
            delta: by default that of the ledger's budget.
            rho: the price, instead of epsilon and delta, for batches of all units.
            epochs: how often each unit is drawn on average; 30 times by default.
            batch_size: the expected number of units in a step; by default the one that ``learning.suggest`` proposes.
            purpose: why, in one line.
            who: by whom; the account's name by default.
            checkpoint: a secret file that a run goes on from if it was interrupted. If it is there already, that run is
                gone on with, and nothing is charged again.
            progress: whether to show a progress bar.
            audit: how many canaries to plant: ``audit`` of what is made then says how much the run was seen to tell.
            bits: where randomness comes from.
        """
        told = {} if purpose is None else {"purpose": purpose}
        how: dict[str, Any] = {
            "epochs": epochs,
            "batch_size": batch_size,
            "audit": audit,
            "bits": bits_of(bits),
            **told,
        }
        network, run = self._trainer(epsilon=epsilon, delta=delta, rho=rho, who=who, **how)
        if checkpoint is not None and Path(checkpoint).exists():
            run.resume(checkpoint)
        found = run.fit(checkpoint=checkpoint, progress=progress)
        return ExampleGenerator(
            form=self.form,
            classes=self.classes,
            decoder=_training().decoder_of(network),
            shares=_training().shares_of(found.metrics, self.form, len(self.classes or ())),
            question=self.question,
            rules=self._rules(),
            training=found.explanation,
            receipt=None if found.scratch else found.receipt,
            asked=run.plan.price,
            audit=found.audit,
        )

    def _trainer(self, **how: Any) -> tuple[Any, Any]:
        """The network, and the run that trains it; nothing is charged yet."""
        learn = _training()
        classes = 0 if self.classes is None else len(self.classes)
        with silence():
            made, fits = self.form.encode(self.data)
            labels = None if self.classes is None else placed(self.labels, self.classes, len(made))
        users = self.users
        if not len(made) and self.size is not None:  # nobody's example, since that there is none may be private
            made, fits = np.zeros((1, *made.shape[1:]), made.dtype), np.zeros(1, np.bool_)
            labels = None if labels is None else np.full(1, -1)
            users = None if users is None else [None]
        network = learn.network_of(self.form, classes)
        about = {"unit": self.unit, "ledger": self._place(), "budget": self.budget, "scratch": self.scratch}
        how = {"purpose": self.question, "users": users, "size": self.size, **about, **how}
        return network, learn.trainer_of(network, self.form, (made, fits), labels, classes, **how)

    def _place(self) -> Ledger | str | Path | None:
        """The ledger, or its place; beside the data, if that is mapped from a file."""
        data = self.data if isinstance(self.data, np.ndarray) else None
        if self.scratch is None:
            return place_of(self.ledger, data, self.unit)
        checked_scratch(self.scratch, data, self.unit, ledger=self.ledger, budget=self.budget)
        return None

    def _rules(self) -> tuple[str, ...]:
        said = ["an example that has not the declared form counts as nothing"]
        if self.classes is not None:
            said.append("so does one with a label that is none of the declared classes")
        counted = [*(["classes"] if self.classes else []), *(["lengths"] if isinstance(self.form, Sequences) else [])]
        if counted:
            said.append(f"{' and '.join(counted)} are drawn as often as they were counted, with noise")
        return tuple(said)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExampleGenerator:
    """Synthetic images or sequences. Made by :class:`ExampleSynthesiser`; drawing costs nothing and needs no PyTorch.

    Guarantee:
        A function of the trained decoder, which is as private as the run that was charged.

    >>> weights = Decoder(np.zeros((1, 3)), np.zeros(1), np.zeros((4, 1)), np.array([9.0, -9.0, 9.0, -9.0]))
    >>> made = ExampleGenerator(Images((2, 2), (0, 255, 1)), weights, ("cat", "dog"), question="pets")
    >>> images, labels = made.sample(2, where={"label": "dog"})
    >>> images[0].tolist(), labels
    ([[255.0, 0.0], [255.0, 0.0]], ['dog', 'dog'])
    """

    form: Form
    decoder: Decoder = field(repr=False)
    classes: tuple[str | int, ...] | None = None
    shares: Any = field(default=None, repr=False)
    """Which share of examples is of each class (or all) and of each kind of the form; equal ones by default."""
    question: str = ""
    rules: tuple[str, ...] = ()
    training: str = field(default="", repr=False)
    """What was done and promised, line by line, as the trainer says it."""
    receipt: Receipt | None = field(default=None, repr=False)
    asked: Budget | None = None
    audit: OneRun | None = field(default=None, repr=False)
    """What the canaries of ``audit=`` show: a lower bound on epsilon, at 95 % confidence."""

    def __repr__(self) -> str:
        return f"ExampleGenerator({self.question})"

    def sample(
        self, n: int, *, where: Mapping[str, Any] | None = None, bits: Bits | None = None
    ) -> tuple[Any, list[str | int] | None]:
        """Synthetic examples, and the class of each, where there are classes.

        Args:
            n: how many.
            where: of which class, ``{"label": 7}``, or of several, ``{"label": [3, 8]}``; of all by default. Of several
                classes each is drawn as often as was counted.
            bits: where randomness comes from; the operating system by default.
        """
        random, number = seeded(bits), whole("n", n)
        chosen = self._chosen(where)
        known = max(1, len(self.classes or ()))
        shares = np.ones((known, self.form.kinds)) if self.shares is None else np.asarray(self.shares, np.float64)
        rows = shares[chosen] if self.classes else shares
        own = places_drawn(random, rows.sum(axis=1), number)
        labels = chosen[own] if self.classes else None
        kinds = np.zeros(number, np.int64)
        for row in range(len(rows)):
            there = rows[row] if rows[row].sum() > 0 else shares.sum(axis=0)
            kinds[own == row] = places_drawn(random, there, int((own == row).sum()))
        drawn = [random.standard_normal((number, self._latent))]
        if labels is not None:
            drawn.append(np.eye(known)[labels])
        made = self.form.draw(self.decoder, np.concatenate(drawn, 1).astype(np.float32), kinds, random)
        return made, None if labels is None else [(self.classes or ())[i] for i in labels]

    def explain(self, *, html: bool = False) -> str:
        """What was trained, what is protected, and what it cost."""
        said: dict[str, Sequence[str]] = {
            "made": [self.question] if self.question else [],
            "rules": self.rules,
            "training": self.training.splitlines(),
        }
        if self.audit is not None:
            said["audit"] = [str(self.audit)]
        if self.receipt is not None:
            said |= explanation.topics(self.receipt, self.asked)
        return explanation.told(said, html=html)

    def save(self, path: str | Path) -> None:
        """Write everything but the receipt to one JSON file, which holds no code."""
        export.write_bytes(path, json.dumps(self.to_json()).encode())

    @classmethod
    def load(cls, path: str | Path) -> "ExampleGenerator":
        """What :meth:`save` wrote."""
        return saved(path, _FORMAT, cls.from_json, "does not hold saved examples")

    def to_json(self) -> dict[str, Any]:
        """Everything but the receipt and the audit, with JSON types only."""
        own = self.decoder
        return {
            "format": _FORMAT,
            **self.form.to_json(),
            "classes": None if self.classes is None else list(self.classes),
            "latent": self._latent,
            "shares": None if self.shares is None else np.asarray(self.shares).tolist(),
            "decoder": [packed(_single(each)) for each in (own.first, own.first_bias, own.second, own.second_bias)],
            "question": self.question,
            "rules": list(self.rules),
            "training": self.training,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "ExampleGenerator":
        """The generator that :meth:`to_json` wrote."""
        form, classes = form_of(written), written["classes"]
        named = None if classes is None else places_of(classes)
        first, first_bias, second, second_bias = (unpacked(each, np.float32) for each in written["decoder"])
        own = cls(
            form=form,
            classes=named,
            decoder=Decoder(first, first_bias, second, second_bias),
            shares=None if written["shares"] is None else np.array(written["shares"], np.float64),
            question=str(written["question"]),
            rules=tuple(map(str, written["rules"])),
            training=str(written["training"]),
        )
        width = count("the width of the decoder", len(first_bias))
        latent = own._latent
        fits = first.shape == (width, form.inputs(latent + len(named or ()))) and first_bias.shape == (width,)
        fits = fits and second.shape == (form.outputs, width) and second_bias.shape == (form.outputs,)
        if own.shares is not None:
            fits = fits and own.shares.shape == (max(1, len(named or ())), form.kinds)
            fits = fits and bool(((own.shares >= 0) & (own.shares <= 1)).all())
        fits = fits and 0 < latent == written["latent"] and max(latent, width) <= _WIDEST
        if not fits or not all(
            (np.abs(each) <= _MOST_WEIGHTS).all() for each in (first, first_bias, second, second_bias)
        ):
            raise ValueError("the decoder does not fit the form")
        return own

    @property
    def _latent(self) -> int:
        """How many latent numbers the decoder takes."""
        return int(self.decoder.first.shape[1]) - self.form.inputs(len(self.classes or ()))

    def _chosen(self, where: Any) -> NDArray[np.int64]:
        """The classes to draw, by place."""
        known = self.classes or ()
        if where is None:
            return np.arange(len(known))
        if not isinstance(where, Mapping) or not where:
            raise InvalidParameterError("where= names a class.", fix='write where={"label": 7}.')
        for name in where:
            if name != "label" or not known:
                raise UnknownColumnError(str(name), ["label"] if known else [])
        wanted = where["label"]
        listed = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
        found = placed(listed, known, len(listed))
        if not listed or (found < 0).any():
            raise InvalidParameterError(
                "where= names a label that is none of the classes.",
                fix=f"choose among {', '.join(map(str, known))[:200]}.",
            )
        return found


def _training() -> Any:
    """What needs PyTorch."""
    try:
        from defocus.synthesis import autoencoder  # noqa: PLC0415 -- drawing and loading do without it
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise MissingExtraError("To train an autoencoder", package="torch", extra="learn") from error
    return autoencoder


def _single(array: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(array, np.float32)
