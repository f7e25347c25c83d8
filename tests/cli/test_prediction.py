"""Predicting from a terminal with what was trained: rows, arrays, images, and files that are no models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from defocus import Budget
from defocus.cli.training.estimators import write
from defocus.learning import PCA, KMeans, LinearRegression, LogisticRegression, NaiveBayes

FEATURES = {"age": [18, 90], "pressure": [60, 220]}
RELEASED = {"n_features_in_": 2, "classes_": [0, 1], "coef_": [[0.1, 0.0]], "intercept_": [-5.0]}
ROWS = "name,pressure,age\nAda,120,20\nBob,,80\nEve,high,70\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, by which people above fifty are ill, and a table."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "model.json", "LogisticRegression", FEATURES, ("no", "yes"), RELEASED)
    (tmp_path / "new.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def test_rows_are_predicted_in_their_order_with_what_is_to_be_kept(defocus: Callable[..., Any], place: Path) -> None:
    ran = defocus("predict", "model.json", "new.csv", "--keep", "name", "--out", "said.parquet", "--probabilities")
    assert ran.code == 0, ran.err
    found = pq.read_table(place / "said.parquet")
    assert found.column_names == ["name", "prediction", "probability_no", "probability_yes"]
    assert found["prediction"].to_pylist() == ["no", "yes", "yes"]
    assert found["name"].to_pylist() == ["Ada", "Bob", "Eve"]
    assert np.allclose(np.add(found["probability_no"].to_numpy(), found["probability_yes"].to_numpy()), 1)
    assert "bounds: pressure 1" in " ".join(ran.out.split())
    defocus("predict", "model.json", "new.csv", "--out", "said.csv")
    assert pacsv.read_csv(place / "said.csv")["prediction"].to_pylist() == ["no", "yes", "yes"]


@pytest.mark.usefixtures("place")
def test_without_a_file_to_write_to_predictions_are_printed(defocus: Callable[..., Any]) -> None:
    assert defocus("predict", "model.json", "new.csv").out.splitlines() == ['"prediction"', '"no"', '"yes"', '"yes"']
    assert defocus("predict", "model.json", "new.csv", "--json").json == {"prediction": ["no", "yes", "yes"]}


@pytest.mark.parametrize(
    ("model", "columns"),
    [
        (KMeans(2, bounds=([18, 60], [90, 220])), ["cluster"]),
        (PCA(2, bounds=([18, 60], [90, 220])), ["component_1", "component_2"]),
        (LinearRegression(target=(0, 1), bounds=([18, 60], [90, 220]), max_iter=5), ["prediction"]),
        (NaiveBayes(classes=[0, 1, 2], bounds=([18, 60], [90, 220])), ["prediction"]),
        (LogisticRegression(classes=[0, 1, 2], bounds=([18, 60], [90, 220]), max_iter=5), ["prediction"]),
    ],
    ids=lambda each: type(each).__name__,
)
def test_every_estimator_predicts_from_its_file_as_it_did_in_memory(
    defocus: Callable[..., Any], place: Path, model: Any, columns: list[str]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform([18, 60], [90, 220], (40, 2))
    model.set_params(ledger=place / "rows.ledger", budget=Budget(1, 1e-6))
    model.fit(X, rng.integers(0, 3, 40) / (2 if isinstance(model, LinearRegression) else 1))
    write(place / "model.json", type(model).__name__, FEATURES, (True, "b", 3), model.released())
    pq.write_table(pa.table({"age": X[:, 0], "pressure": X[:, 1], "more": [None] * 40}), place / "new.parquet")
    ran = defocus("predict", "model.json", "new.parquet", "--out", "said.parquet", "--json")
    assert ran.code == 0, ran.err
    found = pq.read_table(place / "said.parquet")
    assert found.column_names == columns
    direct = model.transform(X) if isinstance(model, PCA) else model.predict(X)
    if hasattr(model, "classes_"):
        direct = np.array(["True", "b", "3"])[direct]
    said = np.column_stack([found[name].to_numpy() for name in columns])
    assert (said == (direct if direct.ndim == 2 else direct[:, None])).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"format": "another"}, "not written by this version"),
        ({"model": "Trainer"}, "do not fit together"),
        ({"model": "KMeans"}, "do not fit together"),
        ({"features": {"age": [18, 90]}}, "do not fit together"),
        ({"features": {"age": [90, 18], "pressure": [60, 220]}}, "do not fit together"),
        ({"features": [["age"]]}, "do not fit together"),
        ({"classes": ["no", "yes", "perhaps"]}, "do not fit together"),
        ({"classes": None}, "do not fit together"),
        ({"classes": [{}, []]}, "do not fit together"),
        ({"features": {"age": [18, 90], "pressure": [0, 10**400]}}, "do not fit together"),
        ({"fitted": None}, "do not fit together"),
        ({"fitted": {**RELEASED, "coef_": [[1.0]]}}, "do not fit together"),
        ({"fitted": {**RELEASED, "coef_": [["__import__"]]}}, "do not fit together"),
        ({"fitted": {**RELEASED, "classes_": ["no", "yes"]}}, "do not fit together"),
    ],
)
def test_models_that_are_damaged_or_foreign_are_refused(
    defocus: Callable[..., Any], place: Path, changed: dict[str, Any], words: str
) -> None:
    told = json.loads((place / "model.json").read_text("utf-8"))
    (place / "model.json").write_text(json.dumps({**told, **changed}), encoding="utf-8")
    ran = defocus("predict", "model.json", "new.csv")
    assert ran.code in {1, 2}
    assert words in " ".join(ran.err.split())
    assert "To fix" in ran.err


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b"PK\x03\x04"])
def test_files_that_are_no_models_are_refused(defocus: Callable[..., Any], place: Path, raw: bytes) -> None:
    (place / "model.json").write_bytes(raw)
    ran = defocus("predict", "model.json", "new.csv")
    assert ran.code in {1, 2}
    assert "name the file that defocus train wrote" in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.json", "new.csv"], "o such file"),
        (["model.json", "none.csv"], "o such file"),
        (["model.json", "model.json"], "neither a CSV nor"),
        (["model.json", "less.csv"], "no column 'pressure'"),
        (["model.json", "twice.csv"], "Two columns of the table are called 'age'"),
        (["model.json", "."], "neither a CSV nor"),
        ([".", "new.csv"], "o such file"),
        (["model.json", "new.csv", "--out", "nowhere/said.csv"], "nowhere"),
        (["model.json", "dates.parquet"], "'age' is of type date32"),
        (["model.json", "empty.csv"], "no rows"),
        (["model.json", "new.csv", "--keep", "nobody"], "no column 'nobody'"),
        (["model.json", "new.csv", "--out", "said.xlsx"], ".csv or .parquet"),
        (["model.json", "said.csv", "--keep", "prediction"], "'prediction' is kept"),
        (["lines.json", "new.csv", "--probabilities"], "has no probabilities"),
    ],
)
def test_what_cannot_be_predicted_is_told_with_what_helps(
    defocus: Callable[..., Any], place: Path, words: list[str], said: str
) -> None:
    (place / "less.csv").write_text("age\n20\n", encoding="utf-8")
    (place / "twice.csv").write_text("age,age,pressure\n20,30,120\n", encoding="utf-8")
    (place / "empty.csv").write_text("age,pressure\n", encoding="utf-8")
    (place / "said.csv").write_text("age,pressure,prediction\n20,120,yes\n", encoding="utf-8")
    pq.write_table(pa.table({"age": pa.array([0], pa.date32()), "pressure": [1.0]}), place / "dates.parquet")
    released = {"n_features_in_": 2, "coef_": [1.0, 0.0], "intercept_": 0.0}
    write(place / "lines.json", "LinearRegression", FEATURES, (), released)
    ran = defocus("predict", *words)
    assert ran.code in {1, 2}
    assert said in " ".join(ran.err.split())
    assert "To fix" in ran.err


def test_a_network_predicts_arrays_and_images_and_refuses_other_shapes_and_files(
    defocus: Callable[..., Any], place: Path
) -> None:
    torch = pytest.importorskip("torch")
    image = pytest.importorskip("PIL.Image")
    from defocus.learning.tensor_files import framed, laid_out  # noqa: PLC0415 # needs torch

    net = torch.nn.Linear(4, 2)
    with torch.no_grad():
        net.weight[:] = torch.tensor([[1.0] * 4, [-1.0] * 4])
        net.bias[:] = torch.tensor([-2.0, 2.0])
    (place / "model.pt").write_bytes(b"".join(framed(*laid_out(net.state_dict()))))
    told = {"format": "defocus network 2", "kind": "linear", "shape": [4], "hidden": 64}
    told |= {"classes": ["light", "dark"], "side": 2, "colour": False}
    (place / "model.pt.json").write_text(json.dumps(told), encoding="utf-8")
    np.savez(place / "x.npz", x=np.array([[[1, 1], [1, 1]], [[0, 0], [0, 0]]]))
    assert defocus("predict", "model.pt", "x.npz", "--json").json == {"prediction": ["light", "dark"]}
    (place / "photos").mkdir()
    for name, grey in (("a", 0), ("b", 255)):
        image.fromarray(np.full((5, 5), grey, np.uint8)).save(place / "photos" / f"{name}.png")
    ran = defocus("predict", "model.pt", "photos", "--json")
    assert ran.json == {"file": ["a.png", "b.png"], "prediction": ["dark", "light"]}
    np.savez(place / "y.npz", x=np.zeros((2, 3)))
    assert "trained on (4,)" in " ".join(defocus("predict", "model.pt", "y.npz").err.split())
    assert "columns to keep" in defocus("predict", "model.pt", "x.npz", "--keep", "a").err
    for raw in (b"", b"PK\x03\x04", b"\x80\x04cos\nsystem\n"):
        (place / "model.pt").write_bytes(raw)
        assert "is damaged" in " ".join(defocus("predict", "model.pt", "x.npz").err.split())
    (place / "model.pt.json").unlink()
    assert "o such file" in defocus("predict", "model.pt", "x.npz").err
