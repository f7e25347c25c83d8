"""Texts as numbers: by a public rule, whatever the others say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus.cli.training.files import TextForm, parsed
from defocus.cli.training.networks import NO_CLASS, arrays
from defocus.cli.training.texts import tokens
from defocus.errors import DefocusError, UnfitDataError

TOP = 'name = "reviews"\nepsilon = 8\ndelta = 1e-5\n[unit]\nrows = true\n'
FOLDER = f'data = "reviews"\n{TOP}[model]\nkind = "bag"\nvalues = ["bad", "good"]\nlength = 4\nbuckets = 50\n'
TABLE = (
    FOLDER.replace('"reviews"\nname', '"reviews.csv"\nname').replace("length", 'text = "said"\nlength')
    + '[target]\ncolumn = "opinion"\n'
)


@pytest.fixture
def reviews(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("bad", "a dull day"), ("good", "A fine day!")):
        (tmp_path / "reviews" / name).mkdir(parents=True)
        for i in range(30):
            (tmp_path / "reviews" / name / f"{i:02}.txt").write_text(f"{text} {i}", encoding="utf-8")
    return tmp_path


def test_words_and_bytes_have_public_numbers_and_texts_a_public_length() -> None:
    words = TextForm(column=None, tokens="words", buckets=50, length=4)
    assert tokens("A fine day", words).tolist() == [*tokens("a FINE, day.", words)[:3], 0]
    assert tokens("day " * 9, words).tolist() == [tokens("day", words)[0]] * 4
    assert all(0 < number < 50 for i in range(300) for number in tokens(f"word{i}", words)[:1])
    raw = TextForm(column=None, tokens="bytes", buckets=50, length=4)
    assert tokens("é\x00", raw).tolist() == [0xC3 + 1, 0xA9 + 1, 1, 0]
    assert raw.vocabulary == 257
    assert not tokens(None, words).any()


def test_folders_and_tables_of_the_same_texts_are_the_same_and_odd_ones_count_for_nothing(reviews: Path) -> None:
    asked = parsed(FOLDER, home=reviews)
    x, y, users = arrays(asked, asked.data)
    assert (x.shape, users) == ((60, 4), None)
    assert y.tolist() == [0] * 30 + [1] * 30
    lines = [f"{i % 7},a dull day {i},bad" for i in range(30)] + [f"{i % 7},A fine day! {i},good" for i in range(30)]
    (reviews / "reviews.csv").write_text("\n".join(["who,said,opinion", *lines, ",,", "one cell", "3,x,who knows"]))
    asked = parsed(TABLE.replace("rows = true", 'column = "who"'), home=reviews)
    again, classes, users = arrays(asked, asked.data)
    assert np.array_equal(again[:60], x)
    assert classes.tolist() == [*y.tolist(), NO_CLASS, NO_CLASS, NO_CLASS]
    assert users[:3].tolist() == ["0", "1", "2"]
    assert users[60:].tolist() == [None, None, "3"]
    (reviews / "reviews" / "bad" / "00.txt").write_bytes(b"\xff\xfe a dull")
    asked = parsed(FOLDER, home=reviews)
    odd, classes, _ = arrays(asked, asked.data)
    assert np.array_equal(odd[1:], x[1:])
    assert np.array_equal(classes, y)


@pytest.mark.parametrize(
    ("text", "old", "new", "words"),
    [
        (FOLDER, '["bad", "good"]', '["bad", "better"]', "no folder 'better'"),
        (FOLDER, "rows = true", 'column = "who"', "does not say whose"),
        (FOLDER, "length = 4", "length = 1", "length is from 2"),
        (FOLDER, "length = 4", 'tokens = "letters"', "no tokens called 'letters'"),
        (FOLDER, '"bag"', '"mlp"', "length"),
        (TABLE, 'text = "said"', "", "not said where the texts"),
        (TABLE, '"said"', '"seen"', "no column 'seen'"),
        (TABLE, '"said"', '"opinion"', "which is no text"),
    ],
)
def test_what_does_not_say_what_the_texts_are_is_refused(
    reviews: Path, text: str, old: str, new: str, words: str
) -> None:
    pq.write_table(pa.table({"said": ["a", "b"], "opinion": [1, 2]}), reviews / "reviews.parquet")

    def attempt() -> None:
        asked = parsed(text.replace(old, new).replace("reviews.csv", "reviews.parquet"), home=reviews)
        arrays(asked, asked.data)

    with pytest.raises(DefocusError, match=words):
        attempt()


def test_a_folder_without_a_text_is_refused(tmp_path: Path) -> None:
    for name in ("bad", "good"):
        (tmp_path / "reviews" / name).mkdir(parents=True)
    asked = parsed(FOLDER, home=tmp_path)
    with pytest.raises(UnfitDataError, match="no text in the data"):
        arrays(asked, asked.data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bag", "attention"])
def test_texts_are_trained_by_a_network_in_one_pass_and_predicted(
    defocus: Callable[..., Any], reviews: Path, kind: str
) -> None:
    pytest.importorskip("torch")
    (reviews / "reviews" / "good" / "empty.txt").write_text("")
    rest = '[training]\nbatch_size = 61\nepochs = 30\nrate = 0.03\n[public]\ntest = "reviews"\n'
    place = reviews / "train.toml"
    place.write_text(FOLDER.replace("bag", kind) + f"hidden = 8\n{rest}", encoding="utf-8")
    assert f"{kind} of" in defocus("train", place, "--preview").out
    ran = defocus("train", place, "--json")
    assert ran.code == 0, ran.err
    assert float(ran.json["accuracy"].split()[0]) > 0.8
    told = json.loads((reviews / "model.safetensors.json").read_text("utf-8"))
    assert told["texts"] == {"column": None, "tokens": "words", "buckets": 50, "length": 4}
    (reviews / "new").mkdir()
    (reviews / "new" / "a.txt").write_text("a dull day 3")
    (reviews / "new" / "b.txt").write_text("a fine day 3")
    said = defocus("predict", "model.safetensors", "new", "--json")
    assert said.json == {"file": ["a.txt", "b.txt"], "prediction": ["bad", "good"]}
