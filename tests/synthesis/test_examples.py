"""Images and sequences: what is drawn, what counts as nothing, what is charged when, and what files of strangers do."""

import copy
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from tests.synthesis.test_saving import refused_or_usable

import defocus as dp
from defocus.errors import (
    BudgetExceededError,
    DefocusError,
    InvalidParameterError,
    NotDeclaredError,
    SourceError,
    UnfitDataError,
    UnknownColumnError,
)
from defocus.learning.noise import Cryptographic
from defocus.ledger import Ledger
from defocus.noise.testing import seeded
from defocus.synthesis import ExampleGenerator, ExampleSynthesiser, Images, Sequences, autoencoder
from defocus.synthesis.forms import Decoder, placed

FORM = Images((6, 4), (0, 10))
NONE = np.zeros(0, np.int64)


def stripes(number: int = 200) -> tuple[Any, Any]:
    """Images with columns or rows that are bright, by class."""
    labels = np.arange(number) % 2
    found = np.zeros((number, 6, 4))
    found[labels == 0, :, ::2] = 10
    found[labels == 1, ::2] = 10
    return found, labels


def wanted(home: Path, data: Any, form: Any = FORM, **more: Any) -> ExampleSynthesiser:
    given: dict[str, Any] = {"unit": dp.rows(), "ledger": home / "a.ledger", "budget": dp.Budget(50, 1e-3), **more}
    return ExampleSynthesiser(data, form, **given)


def fitted(asked: ExampleSynthesiser, **more: Any) -> ExampleGenerator:
    given = {"epsilon": 10, "delta": 1e-5, "batch_size": 40, "epochs": 1, "bits": seeded(1), **more}
    return asked.fit(progress=False, **given)


def weights(made: ExampleGenerator) -> list[Any]:
    own = made.decoder
    return [each.tolist() for each in (own.first, own.first_bias, own.second, own.second_bias)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> ExampleGenerator:
    data, labels = stripes()
    home = tmp_path_factory.mktemp("made")
    return fitted(wanted(home, data, labels=labels, classes=[0, 1]), epsilon=20, epochs=12)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> ExampleGenerator:
    data = ["abab", "ba", "aba", "babab"] * 60
    return fitted(wanted(tmp_path_factory.mktemp("letters"), data, Sequences("ab", 5)), epsilon=20, epochs=12)


def test_images_of_a_class_look_like_it(made: ExampleGenerator) -> None:
    for label in (0, 1):
        images, labels = made.sample(40, where={"label": label}, bits=seeded(2))
        assert images.shape == (40, 6, 4)
        assert images.dtype == np.float32
        assert labels == [label] * 40
        columns = images[:, :, ::2].mean() - images[:, :, 1::2].mean()
        rows = images[:, ::2].mean() - images[:, 1::2].mean()
        assert (columns > rows + 2) == (label == 0)
        assert images.min() >= 0
        assert images.max() <= 10


def test_classes_are_drawn_as_often_as_they_were_counted_and_only_those_that_are_asked_for(tmp_path: Path) -> None:
    data, _ = stripes()
    labels = [0] * 150 + [2] * 50
    made = fitted(wanted(tmp_path, data, labels=labels, classes=[0, 1, 2]), epsilon=20, epochs=6)
    assert np.allclose(made.shares[:, 0], [0.75, 0, 0.25], atol=0.05)
    drawn = made.sample(2000, bits=seeded(2))[1] or []
    assert np.allclose([drawn.count(own) / 2000 for own in (0, 1, 2)], made.shares[:, 0], atol=0.04)
    among = made.sample(500, where={"label": [1, 2]}, bits=seeded(2))[1] or []
    assert among.count(2) > 400
    assert set(made.sample(10, where={"label": [1]})[1] or []) == {1}


def test_lengths_are_drawn_as_often_as_they_were_counted_with_each_class(tmp_path: Path) -> None:
    data = [one for _ in range(50) for one in ("a", "abababab", "", "ba")]
    form = Sequences("ab", 8)
    classes = {"labels": ["x", "x", "y", "y"] * 50, "classes": ["x", "y"]}
    made = fitted(wanted(tmp_path, data, form, **classes), epsilon=20, epochs=6)
    for label, lengths in (("x", (1, 8)), ("y", (0, 2))):
        drawn, _ = made.sample(400, where={"label": label}, bits=seeded(2))
        seen = [len(one) for one in drawn]
        assert all(abs(seen.count(length) / 400 - 0.5) < 0.12 for length in lengths)


def test_what_has_not_the_form_or_no_class_is_counted_nowhere(tmp_path: Path) -> None:
    data = ["ab"] * 60 + ["abc", None, "aaaaaaa"] * 10 + ["a"] * 10
    labels = ["x"] * 90 + ["z"] * 10
    made = fitted(wanted(tmp_path, data, Sequences("ab", 3), labels=labels, classes=["x", "y"]), epsilon=50, epochs=6)
    assert np.allclose(made.shares, [[0, 0, 1, 0], [0, 0, 0, 0]], atol=0.08)


def test_long_sequences_are_counted_in_ranges_of_lengths() -> None:
    form = Sequences("ab", 99)
    made, _ = form.encode(["a" * length for length in range(100)])
    assert form.kinds == 32
    own = form.kind(made)
    assert (np.diff(own) >= 0).all()
    assert set(own.tolist()) == set(range(32))
    decoder = Decoder(np.zeros((1, form.inputs(1))), np.zeros(1), np.zeros((2, 1)), np.zeros(2))
    drawn = form.draw(decoder, np.zeros((3200, 1), np.float32), np.arange(3200) % 32, np.random.default_rng(0))
    again = form.kind(form.encode(drawn)[0])
    assert (again == np.arange(3200) % 32).all()
    assert {len(one) for one in drawn} == set(range(100))


def test_empty_samples_are_empty(made: ExampleGenerator, letters: ExampleGenerator) -> None:
    assert letters.sample(0) == ([], None)
    assert made.sample(0)[0].shape == (0, 6, 4)


@pytest.mark.parametrize("where", [{"label": 7}, {"label": []}, {"label": None}, {"label": [0, 7]}, {}, "label = 1"])
def test_a_label_that_is_not_declared_is_refused(made: ExampleGenerator, where: Any) -> None:
    with pytest.raises(InvalidParameterError, match="where="):
        made.sample(2, where=where)


def test_another_column_and_classes_where_there_are_none_are_refused(
    made: ExampleGenerator, letters: ExampleGenerator
) -> None:
    with pytest.raises(UnknownColumnError):
        made.sample(2, where={"colour": 1})
    with pytest.raises(UnknownColumnError):
        letters.sample(2, where={"label": 1})


def test_sequences_follow_the_transitions(letters: ExampleGenerator) -> None:
    drawn, labels = letters.sample(200, bits=seeded(3))
    assert labels is None
    pairs = [one + two for own in drawn for one, two in itertools.pairwise(own)]
    assert sum(pair in {"ab", "ba"} for pair in pairs) > 0.8 * len(pairs)
    assert max(map(len, drawn)) <= 5
    assert {len(own) for own in drawn} >= {2, 3, 4, 5}


def test_sequences_in_an_array_become_lists(tmp_path: Path) -> None:
    data = np.array([[3, 5], [5, 3]] * 50)
    made = fitted(wanted(tmp_path, data, Sequences([3, 5], 2), labels=["x", "y"] * 50, classes=["x", "y"]))
    drawn, labels = made.sample(4, where={"label": "y"})
    assert labels == ["y"] * 4
    assert all(isinstance(own, list) and set(own) <= {3, 5} for own in drawn)


def test_what_is_drawn_is_what_the_trained_network_makes() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        network = autoencoder.network_of(FORM, 2)
        conditions = torch.randn(5, autoencoder.LATENT + 2)
    expected = torch.sigmoid(network.decoder(conditions)).detach().numpy().reshape(5, 6, 4) * 10
    found = FORM.draw(autoencoder.decoder_of(network), conditions.numpy(), NONE, np.random.default_rng(0))
    assert np.allclose(found, expected, atol=1e-4)


def test_a_place_of_a_sequence_is_drawn_by_the_same_scores_that_were_trained() -> None:
    form = Sequences("abc", 4)
    network = autoencoder.network_of(form, 0)
    own = autoencoder.decoder_of(network)
    coded = torch.from_numpy(form.encode(["abc"])[0])
    asked: list[Any] = []

    def spied(inputs: Any) -> Any:
        asked.append(inputs)
        scores = np.full((1, 3), -1e3, np.float32)
        scores[0, len(asked) - 1] = 0  # so that a, b and c are drawn
        return scores

    latent = np.zeros((1, autoencoder.LATENT), np.float32)
    kinds = np.array([3])
    assert form.draw(spied, latent, kinds, np.random.default_rng(0)) == ["abc"]  # type: ignore[arg-type]
    trained: list[Any] = []
    network.decoder[0].register_forward_hook(lambda _, inputs, __: trained.append(inputs[0].detach().numpy()))
    network(coded)
    apart = slice(autoencoder.LATENT, None)
    assert np.array_equal(np.stack(asked, 1)[..., apart], trained[0][:, :3, apart])
    assert own.first.shape == (autoencoder.HIDDEN, form.inputs(autoencoder.LATENT))


def test_a_saved_generator_draws_the_same(made: ExampleGenerator, letters: ExampleGenerator, tmp_path: Path) -> None:
    for one in (made, letters):
        one.save(tmp_path / "x.json")
        again = ExampleGenerator.load(tmp_path / "x.json")
        (first, labels), (second, others) = (each.sample(5, bits=seeded(4)) for each in (one, again))
        assert np.array_equal(first, second)
        assert labels == others
        assert (again.form, again.classes, again.rules) == (one.form, one.classes, one.rules)
        assert "Gaussian" in again.explain()


def test_drawing_and_loading_need_no_torch(made: ExampleGenerator, tmp_path: Path) -> None:
    made.save(tmp_path / "x.json")
    code = f"""
import sys
sys.modules["torch"] = None
import numpy as np, defocus as dp
made = dp.synthesis.ExampleGenerator.load({str(tmp_path / "x.json")!r})
print(made.sample(2)[0].shape)
try:
    dp.synthesis.ExampleSynthesiser(np.zeros((9, 6, 4)), made.form, unit=dp.rows(), scratch="zeros").fit(epsilon=1)
except dp.errors.MissingExtraError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert found.stdout.startswith("(2, 6, 4)\n")
    assert "pip install 'defocus[learn]'" in found.stdout


def test_files_of_strangers_are_refused_or_usable(tmp_path: Path) -> None:
    decoder = Decoder(np.ones((2, 4)), np.ones(2), np.ones((24, 2)), np.ones(24))
    refused_or_usable(ExampleGenerator, ExampleGenerator(FORM, decoder, ("a", "b")).to_json(), tmp_path / "x.json")
    form = Sequences([1, 2], 3)
    decoder = Decoder(np.ones((2, form.inputs(2))), np.ones(2), np.ones((2, 2)), np.ones(2))
    counted = ExampleGenerator(form, decoder, shares=np.full((1, 4), 0.25))
    refused_or_usable(ExampleGenerator, counted.to_json(), tmp_path / "x.json")


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**9, 10**9]},
        {"shape": [6, 5]},
        {"classes": ["a"]},
        {"classes": [True, False]},
        {"classes": []},
        {"shares": [[0.5]]},
        {"shares": [[0.5], [float("nan")]]},
        {"shares": [[0.5], [-0.5]]},
        {"shares": "many"},
        {"bounds": [0, float("inf")]},
        {"bounds": [0, 1, 0]},
        {"form": "sequences", "alphabet": "ab", "length": 10**9},
        {"form": "code"},
        {"format": "defocus synthetic graph 1"},
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(
    made: ExampleGenerator, change: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(made.to_json() | change), "utf-8")
    with pytest.raises(SourceError, match="saved examples"):
        ExampleGenerator.load(tmp_path / "x.json")


def test_weights_that_are_no_numbers_are_refused(made: ExampleGenerator, tmp_path: Path) -> None:
    broken = copy.copy(made.decoder.second_bias)
    broken[0] = np.nan
    decoder = Decoder(made.decoder.first, made.decoder.first_bias, made.decoder.second, broken)
    ExampleGenerator(FORM, decoder, made.classes).save(tmp_path / "x.json")
    with pytest.raises(SourceError):
        ExampleGenerator.load(tmp_path / "x.json")


class Rude:
    def __array__(self, *_: Any, **__: Any) -> Any:
        raise SystemExit("the patient is called Ada")


IMAGE = np.zeros((6, 4))
UNFIT: dict[str, Any] = {
    "a pixel that is no number": np.where(np.eye(6, 4) > 0, np.nan, 0.0),
    "no pixels at all": np.full((6, 4), np.nan),
    "another shape": np.zeros((4, 6)),
    "one axis more": np.zeros((1, 6, 4)),
    "texts": np.full((6, 4), "x"),
    "complex numbers": np.full((6, 4), 1j),
    "nothing": None,
    "a text": "an image",
    "a ragged list": [[0.0] * 4] * 5 + [[0.0]],
    "what raises": Rude(),
    "an integer beyond all floats": [[10**400] * 4] * 6,
}


@pytest.fixture(scope="module")
def without_the_third(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    data = [*stripes(40)[0]]
    data[3] = UNFIT["no pixels at all"]
    return weights(fitted(wanted(tmp_path_factory.mktemp("third"), data)))


@pytest.mark.parametrize("what", UNFIT)
def test_an_image_that_does_not_fit_counts_as_nothing_whatever_it_is(
    what: str, without_the_third: list[Any], tmp_path: Path
) -> None:
    data = [*stripes(40)[0]]
    data[3] = UNFIT[what]
    assert weights(fitted(wanted(tmp_path, data))) == without_the_third


@pytest.mark.parametrize(("label", "image", "counts"), [(0, 5.0, True), (0, np.nan, False), (7, 5.0, False)])
def test_what_does_not_fit_adds_nothing_to_a_sum(label: int, image: float, counts: bool, tmp_path: Path) -> None:
    data = np.full((30, 6, 4), image)
    asked = wanted(tmp_path, data, labels=[label] * 30, classes=[0, 1])
    sums: list[float] = []

    def noiseless(_: Any, parts: Any, scales: Any, secret: Any) -> None:
        del scales, secret
        sums.append(sum(float(part.abs().sum()) for part in parts))

    with mock.patch.object(Cryptographic, "add", noiseless):
        fitted(asked, batch_size=30)
    assert (min(sums) > 0) if counts else (max(sums) == 0)


def test_an_image_that_fits_counts(without_the_third: list[Any], tmp_path: Path) -> None:
    assert weights(fitted(wanted(tmp_path, [*stripes(40)[0]]))) != without_the_third


def test_pixels_beyond_the_bounds_count_as_the_nearest() -> None:
    image = np.where(np.eye(6, 4) > 0, np.inf, -1e300)
    made, fits = FORM.encode([image])
    assert fits.all()
    assert np.array_equal(made.reshape(6, 4), np.eye(6, 4))


@pytest.mark.parametrize(
    "make",
    [np.asarray, torch.as_tensor, list, lambda x: torch.as_tensor(x).bfloat16(), lambda x: x.astype(np.uint8)],
)
def test_arrays_tensors_and_lists_are_encoded_alike(make: Any) -> None:
    expected, fits = FORM.encode(stripes(6)[0])
    made, others = FORM.encode(make(stripes(6)[0]))
    assert np.array_equal(made, expected)
    assert np.array_equal(fits, others)


@pytest.mark.parametrize("dtype", ["U1", "S1", "M8[s]", "c16"])
def test_images_in_an_array_of_another_type_are_refused_whatever_they_hold(dtype: str) -> None:
    for value in (0, 1):
        with pytest.raises(UnfitDataError, match="array of type"):
            FORM.encode(np.full((3, 6, 4), value).astype(dtype))


def test_arrays_of_objects_and_columns_of_frames_are_lists() -> None:
    expected, _ = FORM.encode(stripes(6)[0])
    odd = np.array([*stripes(6)[0].tolist(), None], object)
    made, fits = FORM.encode(odd)
    assert np.array_equal(made[:6], expected)
    assert fits.tolist() == [True] * 6 + [False]
    texts = ["ab", None, "ba"]
    for data in (np.array(texts, object), pd.Series(texts), pl.Series(texts), [b"ab", b"\xff", b"ba"]):
        assert Sequences("ab", 3).encode(data)[1].tolist() == [True, False, True]
        assert Sequences("ab", 3).encode(data)[0][0].tolist() == Sequences("ab", 3).encode(["ab"])[0][0].tolist()
    for labels in (np.array(["a", None, "b"], object), pd.Series(["a", None, "b"])):
        assert placed(labels, ("a", "b"), 3).tolist() == [0, -1, 1]


def test_a_list_may_hold_tensors() -> None:
    made, fits = Sequences([1, 2], 3).encode([torch.tensor([1, 2]), torch.tensor([[1]]), torch.tensor(1)])
    assert fits.tolist() == [True, False, False]
    assert made[0].tolist() == [[1, 0], [0, 1], [0, 0]]


def test_channels_that_come_last_are_told_before_they_are_taken_for_columns() -> None:
    with pytest.raises(InvalidParameterError, match=r"declare \(3, 32, 20\)"):
        Images((32, 20, 3))
    with pytest.raises(UnfitDataError, match=r"moveaxis"):
        Images((3, 32, 20)).encode(np.zeros((5, 32, 20, 3)))
    assert Images((3, 6, 4)).size == 72
    assert Images((5, 2, 2)).size == 20


def test_masked_pixels_are_no_numbers() -> None:
    data = np.ma.masked_array(stripes(3)[0], mask=False)
    data[1, 2, 2] = np.ma.masked
    assert FORM.encode(data)[1].tolist() == [True, False, True]


@pytest.mark.parametrize("shape", [(28, 28), (3, 32, 20), (1, 1), (17, 5), (2, 100, 7)])
def test_large_images_are_averaged_and_drawn_between_cells(shape: tuple[int, ...]) -> None:
    form = Images(shape, (-1, 3))
    assert max(form.grid[1:]) <= 16
    flat = np.full((2, *shape), 1.0)
    made, fits = form.encode(flat)
    assert fits.all()
    assert np.allclose(made, 0.5)
    decoder = Decoder(np.zeros((1, 2)), np.zeros(1), np.zeros((form.size, 1)), np.zeros(form.size))
    assert np.allclose(form.draw(decoder, np.zeros((2, 2)), NONE, np.random.default_rng(0)), flat)


def test_averages_are_those_of_torch_and_so_is_what_lies_between() -> None:
    form, rng = Images((20, 32)), np.random.default_rng(0)
    data = rng.random((3, 20, 32))
    pooled = torch.nn.functional.adaptive_avg_pool2d(torch.as_tensor(data)[:, None], form.grid[1:])
    assert np.allclose(form.encode(data)[0].reshape(3, *form.grid), pooled.numpy(), atol=1e-6)


def test_synthetic_pixels_keep_their_step() -> None:
    form = Images((2, 2), (0, 255, 5))
    decoder = Decoder(np.zeros((1, 2)), np.zeros(1), np.zeros((4, 1)), np.linspace(-2, 2, 4))
    drawn = form.draw(decoder, np.zeros((1, 2)), NONE, np.random.default_rng(0))
    assert np.array_equal(drawn % 5, np.zeros_like(drawn))


def test_sequences_that_do_not_fit_count_as_nothing() -> None:
    endless = iter(lambda: "a", "b")
    made, fits = Sequences("ab", 3).encode(["ab", "", "abab", "abc", None, ["a", "b"], [["a"]], 7, endless, "aba"])
    assert fits.tolist() == [True, True, False, False, False, True, False, False, False, True]
    assert made.shape == (10, 3, 2)
    assert not made[~fits].any()
    assert made[0].tolist() == [[1, 0], [0, 1], [0, 0]]
    assert not made[1].any()
    assert made[9].argmax(1).tolist() == [0, 1, 0]


def test_a_label_that_is_none_of_the_classes_counts_as_nothing(tmp_path: Path) -> None:
    data, labels = stripes(40)
    seen = []
    for i, odd in enumerate([None, 7, [1], "1", float("nan"), -1]):
        own: list[Any] = labels.tolist()
        own[3] = odd
        (tmp_path / str(i)).mkdir()
        seen.append(weights(fitted(wanted(tmp_path / str(i), data, labels=own, classes=[0, 1]))))
    assert all(each == seen[0] for each in seen)


def test_one_charge_before_the_first_example_is_drawn(tmp_path: Path) -> None:
    asked = wanted(tmp_path, stripes()[0])
    assert "sampled(gaussian" in str(asked.preview(epsilon=10, delta=1e-5))
    assert not (tmp_path / "a.ledger").exists()
    drawn = []
    from defocus.learning.data import Examples  # noqa: PLC0415 -- replaced here

    take = Examples.take

    def spied(self: Any, numbers: Any, device: Any = None) -> Any:
        with Ledger.open(tmp_path / "a.ledger", read_only=True) as book:
            drawn.append([entry.kind for entry in book.entries()].count("charge"))
        return take(self, numbers, device)

    with mock.patch.object(Examples, "take", spied):
        made = fitted(asked, purpose="a study", who="Ada")
    assert set(drawn) == {1}
    assert made.receipt is not None
    assert (made.receipt.purpose, made.receipt.who) == ("a study", "Ada")
    assert asked.preview(epsilon=10, delta=1e-5).question == "synthetic images of 6 × 4 pixels from 0 to 10"


def test_a_budget_that_is_too_small_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    asked = wanted(tmp_path, stripes()[0], budget=dp.Budget(1, 1e-6))
    with pytest.raises(BudgetExceededError):
        fitted(asked, epsilon=10)
    with Ledger.open(tmp_path / "a.ledger") as book:
        assert not [entry for entry in book.entries() if entry.kind == "charge"]


def test_a_run_that_was_interrupted_goes_on_and_is_charged_once(tmp_path: Path) -> None:
    data = stripes()[0]
    whole = fitted(wanted(tmp_path, data), checkpoint=tmp_path / "run")
    again = fitted(wanted(tmp_path, data), checkpoint=tmp_path / "run", bits=seeded(9))
    assert weights(again) == weights(whole)
    with Ledger.open(tmp_path / "a.ledger") as book:
        assert [entry.kind for entry in book.entries()].count("charge") == 1


def test_persons_with_many_images_are_protected_as_persons(tmp_path: Path) -> None:
    data = stripes()[0]
    made = fitted(wanted(tmp_path, data, unit=dp.user("who"), users=np.arange(200) // 4), batch_size=10)
    assert "user" in made.explain() or "who" in made.explain()


def test_canaries_say_how_much_a_run_told(tmp_path: Path) -> None:
    made = fitted(wanted(tmp_path, stripes()[0]), audit=40)
    assert made.audit is not None
    assert made.audit.epsilon_lower <= 10
    assert "audit" in made.explain()


def test_a_scratch_run_charges_nothing_and_says_so() -> None:
    asked = ExampleSynthesiser(stripes()[0], FORM, unit=dp.rows(), scratch="stripes")
    assert asked.preview(epsilon=1, delta=1e-5).question == asked.question
    made = fitted(asked)
    assert made.receipt is None
    assert "scratch" in made.explain()


@pytest.mark.parametrize("number", [0, 1])
def test_none_and_one_image_of_a_declared_number_are_alike(number: int, tmp_path: Path) -> None:
    labels = np.zeros(number, int)
    asked = wanted(tmp_path, np.zeros((number, 6, 4)), size=100, labels=labels, classes=[0, 1])
    images, _ = fitted(asked).sample(2)
    assert images.shape == (2, 6, 4)


def test_no_images_of_any_person_and_of_an_undeclared_number(tmp_path: Path) -> None:
    nobody = wanted(tmp_path, np.zeros((0, 6, 4)), unit=dp.user("who"), users=[], size=100)
    assert fitted(nobody).sample(1)[0].shape == (1, 6, 4)
    with pytest.raises(UnfitDataError, match="no examples"):
        fitted(wanted(tmp_path, np.zeros((0, 6, 4))))


def test_data_beside_a_ledger_is_charged_there_and_is_nothing_to_try_things_on(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", stripes()[0])
    data = np.load(tmp_path / "images.npy", mmap_mode="r")
    made = fitted(ExampleSynthesiser(data, FORM, unit=dp.rows(), budget=dp.Budget(20, 1e-4)))
    assert made.receipt is not None
    assert len([*tmp_path.glob("images*.ledger")]) == 1
    with pytest.raises(InvalidParameterError, match="private"):
        fitted(ExampleSynthesiser(data, FORM, unit=dp.rows(), scratch="stripes"))


@pytest.mark.parametrize(
    ("data", "form", "more"),
    [
        (np.zeros((9, 4, 6)), FORM, {}),
        (np.zeros((9, 6)), FORM, {}),
        (np.full((9, 6, 4), None), FORM, {}),
        (np.full((9, 6, 4), 1j), FORM, {}),
        (7, FORM, {}),
        ({"a": 1}, FORM, {}),
        (np.zeros((9, 4)), Sequences("ab", 4), {}),
        (iter(["ab"]), Sequences("ab", 4), {}),
        (stripes(9)[0], FORM, {"labels": [0] * 8, "classes": [0, 1]}),
        (stripes(9)[0], FORM, {"labels": np.zeros((9, 1)), "classes": [0, 1]}),
        (stripes(9)[0], FORM, {"labels": 7, "classes": [0, 1]}),
    ],
)
def test_data_of_another_declared_form_is_refused_before_a_ledger_is_made(
    data: Any, form: Any, more: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(DefocusError):
        fitted(wanted(tmp_path, data, form, **more))
    assert not (tmp_path / "a.ledger").exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Images((28,)),
        lambda: Images((0, 3)),
        lambda: Images((10**5, 10**5)),
        lambda: Images("ab"),  # type: ignore[arg-type]
        lambda: Images((4, 4), (1, 0)),
        lambda: Images((4, 4), (0, float("nan"))),
        lambda: Images((4, 4), (0, 1, -1)),
        lambda: Images((4, 4), (0, 1, 1, 1)),
        lambda: Sequences("", 3),
        lambda: Sequences("aa", 3),
        lambda: Sequences(["a", None], 3),
        lambda: Sequences(3, 3),
        lambda: Sequences("ab", 0),
        lambda: Sequences("ab", 10**9),
        lambda: Sequences("ab", 10**4),
        lambda: ExampleSynthesiser([], "images", unit=dp.rows()),  # type: ignore[arg-type]
        lambda: ExampleSynthesiser([], FORM, unit=dp.rows(), labels=[]),
        lambda: ExampleSynthesiser([], FORM, unit=dp.rows(), classes=[1]),
        lambda: ExampleSynthesiser([], FORM, unit=dp.rows(), labels=[], classes=[]),
        lambda: ExampleSynthesiser([], FORM, unit=dp.rows(), labels=[], classes=[1.5]),
        lambda: ExampleSynthesiser([], FORM, unit=dp.rows(), labels=[], classes=[1, 1]),
    ],
)
def test_declarations_without_meaning_are_refused(make: Any) -> None:
    with pytest.raises((InvalidParameterError, NotDeclaredError)):
        make()


@pytest.mark.slow
def test_membership_is_not_seen_in_synthetic_images(tmp_path: Path) -> None:
    people = np.random.default_rng(5).random((200, 24)) * 10
    places = iter(range(10**6))

    def fit(rows: Any) -> Any:
        home = tmp_path / str(next(places))
        home.mkdir()
        made = fitted(wanted(home, rows.reshape(-1, 6, 4), size=100), epsilon=1, epochs=10, bits=None)
        return made.sample(400)[0].reshape(400, -1)

    found = dp.audit.membership(fit, people, claimed=1, bits=seeded(0))
    assert not found.violation
    assert found.best.auc[0] < 0.65
    assert dp.audit.membership(lambda rows: rows, people, claimed=1, bits=seeded(0)).violation
