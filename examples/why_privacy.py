"""Why noise: two attacks on a table without names, and the same statistic released privately.

A made-up hospital publishes its table, first without names, then 5-anonymous. Anyone with a public list of voters can
put names back (linkage), and read off diagnoses wherever a group of five agrees (homogeneity). Then the same
counts are released with a guarantee, and the strongest attacker there is tries again.

Run it with ``.venv/bin/python examples/why_privacy.py``; it takes seconds and everything in it is made up.
References: Sweeney (2002), k-anonymity; Machanavajjhala et al. (2007), l-diversity.
"""

import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import defocus as dp
from defocus.tables import Answer

K = 5
"""Every published group has at least so many rows."""
EPSILON = 0.5
DIAGNOSES = ("asthma", "cancer", "diabetes", "heart failure", "hepatitis")
BANDS = tuple(f"{low}-{low + 19}" for low in range(0, 100, 20))
_FIRST = ("Ada", "Ben", "Cleo", "Dov", "Eva", "Finn", "Gia", "Hugo", "Ines", "Jan", "Kim", "Leo", "Mia", "Noa", "Olaf")
_LAST = ("Abel", "Brook", "Chen", "Dietz", "Egan", "Ferro", "Gupta", "Haas", "Ito", "Jones", "Khan", "Lund", "Mori")


@dataclass(frozen=True, slots=True)
class Person:
    """A voter; a patient if there is a diagnosis."""

    name: str
    age: int
    postcode: str
    sex: str
    diagnosis: str | None

    @property
    def exact(self) -> tuple[str, ...]:
        """What a voters' list and a table without names have in common."""
        return str(self.age), self.postcode, self.sex

    @property
    def coarse(self) -> tuple[str, ...]:
        """The same made coarse, as the 5-anonymous table has it."""
        return BANDS[self.age // 20], f"{self.postcode[:2]}**", self.sex


def town(people: int = 4000, seed: int = 7) -> list[Person]:
    """A made-up town. A third are patients, and diagnoses depend on age and place, as they do."""
    rng = np.random.default_rng(seed)
    weights = np.array(
        [[80, 2, 8, 1, 9], [40, 5, 25, 5, 25], [20, 20, 35, 15, 10], [8, 32, 25, 33, 2], [1, 25, 9, 65, 0]]
    )
    found = []
    for number in range(people):
        age, area, sex = int(rng.integers(0, 100)), int(rng.integers(0, 20)), "FM"[int(rng.integers(0, 2))]
        postcode = f"{40 + area}{int(rng.integers(0, 100)):02d}"
        chances = weights[age // 20] / weights[age // 20].sum()
        if area == 7 and 20 <= age < 40:
            chances = np.array([0.03, 0, 0, 0, 0.97])  # an outbreak
        ill = rng.random() < 1 / 3
        diagnosis = DIAGNOSES[int(rng.choice(len(DIAGNOSES), p=chances))] if ill else None
        name = f"{_FIRST[int(rng.integers(len(_FIRST)))]} {_LAST[int(rng.integers(len(_LAST)))]} #{number}"
        found.append(Person(name, age, postcode, sex, diagnosis))
    return found


def without_names(people: Sequence[Person]) -> list[tuple[tuple[str, ...], str]]:
    """The first attempt: drop the names and publish the rest."""
    return [(person.exact, person.diagnosis) for person in people if person.diagnosis is not None]


def anonymous(people: Sequence[Person], k: int = K) -> dict[tuple[str, ...], list[str]]:
    """The second attempt: coarse groups with the diagnoses of their members; groups below ``k`` are held back."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for person in people:
        if person.diagnosis is not None:
            groups[person.coarse].append(person.diagnosis)
    return {key: sorted(rows) for key, rows in sorted(groups.items()) if len(rows) >= k}


def linkage(table: Sequence[tuple[tuple[str, ...], str]], voters: Sequence[Person]) -> dict[str, str]:
    """Names for rows: a row whose age, postcode and sex only one voter has is that voter's."""
    by_exact: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for voter in voters:
        by_exact[voter.exact].append(voter.name)
    return {by_exact[key][0]: diagnosis for key, diagnosis in table if len(by_exact[key]) == 1}


def homogeneity(table: Mapping[tuple[str, ...], Sequence[str]], known: Sequence[Person]) -> dict[str, str]:
    """Diagnoses of people known to have been patients: certain wherever all rows of their group agree."""
    alike = {key: rows[0] for key, rows in table.items() if len(set(rows)) == 1}
    return {person.name: alike[person.coarse] for person in known if person.coarse in alike}


def private_counts(people: Sequence[Person], folder: Path) -> Answer:
    """Patients by age band and diagnosis, released privately: one patient replaced by another hardly shows."""
    patients = [person for person in people if person.diagnosis is not None]
    table = pa.table(
        {
            "patient": range(len(patients)),
            "band": [person.coarse[0] for person in patients],
            "diagnosis": [person.diagnosis for person in patients],
        }
    )
    cells = [(band, diagnosis) for band in BANDS for diagnosis in DIAGNOSES]
    keys = pa.table({"band": [band for band, _ in cells], "diagnosis": [diagnosis for _, diagnosis in cells]})
    hospital = dp.open(
        table,
        unit=dp.user("patient", replace=True),
        budget=dp.Budget(1),
        ledger=folder / "hospital.ledger",
        name="hospital",
    )
    question = hospital.bound(rows=1).group_by("band", "diagnosis", keys=keys).agg(patients=dp.count())
    return question.release(epsilon=EPSILON, purpose="patients by age and diagnosis")


def posterior(answer: Answer, people: Sequence[Person], target: Person, prior: Mapping[str, float]) -> dict[str, float]:
    """What the strongest attacker believes: one who knows every other patient, and the law of the noise.

    The count of a cell is that of the others, plus one if the target is in it, plus Laplace noise.
    """
    band = target.coarse[0]
    others = Counter(person.diagnosis for person in people if person.name != target.name and person.coarse[0] == band)
    scale = float(answer["patients"].errors[0]) / math.sqrt(2)
    cells = list(zip(answer.keys["band"].to_pylist(), answer.keys["diagnosis"].to_pylist(), strict=True))
    seen = {what: value for (where, what), value in zip(cells, answer["patients"].values, strict=True) if where == band}
    logs = {
        guess: math.log(prior[guess])
        - sum(abs(seen[what] - others[what] - (what == guess)) for what in DIAGNOSES) / scale
        for guess in DIAGNOSES
    }
    top = max(logs.values())
    total = sum(math.exp(value - top) for value in logs.values())
    return {guess: math.exp(value - top) / total for guess, value in logs.items()}


def ceiling(answer: Answer, prior: float) -> float:
    """The most that anyone can believe afterwards who believed ``prior`` before, whatever else they know."""
    promised = answer.promise()
    odds = math.inf if promised is None else promised.odds
    return 1.0 if math.isinf(odds) else prior * odds / (1 - prior + prior * odds)


def main() -> None:
    """Publish, attack, release, attack again."""
    console = Console()
    people = town()
    patients = [person for person in people if person.diagnosis is not None]
    truth = {person.name: person.diagnosis for person in patients}

    table = without_names(people)
    named = linkage(table, people)
    right = sum(truth.get(name) == diagnosis for name, diagnosis in named.items())
    console.print(Text("1. Names removed", style="bold"))
    console.print(
        f"{len(table)} rows with age, postcode, sex and diagnosis. With the voters' list, {len(named)} of them"
    )
    console.print(f"({100 * len(named) / len(table):.0f} %) get their names back, {right} of these rightly:")
    show(console, list(named.items())[:3])

    groups = anonymous(people)
    certain = homogeneity(groups, patients)
    wrong = sum(truth[name] != diagnosis for name, diagnosis in certain.items())
    console.print(Text(f"\n2. {K}-anonymous", style="bold"))
    console.print(f"Ages in bands, postcodes cut, groups below {K} held back: {len(groups)} groups are left. But in")
    alike = sum(len(set(rows)) == 1 for rows in groups.values())
    console.print(
        f"{alike} of them all diagnoses agree, so who knows that someone was there knows why. For {len(certain)}"
    )
    console.print(f"named patients the diagnosis is certain ({wrong} wrong):")
    show(console, list(certain.items())[:3])

    target = next(person for person in patients if person.name in certain)
    prior = dict.fromkeys(DIAGNOSES, 1 / len(DIAGNOSES))
    console.print(Text(f"\n3. The same counts with a guarantee (epsilon {EPSILON})", style="bold"))
    with tempfile.TemporaryDirectory() as folder:
        answer = private_counts(people, Path(folder))
        console.print(Text(str(answer)))
        belief = posterior(answer, people, target, prior)[str(target.diagnosis)]
        console.print(
            f"\nThe strongest attacker knows all other {len(patients) - 1} patients exactly and asks about"
            f" {target.name}: {target.diagnosis}?"
        )
        compare = Table("", "believes", box=box.SIMPLE_HEAD)
        compare.add_row("before", f"{100 * prior[str(target.diagnosis)]:.0f} %")
        compare.add_row(f"after the {K}-anonymous table", "100 %")
        compare.add_row("after the private release", f"{100 * belief:.1f} %")
        most = ceiling(answer, prior[str(target.diagnosis)])
        compare.add_row("at most, whatever they know", f"{100 * most:.1f} %")
        console.print(compare)
        console.print(Text(answer.explain()))


def show(console: Console, learned: Sequence[tuple[str, str]]) -> None:
    """A few of the things that leaked."""
    for name, diagnosis in learned:
        console.print(Text(f"   {name}: {diagnosis}"))


if __name__ == "__main__":
    main()
