"""Which strategies are worth considering for a workload, and the best of them before rounding."""

import math
from collections.abc import Callable

import numpy as np

from defocus.errors import InvalidParameterError
from defocus.workloads import marginal_strategies, residuals
from defocus.workloads.marginals import Marginals
from defocus.workloads.matrices import matrix_design, whole_multiple
from defocus.workloads.optimum import Gram, Tell, flattest, least_total, quiet, singular_values
from defocus.workloads.p_identity import p_identity
from defocus.workloads.products import product_design, product_factors
from defocus.workloads.queries import Array
from defocus.workloads.strategy import Design
from defocus.workloads.workload import LARGEST_DENSE, Workload

__all__ = ["GAUSSIAN", "LAPLACE", "best_design", "spectrum"]

GAUSSIAN, LAPLACE = "gaussian", "laplace"
_DIRECT = 4_000_000
"""Workload matrices of up to this many entries are also considered as strategies."""
_LARGE = 2048
"""Above this number of cells the eigenvectors of a full matrix take so long that two iterations must do."""


def best_design(workload: Workload | Marginals, noise: str, objective: str, tell: Tell = quiet) -> Design:
    """The best strategy found for one kind of noise and one objective, ``total`` or ``max``."""
    if objective == "max" and noise == LAPLACE:
        raise InvalidParameterError(
            "The largest variance is minimised for Gaussian noise only.", fix='use objective="total" or a delta.'
        )
    if isinstance(workload, Marginals):
        if noise == LAPLACE:
            return marginal_strategies.laplace_design(workload, tell=tell)
        weights = marginal_strategies.flat_weights(workload) if objective == "max" else None
        return marginal_strategies.residual_design(workload, weights)
    if objective == "max":
        return _flat(workload, tell)
    return _least(workload, noise, tell)


def spectrum(workload: Workload | Marginals) -> tuple[float, float]:
    """The sum and the largest of the workload's weighted singular values over √cells; from below for large unions."""
    if isinstance(workload, Marginals):
        whole = math.sqrt(residuals.total_bound(workload))
        return whole, whole - math.sqrt(residuals.total_bound(workload, without_total=True))
    if workload.cells <= LARGEST_DENSE and (len(workload.sizes) == 1 or len(workload.terms) > 1):
        roots = singular_values(_gram(workload))
        return float(roots.sum()) / math.sqrt(workload.cells), float(roots.max()) / math.sqrt(workload.cells)
    bounds = []
    for term in workload.terms:
        spectra = [singular_values(Gram.mixed([(1.0, atom)])) for atom in term.atoms]
        scale = math.sqrt(term.weight / workload.cells)
        bounds.append(
            (scale * math.prod(float(r.sum()) for r in spectra), scale * math.prod(float(r.max()) for r in spectra))
        )
    return max(bounds)


def _gram(workload: Workload) -> Gram:
    """The gram matrix over all cells, with its structure where there is a single attribute."""
    if len(workload.sizes) > 1:
        return Gram.of(workload.gram())
    return Gram.mixed((term.weight, term.atoms[0]) for term in workload.terms)


def _optimiser(noise: str, tell: Tell) -> Callable[[Gram], tuple[Array, float]]:
    def gaussian(gram: Gram) -> tuple[Array, float]:
        quick = len(gram) <= _LARGE or gram.inverse is not None
        optimum = least_total(gram, rounds=20 if quick else 2, tell=tell)
        return optimum.matrix, optimum.error

    def laplace(gram: Gram) -> tuple[Array, float]:
        return p_identity(gram, tell=tell)

    return gaussian if noise == GAUSSIAN else laplace


def _least(workload: Workload, noise: str, tell: Tell) -> Design:
    """The least total variance among an optimised matrix, optimised factors, and the workload itself."""
    optimise = _optimiser(noise, tell)
    options: list[tuple[float, Callable[[], Design]]] = []
    single = len(workload.sizes) == 1
    if single or (workload.cells <= 1024 and len(workload.terms) > 1):
        _dense_only(workload)
        gram = _gram(workload)
        real, error = optimise(gram)
        cells = np.eye(workload.cells)
        options.append((error, lambda: matrix_design("optimised matrix", workload.sizes, real, 1.0)))
        options.append((float(np.trace(gram.matrix)), lambda: matrix_design("every cell", workload.sizes, cells, 1.0)))
    if not single:
        factors = product_factors(workload, optimise)
        inverses = [np.linalg.pinv(f.T @ f, hermitian=True) for f in factors]
        error = math.fsum(
            term.weight * math.prod(float((a.gram() * c).sum()) for a, c in zip(term.atoms, inverses, strict=True))
            for term in workload.terms
        )
        options.append((error, lambda: product_design("product of optimised matrices", factors)))
    direct = _direct(workload, noise)
    if direct is not None:
        options.append(direct)
    return min(options, key=lambda option: option[0])[1]()


def _direct(workload: Workload, noise: str) -> tuple[float, Callable[[], Design]] | None:
    """The workload measured as it is, improved by least squares; only if its coefficients are exact."""
    if workload.cells > LARGEST_DENSE or workload.queries * workload.cells > _DIRECT:
        return None
    matrix = workload.matrix()
    if whole_multiple(matrix) is None:
        return None
    columns = np.abs(matrix).sum(axis=0) if noise == LAPLACE else np.sqrt((matrix**2).sum(axis=0))
    norm = float(columns.max())
    inverse = np.linalg.pinv(matrix.T @ matrix, hermitian=True)
    error = float((workload.gram() * inverse).sum()) * norm**2
    return error, lambda: matrix_design("the workload itself", workload.sizes, matrix, norm)


def _flat(workload: Workload, tell: Tell) -> Design:
    """The least largest variance: of a single product the product of each attribute's."""
    if len(workload.terms) == 1:
        factors = [
            flattest(atom.weighted_gram, atom.variances, atom.queries, tell=tell).matrix
            for atom in workload.terms[0].atoms
        ]
        if len(factors) == 1:
            return matrix_design("optimised matrix", workload.sizes, factors[0], 1.0)
        return product_design("product of optimised matrices", factors)
    _dense_only(workload)
    matrix = workload.matrix()

    def gram(weights: Array) -> Array:
        weighted: Array = matrix.T @ (weights[:, None] * matrix)
        return weighted

    optimum = flattest(gram, workload.variances, workload.queries, tell=tell)
    return matrix_design("optimised matrix", workload.sizes, optimum.matrix, 1.0)


def _dense_only(workload: Workload) -> None:
    if workload.cells > LARGEST_DENSE:
        raise InvalidParameterError(
            f"The domain has {workload.cells} cells, and matrices are optimised for up to {LARGEST_DENSE}.",
            fix="describe the workload as a product of smaller ones or as marginals, or group the values.",
        )
