"""Advice from a terminal."""

from collections.abc import Callable
from typing import Any


def test_one_number_without_delta_gets_laplace(defocus: Callable[..., Any]) -> None:
    answer = defocus("advise", "--epsilon", "0.8", "--json").json
    assert answer["best"] == "Laplace"
    assert [row["name"] for row in answer["candidates"]] == ["Laplace", "Gaussian"]
    assert answer["candidates"][1]["error"] is None


def test_many_numbers_get_gaussian(defocus: Callable[..., Any]) -> None:
    ran = defocus("advise", "--epsilon", 1, "--delta", "1e-6", "--dimension", 100, "--linf", 1)
    assert ran.code == 0
    assert ran.out.index("Gaussian") < ran.out.index("Laplace")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_choice_gets_permute_and_flip(defocus: Callable[..., Any]) -> None:
    answer = defocus("advise", "--epsilon", 1, "--candidates", 100, "--monotone", "--json").json
    assert answer["best"] == "PermuteAndFlip"
    assert answer["candidates"][0]["squared"] is None


def test_a_vector_without_a_sensitivity_is_refused(defocus: Callable[..., Any]) -> None:
    ran = defocus("advise", "--epsilon", 1, "--dimension", 20)
    assert ran.code == 2
    assert "sensitivity" in ran.err
