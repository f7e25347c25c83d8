r"""Genome-wide association, privately: allele frequencies and chi-square statistics of a case–control study.

In a study with m cases and m controls, each person has genotype 0, 1 or 2 (copies of the rarer allele) at M places of
the genome. Who is a case, and so m, is public; neighbours differ in the genotypes of one person.

*Allele counts.* At each place, one person replaced moves the count of their group by at most 2. So all M counts of both
groups move by at most :math:`2\sqrt M` in L2 norm and :math:`2M` in L1 norm. *Numbers of genotypes* lose one and gain
one at each place: :math:`\sqrt{2M}`.

*Chi-square.* At one place, with :math:`c_j` cases and :math:`d_j` controls of genotype j and groups of equal size,
Pearson's statistic is :math:`\chi^2 = \sum_j f(c_j, d_j)` with :math:`f(c, d) = (c-d)^2/(c+d)`. A case that goes from
genotype a to b changes two terms. As :math:`\partial f/\partial c = 1 - 4d^2/(c+d)^2` lies in [-3, 1], adding to c
raises f by at most 1, and taking from c raises it most where a single case stands beside m controls, to m from
:math:`(m-1)^2/(m+1)`, by :math:`(3m-1)/(m+1)`. Both happen at once, so the sensitivity is
:math:`4m/(m+1) = 4N/(N+2)` for N = 2m people; :func:`brute_force` tries all tables. (Uhlerop, Slavković, Fienberg 2013,
Privacy-preserving data sharing for genome-wide association studies.)

One statistic chosen beforehand is best released by itself: it is computed with fractions and rounded to a grid, so that
its noise can be exact. For all M, noise for :math:`\Delta\sqrt M` would drown them; numbers of genotypes need noise of
:math:`\sqrt{2M}`, which is little beside thousands of people, and every statistic follows from them for free.

Run it with ``.venv/bin/python examples/genomics.py [plot.svg]``; it takes seconds, and everything in it is made up.
"""

import argparse
import tempfile
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import defocus as dp
from defocus.mechanisms import Gaussian, Grid, Laplace
from defocus.privacy.numbers import root_up

GROUP, PLACES, LINKED = 2500, 200, (17, 60, 121)
GRID = Grid(Fraction(1, 1000))
Genotypes = Any


def study(group: int = GROUP, places: int = PLACES, seed: int = 1) -> tuple[Genotypes, Genotypes]:
    """Genotypes of cases and controls; at three places the rarer allele is more common among cases."""
    rng = np.random.default_rng(seed)
    rare = rng.uniform(0.1, 0.5, places)
    more = rare.copy()
    more[[k for k in LINKED if k < places]] += 0.08
    return rng.binomial(2, more, (group, places)), rng.binomial(2, rare, (group, places))


def counted(people: Genotypes) -> tuple[tuple[int, ...], ...]:
    """How many have each genotype, at each place."""
    return tuple(tuple(int((column == j).sum()) for j in range(3)) for column in people.T)


def chi_square(cases: tuple[int, ...], controls: tuple[int, ...]) -> Fraction:
    """Pearson's statistic for groups of equal size, exactly.

    >>> chi_square((10, 0, 0), (0, 10, 0))
    Fraction(20, 1)
    """
    return sum((Fraction((c - d) ** 2, c + d) for c, d in zip(cases, controls, strict=True) if c + d), Fraction(0))


def chi_square_sensitivity(group: int) -> Fraction:
    """How far one person can move the statistic of a study with so many cases and as many controls."""
    return Fraction(4 * group, group + 1)


def brute_force(group: int) -> Fraction:
    """The same by trying every table and every change of one genotype. A control changes it as a case does."""
    tables = [t for t in product(range(group + 1), repeat=3) if sum(t) == group]
    moves = [(a, b) for a in range(3) for b in range(3) if a != b]
    worst = Fraction(0)
    for cases, controls in product(tables, repeat=2):
        here = chi_square(cases, controls)
        for a, b in moves:
            if cases[a]:
                changed = tuple(n + (j == b) - (j == a) for j, n in enumerate(cases))
                worst = max(worst, abs(here - chi_square(changed, controls)))
    return worst


def frequencies(cases: Genotypes, controls: Genotypes, book: dp.Ledger, budget: dp.Budget) -> tuple[Any, Any]:
    """The frequency of the rarer allele at every place, in cases and in controls."""
    group, places = cases.shape
    noise = Gaussian.calibrated(budget, sensitivity=2 * root_up(Fraction(places)), dimension=2 * places)
    exact = np.concatenate([cases.sum(axis=0), controls.sum(axis=0)])
    released = dp.release.release(noise, exact, ledger=book, purpose="allele frequencies")
    return tuple(np.split(np.clip(released.value / (2 * group), 0, 1), 2))  # type: ignore[return-value]  # two halves


def statistics(cases: Genotypes, controls: Genotypes, book: dp.Ledger, budget: dp.Budget) -> Any:
    """The chi-square statistic of every place, from noisy numbers of genotypes.

    Noise of variance v in both groups makes c - d vary by c + d + 2v where nothing is linked, so that stands below.
    So places without a link keep their usual level, and linked ones fall below the exact statistic: by the part of
    that variance which is noise.
    """
    places = cases.shape[1]
    noise = genotype_noise(places, budget)
    exact = np.array([counted(cases), counted(controls)])
    released = dp.release.release(noise, exact.ravel(), ledger=book, purpose="numbers of genotypes")
    c, d = released.value.reshape(exact.shape)
    return ((c - d) ** 2 / (np.maximum(c + d, 0) + 2 * noise.variance)).sum(axis=1)


def genotype_noise(places: int, budget: dp.Budget) -> Gaussian:
    """The noise on numbers of genotypes at so many places, in both groups."""
    return Gaussian.calibrated(budget, sensitivity=root_up(Fraction(2 * places)), dimension=6 * places)


def one_statistic(cases: Genotypes, controls: Genotypes, place: int, book: dp.Ledger, epsilon: float) -> float:
    """The statistic of one place that was chosen beforehand."""
    here = slice(place, place + 1)
    (c,), (d,) = counted(cases[:, here]), counted(controls[:, here])
    sensitivity = GRID.sensitivity(chi_square_sensitivity(len(cases)))
    noise = Laplace.calibrated(epsilon=epsilon, sensitivity=sensitivity)
    value = GRID.nearest(chi_square(c, d))
    return float(dp.release.release(noise, value, ledger=book, purpose=f"chi-square at {place}", grid=GRID).value)


def figure(exact: list[float], noisy: Any) -> Any:
    """The statistics along the genome, with the places that matter."""
    from matplotlib.figure import Figure  # noqa: PLC0415 # an optional extra

    canvas = Figure(figsize=(7, 4), layout="constrained")
    axes = canvas.add_subplot()
    axes.plot(exact, color="0.6", label="exact, never released")
    axes.plot(noisy, ".", label="released")
    axes.plot(LINKED, [noisy[k] for k in LINKED], "o", markerfacecolor="none", markersize=10, label="linked to disease")
    axes.set(xlabel="place in the genome", ylabel="chi-square", title=f"{2 * GROUP} people, epsilon 4 for all places")
    axes.legend(frameon=False)
    return canvas


def main(where: str | None = None) -> None:
    """Release frequencies and statistics, print what was found, and draw the plot if told where."""
    cases, controls = study()
    budget, unit = dp.Budget(9, 1e-5), dp.rows(replace=True)
    with (
        tempfile.TemporaryDirectory() as home,
        dp.Ledger.open(f"{home}/study.ledger", budget=budget, unit=unit, dataset="study") as book,
    ):
        common, rare = frequencies(cases, controls, book, dp.Budget(1, 1e-6))
        price = dp.Budget(4, 1e-6)
        noisy = statistics(cases, controls, book, price)
        chosen = one_statistic(cases, controls, LINKED[0], book, 0.5)
        exact = [float(chi_square(c, d)) for c, d in zip(counted(cases), counted(controls), strict=True)]
        table = Table(title="the places that stand out", box=box.SIMPLE_HEAD)
        for heading in ("place", "chi-square, released", "exact", "frequency in cases", "in controls"):
            table.add_column(heading, justify="right")
        for k in np.argsort(-noisy)[: len(LINKED)]:
            table.add_row(str(k), f"{noisy[k]:.1f}", f"{exact[k]:.1f}", f"{common[k]:.3f}", f"{rare[k]:.3f}")
        console = Console()
        console.print(table)
        # of public facts: with 2m/3 people in each cell on average, the rest of the variance is noise
        kept = 100 / (1 + 2 * float(genotype_noise(PLACES, price).variance) / (2 * GROUP / 3))
        console.print(
            "Released statistics are lower: the noise is allowed for below the line, so that places without a link"
            f" do not stand out, and about {kept:.0f} % of what does is left."
        )
        console.print(
            f"Linked are {LINKED}. One place asked for by itself, at epsilon 0.5: {chosen:.1f}. {book.words()}"
        )
    if where is not None:
        figure(exact, noisy).savefig(Path(where))


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    given.add_argument("plot", nargs="?", help="the file to draw the plot to")
    main(given.parse_args().plot)
