"""Habits that no linter knows: finished work and one source of randomness."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import defocus
from defocus.noise import Bits, system

SOURCE = Path(defocus.__file__).parent
TEXTS = {str(path.relative_to(SOURCE)): path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))}


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    return {name: ast.parse(text) for name, text in TEXTS.items()}


DECLARED = {
    "audit/broken.py": "mechanisms that are broken on purpose, for the auditor to catch",
    "audit/domains.py": "made-up rows of an auditor by a public seed",
    "audit/membership.py": "an auditor's coins by a seed from Bits: who is in is nobody's secret but the auditor's",
    "audit/reconstruction.py": "made-up secrets of an auditor, by a seed from Bits",
    "learning/model_check/trials.py": "generators that a model may draw from, started alike for each trial",
    "learning/noise.py": "torch's own generator, seeded from Bits, for dropout, and for noise where it is chosen",
    "noise/bits.py": "the source of random bits itself",
    "graphs/node_names.py": "the type of a name that is a UUID: none is drawn",
    "learning/examples.py": "the type of a user who is a UUID: none is drawn",
    "learning/gradients/independence.py": "the type of a generator that an operator may be given: none is drawn from",
    "learning/gradients/trace.py": "the state of generators that a model may draw from, put back after a trace",
    "federated/federation.py": "the name of a question",
    "federated/secret_sharing.py": "secret polynomials",
    "federated/flower.py": "the names of sums",
    "federated/party.py": "seeds of masks",
    "federated/sum_plan.py": "the name of a sum",
    "federated/site.py": "what tells one time that a question is asked from another",
    "ledger/terms.py": "the identity of a new ledger",
    "ledger/declarations.py": "the salt that hides which data a ledger knows",
    "server/demo.py": "made-up visits by a public seed",
    "server/oidc.py": "secrets of a sign-in",
    "server/people.py": "secrets of links, sessions and tokens",
    "server/records.py": "names of requests and of processes",
    "synthesis/autoencoder.py": "latent numbers, from the generator that the trainer seeds; public first weights",
    "synthesis/forms.py": "symbols of synthetic sequences, by a seed from Bits: no privacy rests on them",
    "synthesis/field.py": "moves of synthetic records to meet noisy counts: no privacy rests on them",
    "synthesis/generator.py": "which synthetic records are dealt out, by a seed from Bits: no privacy rests on it",
    "synthesis/measurement.py": "the type of the generator that moves synthetic records: noise is drawn through Bits",
    "synthesis/comparison.py": "which sets of columns and rows are compared, by a public seed, for the owner alone",
    "synthesis/networks.py": "edges of synthetic graphs, by a seed from Bits: no privacy rests on them",
    "synthesis/noise_aware.py": "noise that released counts may have had, by a seed from Bits: no privacy rests on it",
    "synthesis/people.py": "rows of synthetic people, by a seed from Bits: no privacy rests on them",
    "synthesis/prediction.py": "which synthetic records train a rule, by a seed from Bits: no privacy rests on it",
    "tables/found_bound.py": "possible tails by a public seed, of a released histogram: no privacy rests on it",
    "tables/hypothesis_tests.py": "simulations by a public seed, of numbers that were released: no privacy rests on it",
    "workloads/consistent.py": "noise by a public seed that judges a fit of released tables: no privacy rests on it",
    "workloads/p_identity.py": "a public starting point of a search: no privacy rests on it",
}
"""Where a module may touch another source of randomness than Bits, and why."""

_MODULES = {"random", "secrets", "numpy.random", "uuid", "scipy.stats"}
_TORCH = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "manual_seed"}
_TORCH |= {"rand_like", "randn_like", "randint_like", "default_generator", "get_rng_state", "set_rng_state"}
_IN_PLACE = {"normal_", "uniform_", "bernoulli_", "exponential_", "random_", "cauchy_", "log_normal_", "geometric_"}
_ATTRIBUTES = {"urandom", "SystemRandom", "default_rng", "RandomState", "Generator", "rvs", "getrandbits", *_IN_PLACE}


def randomness(tree: ast.AST) -> Iterator[str]:
    """Every way in this code to draw at random that does not go through Bits."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in _MODULES)
            case ast.ImportFrom(module=module, names=names):
                if module in _MODULES:
                    yield str(module)
                yield from (f"{module}.{each.name}" for each in names if f"{module}.{each.name}" in _MODULES)
                yield from (each.name for each in names if each.name == "urandom")
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                yield "np.random"
            case ast.Attribute(value=ast.Name(id="torch"), attr=attribute) if attribute in _TORCH:
                yield f"torch.{attribute}"
            case ast.Attribute(attr=attribute) if attribute in _ATTRIBUTES:
                yield attribute


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import random", ["random"]),
        ("from random import gauss", ["random"]),
        ("import numpy as np; np.random.laplace()", ["np.random"]),
        ("from numpy import random", ["numpy.random"]),
        ("import os; os.urandom(8)", ["urandom"]),
        ("from os import urandom", ["urandom"]),
        ("law.rvs(10)", ["rvs"]),
        ("import torch; torch.randn(3); noise.normal_()", ["torch.randn", "normal_"]),
        ("import torch; torch.zeros(3).add_(1)", []),
        ("bits.words(8); noise.permutation(3); x.random_walk()", []),
    ],
)
def test_the_search_for_randomness_finds_it(code: str, found: list[str]) -> None:
    assert list(randomness(ast.parse(code))) == found


def test_randomness_comes_from_bits_and_nowhere_else() -> None:
    found = {name: sorted(set(randomness(tree))) for name, tree in trees().items() if name not in DECLARED}
    guilty = {name: ways for name, ways in found.items() if ways}
    assert not guilty, f"draw through Bits, or declare it here with a reason: {guilty}"


def test_a_source_of_bits_offers_whole_numbers_and_no_floats() -> None:
    offered = {name for name in dir(Bits) if not name.startswith("_")}
    assert offered == {"words", "integer"}
    assert system().words(3).dtype == np.uint64
    assert type(system().integer(70)) is int


def test_nothing_is_left_for_later_and_nothing_hides_an_import() -> None:
    left = re.compile(r"\b(TODO|FIXME|XXX|HACK|TYPE_CHECKING|NotImplementedError)\b")
    found = {name: left.findall(text) for name, text in TEXTS.items() if left.search(text)}
    assert not found, str(found)


def test_nothing_is_evaluated_or_unpickled() -> None:
    banned = {"eval", "exec", "compile", "__import__", "pickle", "marshal", "shelve"}
    found = {name: words for name, tree in trees().items() if (words := set(called_or_imported(tree)) & banned)}
    assert not found, str(found)


def called_or_imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                yield name
            case ast.Import(names=names):
                yield from (each.name for each in names)


def test_every_room_charges_in_one_place() -> None:
    """So that what is promised about a charge holds for every release; see :func:`defocus.release.charge.charge`."""
    places = [
        name
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "charge" and not name.startswith("ledger/")
        if isinstance(node.ctx, ast.Load)
    ]
    assert places == ["release/charge.py"]


def test_files_are_locked_in_one_place() -> None:
    assert [name for name, tree in trees().items() if "fcntl" in called_or_imported(tree)] == ["ledger/lock.py"]


def test_every_declared_place_still_needs_its_declaration() -> None:
    for name in set(DECLARED) & set(trees()):
        assert set(randomness(trees()[name])), f"{name} may leave the list"


def test_tests_mirror_the_source() -> None:
    """A folder of tests belongs to a room, and a test file of a room's own name to a module of that name."""
    root = Path(__file__).parent
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and not path.name.startswith("_")}
    folders = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    assert folders - {"docs", "examples", "scripts", "benchmarks", "soundness"} <= rooms
