"""Training from a terminal: tables, arrays and folders of images."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from defocus import Budget, rows, user
from defocus.cli.training.files import read
from defocus.cli.training.networks import NO_CLASS, arrays
from defocus.ledger import Ledger

TOP = 'name = "people"\nepsilon = 3\ndelta = 1e-5\n[unit]\nrows = true\n'
TABLE = (
    '[model]\nkind = "logistic"\n[target]\ncolumn = "ill"\nvalues = ["no", "yes"]\n'
    "[features]\nage = [18, 90]\npressure = [60, 220]\n"
)


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of which one can learn something."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    age, pressure = rng.integers(18, 90, 3000), rng.normal(130, 20, 3000)
    ill = rng.random(3000) < 1 / (1 + np.exp(-(age - 55) / 4))
    kept = pa.table({"age": age, "pressure": pressure, "ill": np.where(ill, "yes", "no")})
    pq.write_table(kept, tmp_path / "people.parquet")
    return tmp_path


def write(folder: Path, data: str, rest: str) -> Path:
    place = folder / "train.toml"
    place.write_text(f'data = "{data}"\n{TOP}{rest}', encoding="utf-8")
    return place


def test_a_table_is_charged_fitted_written_and_scored_on_public_rows(defocus: Callable[..., Any], people: Path) -> None:
    place = write(people, "people.parquet", TABLE + '[public]\ntest = "people.parquet"\n')
    ran = defocus("train", place)
    assert ran.code == 0, ran.err
    assert "on the public rows" in ran.out
    score = float(ran.out.split("score")[1].split()[0])
    assert score > 0.85
    kept = json.loads((people / "model.json").read_text("utf-8"))
    assert np.shape(kept["fitted"]["coef_"]) == (1, 2)
    with Ledger.open(people / "people.ledger", read_only=True) as ledger:
        charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
        assert len(charges) == 1
        assert ledger.remaining().epsilon < 0.01


def test_a_csv_is_read_as_the_same_table_and_a_second_run_is_refused(defocus: Callable[..., Any], people: Path) -> None:
    found = pq.read_table(people / "people.parquet").to_pydict()
    lines = [",".join(map(str, row)) for row in zip(*found.values(), strict=True)]
    (people / "people.csv").write_text("age,pressure,ill\n" + "\n".join([*lines, "old,?,perhaps"]), encoding="utf-8")
    place = write(people, "people.csv", TABLE)
    ran = defocus("train", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["model"] == "LogisticRegression of 2 features"
    assert "score" not in ran.json
    again = defocus("train", place, "--force")
    assert again.code == 1
    assert "old" not in again.err


def test_a_model_that_is_there_is_not_written_over_unless_told(defocus: Callable[..., Any], people: Path) -> None:
    place = write(people, "people.parquet", TABLE.replace("logistic", "naive-bayes"))
    (people / "model.json").write_text("paid for", encoding="utf-8")
    for words in ([], ["--preview"]):
        refused = defocus("train", place, *words)
        assert refused.code == 2
        assert "nothing was charged" in " ".join(refused.err.split())
    assert (people / "model.json").read_text("utf-8") == "paid for"
    assert not (people / "people.ledger").exists()
    assert defocus("train", place, "--force").code == 0


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ('solver = "magic"', "choose solver="),
        ('solver = "objective"\nC = 1000', "lower C="),
        ("max_iter = 0", "max_iter"),
    ],
)
def test_a_preview_refuses_what_the_fit_would(defocus: Callable[..., Any], people: Path, rest: str, words: str) -> None:
    ran = defocus("train", write(people, "people.parquet", TABLE.replace("[target]", f"{rest}\n[target]")), "--preview")
    assert ran.code != 0
    assert words in " ".join(ran.err.split())


def test_a_preview_says_whether_the_ledger_covers_it(defocus: Callable[..., Any], people: Path) -> None:
    place = write(people, "people.parquet", TABLE.replace("logistic", "naive-bayes"))
    with Ledger.open(people / "people.ledger", budget=Budget(3, 1e-5), unit=rows(), dataset="people") as ledger:
        before = ledger.spent()
        assert "which covers it" in " ".join(defocus("train", place, "--preview").out.split())
        assert ledger.spent() == before
    assert defocus("train", place).code == 0
    assert "it will be refused" in " ".join(defocus("train", place, "--preview", "--force").out.split())


def test_public_rows_without_a_declared_class_are_told_before_the_charge(
    defocus: Callable[..., Any], people: Path
) -> None:
    rest = TABLE.replace('["no", "yes"]', '["No", "Yes"]') + '[public]\ntest = "people.parquet"\n'
    ran = defocus("train", write(people, "people.parquet", rest))
    assert ran.code != 0
    assert "No public row has a declared class" in " ".join(ran.err.split())
    assert not (people / "people.ledger").exists()


def test_a_price_may_be_rho(defocus: Callable[..., Any], people: Path) -> None:
    place = write(people, "people.parquet", TABLE.replace("logistic", "naive-bayes"))
    place.write_text(place.read_text("utf-8").replace("epsilon = 3\ndelta = 1e-5", "rho = 0.1"), encoding="utf-8")
    ran = defocus("train", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["cost"] == "Budget(rho=0.1)"


def test_a_new_ledger_has_the_total_of_the_file_and_its_delta_is_the_default(
    defocus: Callable[..., Any], people: Path
) -> None:
    rest = f"[budget]\nepsilon = 9\ndelta = 1e-7\n{TABLE.replace('logistic', 'naive-bayes')}"
    place = write(people, "people.parquet", rest)
    place.write_text(place.read_text("utf-8").replace("delta = 1e-5\n", ""), encoding="utf-8")
    ran = defocus("train", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["cost"] == "Budget(epsilon=3, delta=1e-07)"
    with Ledger.open(people / "people.ledger") as ledger:
        assert ledger.budget == Budget(9, 1e-7)
    other = write(people, "people.parquet", rest.replace("= 9", "= 10"))
    refused = defocus("train", other, "--force")
    assert refused.code != 0
    assert "made for something else" in " ".join(refused.err.split())


def test_a_ledger_of_somebody_else_is_refused_and_not_charged(defocus: Callable[..., Any], people: Path) -> None:
    Ledger.open(people / "people.ledger", budget=Budget(3, 1e-5), unit=user("who"), dataset="people").close()
    ran = defocus("train", write(people, "people.parquet", TABLE))
    assert ran.code == 2
    assert "nothing was charged" in ran.err
    with Ledger.open(people / "people.ledger", read_only=True) as ledger:
        assert ledger.remaining().epsilon == pytest.approx(3)


def test_a_preview_is_free_and_makes_no_ledger(defocus: Callable[..., Any], people: Path) -> None:
    ran = defocus("train", write(people, "people.parquet", TABLE), "--preview")
    assert ran.code == 0, ran.err
    assert "charged to people.ledger" in ran.out
    assert not (people / "people.ledger").exists()


@pytest.mark.parametrize("kind", ["additive", "naive-bayes", "k-means", "pca", "linear-regression"])
def test_every_estimator_can_be_asked_for(defocus: Callable[..., Any], people: Path, kind: str) -> None:
    rest = TABLE.replace("logistic", kind)
    if kind == "linear-regression":
        rest = rest.replace('"ill"\nvalues = ["no", "yes"]', '"pressure"\nlow = 60\nhigh = 220')
        rest = rest.replace("pressure = [60, 220]\n", "")
    if kind in {"k-means", "additive"}:
        rest = rest.replace(
            f'kind = "{kind}"', f'kind = "{kind}"\n{"n_clusters" if kind == "k-means" else "max_iter"} = 20'
        )
    ran = defocus("train", write(people, "people.parquet", rest))
    assert ran.code == 0, ran.err
    assert (people / "model.json").exists()


@pytest.mark.slow
def test_arrays_are_trained_by_a_network_with_a_report(defocus: Callable[..., Any], people: Path) -> None:
    pytest.importorskip("torch")
    from defocus.learning.tensor_files import taken_apart, tensor_at  # noqa: PLC0415 # needs torch

    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6, 6)).astype(np.float32)
    y = (x.sum((1, 2)) > 0).astype(np.int64)
    np.savez(people / "x.npz", x=x, y=np.where(np.arange(400) == 7, 99, y))
    rest = '[model]\nkind = "cnn"\nclasses = 2\nhidden = 32\n[training]\nbatch_size = 100\nepochs = 1\n'
    place = write(people, "x.npz", rest + '[public]\ntest = "x.npz"\n')
    seen = defocus("train", place, "--preview", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["batch_size"] == "100"
    ran = defocus("train", place, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["steps"].startswith("4 of 4")
    assert "on the public examples" in ran.json["accuracy"]
    header, body = taken_apart(people / "model.safetensors")
    assert tensor_at(header["0.weight"], body).shape == (8, 1, 3, 3)
    with Ledger.open(people / "x.ledger", read_only=True) as ledger:
        assert ledger.dataset == "people"


def test_networks_are_refused_what_cannot_be_before_anything_is_charged_and_resumed_as_they_began(
    defocus: Callable[..., Any], people: Path
) -> None:
    pytest.importorskip("torch")
    np.savez(people / "x.npz", x=np.zeros((40, 3), np.float32), y=np.arange(40) % 2)
    np.savez(people / "odd.npz", x=np.zeros((4, 3), np.float32), y=np.full(4, 7))
    rest = '[model]\nkind = "linear"\nclasses = 2\n[training]\nbatch_size = 20\nepochs = 1\n'
    rest += 'rate = 0.01\ncheckpoint = "run"\n'
    for old, new, words in (
        ("batch_size = 20", "batch_size = 50", "batch_size"),
        ("rate = 0.01", 'device = "cuda:99"', "There is no device 'cuda:99'"),
        ("classes = 2", "classes = 1", "at least two classes"),
        ("[training]", '[public]\ntest = "odd.npz"\n[training]', "No public example"),
    ):
        refused = defocus("train", write(people, "x.npz", rest.replace(old, new)), "--preview")
        assert refused.code in {1, 2}
        assert words in " ".join(refused.err.split())
    assert not (people / "x.ledger").exists()
    place = write(people, "x.npz", rest)
    assert defocus("train", place, "--json").code == 0
    other = defocus("train", write(people, "x.npz", rest.replace("0.01", "0.02")), "--force")
    assert other.code == 2
    assert "began with rate = 0.01" in " ".join(other.err.split())
    again = defocus("train", write(people, "x.npz", rest), "--json", "--force")
    assert again.code == 0, again.err
    assert again.json["resumed"].startswith("after step 2 of 2")


def test_folders_of_images_are_read_and_what_is_left_open_is_suggested(
    defocus: Callable[..., Any], people: Path
) -> None:
    pytest.importorskip("torch")
    image = pytest.importorskip("PIL.Image")
    for name, grey in (("cat", 10), ("dog", 200)):
        (people / "photos" / name).mkdir(parents=True)
        for i in range(3):
            image.fromarray(np.full((9, 9), grey + i, np.uint8)).save(people / "photos" / name / f"{i}.png")
    rest = '[model]\nkind = "linear"\nvalues = ["cat", "dog"]\nside = 4\n'
    ran = defocus("train", write(people, "photos", rest), "--preview")
    assert ran.code == 0, ran.err
    assert "linear of 34 parameters" in ran.out
    before = defocus("train", write(people, "photos", rest), "--preview", "--json").json["batch_size"]
    (people / "photos" / "dog" / "0.png").write_bytes(b"no image")
    odd = defocus("train", write(people, "photos", rest), "--preview", "--json")
    assert odd.code == 0, odd.err
    assert odd.json["batch_size"] == before
    x, y, _ = arrays(read(people / "train.toml"), people / "photos")
    assert y.tolist() == [0, 0, 0, NO_CLASS, 1, 1]
    assert not x[3].any()


@pytest.mark.parametrize("kind", ["table", "arrays", "images", "texts"])
def test_an_example_is_printed_and_understood(
    defocus: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = defocus("train", "--example", kind)
    assert ran.code == 0
    (tmp_path / "train.toml").write_text(ran.out, encoding="utf-8")
    missing = defocus("train", "train.toml")  # the data is missing, the file is understood
    assert missing.code != 0
    assert "line" not in missing.err
    assert "Traceback" not in missing.err


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("logistic", "magic"), "There is no model 'magic'"),
        (('"ill"', '"sick"'), "no column 'sick'"),
        (("[18, 90]", "[90, 18]"), "least value is below"),
        (("[18, 90]", "[18, inf]"), "finite"),
        (("[18, 90]", '"all"'), "least and a largest"),
        (('values = ["no", "yes"]', ""), "classes are not declared"),
        (('values = ["no", "yes"]', 'values = ["no", "no"]'), "different classes"),
        (("epsilon = 3", "epsilon = -3"), "epsilon"),
        (("epsilon = 3", ""), "may cost"),
        (("delta = 1e-5", "rho = 1"), "may cost"),
        (("[unit]", "[budget]\nepsilon = 0\n[unit]"), "epsilon"),
        (("rows = true", ""), "whom to protect"),
        (("rows = true", 'column = "age"'), "protect one row"),
        (("[model]", "[training]\nbatch_size = 3\n[model]"), "not trained in batches"),
        (("people.parquet", "nowhere.parquet"), "cannot be opened"),
        (("people.parquet", "train.toml"), "neither a CSV nor"),
        (("[features]", "[fetures]"), "did you mean features"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_before_anything_is_charged(
    defocus: Callable[..., Any], people: Path, changed: tuple[str, str], words: str
) -> None:
    place = write(people, "people.parquet", TABLE)
    place.write_text(place.read_text("utf-8").replace(*changed), encoding="utf-8")
    ran = defocus("train", place)
    assert ran.code in {1, 2}
    assert words in " ".join(ran.err.split())
    assert "To fix" in ran.err
    assert not (people / "people.ledger").exists()


def test_classes_have_public_weights_in_tables_and_networks(defocus: Callable[..., Any], people: Path) -> None:
    pytest.importorskip("torch")
    weighted = (
        TABLE.replace('["no", "yes"]', '["no", "yes"]\nweights = [20, 1]') + '[public]\ntest = "people.parquet"\n'
    )
    ran = defocus("train", write(people, "people.parquet", weighted), "--json")
    assert ran.code == 0, ran.err
    said = defocus("predict", "model.json", "people.parquet", "--json").json["prediction"]
    assert said.count("no") > 0.6 * len(said)
    for bad in ("[1]", "[1, 0]", "[1, true]", '"all"', "[1, 1e400]"):
        refused = defocus("train", write(people, "people.parquet", weighted.replace("[20, 1]", bad)), "--force")
        assert "number above zero for each class" in " ".join(refused.err.split())
    none = weighted.replace("logistic", "naive-bayes")
    assert "have no weights" in " ".join(defocus("train", write(people, "people.parquet", none), "--force").err.split())
    x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    np.savez(people / "x.npz", x=x, y=(x[:, 0] > 0).astype(np.int64))
    rest = '[model]\nkind = "linear"\nclasses = 2\nweights = [1, 50]\n'
    rest += "[training]\nbatch_size = 200\nepochs = 20\nrate = 0.1\n"
    ran = defocus("train", write(people, "x.npz", f'{rest}[public]\ntest = "x.npz"\n'), "--json")
    assert ran.code == 0, ran.err
    said = defocus("predict", "model.safetensors", "x.npz", "--json").json["prediction"]
    assert sum(said) > 0.6 * len(said)


def test_nothing_to_train_and_broken_toml_are_told(defocus: Callable[..., Any], people: Path) -> None:
    assert "--example" in defocus("train").err
    (people / "broken.toml").write_text("= =", encoding="utf-8")
    assert "not TOML" in defocus("train", people / "broken.toml").err
    assert "cannot be read" in defocus("train", people / "none.toml").err


def test_a_clustering_is_written_without_the_cluster_of_any_row(defocus: Callable[..., Any], people: Path) -> None:
    rest = '[model]\nkind = "k-means"\n[features]\nage = [18, 90]\npressure = [60, 220]\n'
    ran = defocus("train", write(people, "people.parquet", rest))
    assert ran.code == 0, ran.err
    kept = json.loads((people / "model.json").read_text("utf-8"))
    assert sorted(kept["fitted"]) == ["cluster_centers_", "n_features_in_"]
