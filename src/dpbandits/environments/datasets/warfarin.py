"""Warfarin doses as a bandit: patients of the International Warfarin Pharmacogenetics Consortium,
and the right one of three doses for each (IWPC 2009; Bastani & Bayati 2020).

The stable dose of every patient is known, hence the reward of every arm.  A bandit can be compared
with the fixed dose and with the two dosing algorithms of the consortium.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ArgumentError
from ...validation import choice, flag
from .classification import Classification
from .published import checksum

DOSES = ("low", "medium", "high")
MEDIUM = (21.0, 49.0)  # mg per week
FIXED = 35.0  # mg per week

_INSTRUCTIONS = (
    "The International Warfarin Pharmacogenetics Consortium offers its data set through PharmGKB"
    " (ClinPGx); save its sheet of patients as CSV, with the names of the columns in the first"
    " line."
)

# What stands for a number that is not known, and how large a difference counts as 1.
_TYPICAL = {"decade": (6.0, 1.5), "height": (168.0, 11.0), "weight": (78.0, 22.0)}
# What genotypes take off the root of the dose, beside G/G and *1/*1 (IWPC 2009, supplement S1).
_CYP2C9 = {"*1/*2": 0.5211, "*1/*3": 0.9357, "*2/*2": 1.0616, "*2/*3": 1.9206, "*3/*3": 2.3312}
_LESS = {"vkorc1": {"A/G": 0.8677, "A/A": 1.6974, "": 0.4854}, "cyp2c9": {**_CYP2C9, "": 0.2188}}

# The roots of the doses of the consortium's algorithms: constants, and weights of predictors.
_PREDICTORS = [*_TYPICAL, "less", "asian", "black", "race_unknown", "enzyme_inducer", "amiodarone"]
_CLINICAL = (4.0376, -0.2546, 0.0118, 0.0134, 0, -0.6752, 0.4060, 0.0443, 1.2799, -0.5695)
_GENETIC = (5.6044, -0.2614, 0.0087, 0.0128, -1, -0.1092, -0.2760, -0.1032, 1.1816, -0.5503)

_DOSE = "Therapeutic Dose of Warfarin"
_YES_OR_NO = {
    "amiodarone": "Amiodarone (Cordarone)",
    "diabetes": "Diabetes",
    "heart_failure": "Congestive Heart Failure and/or Cardiomyopathy",
    "valve": "Valve Replacement",
    "smoker": "Current Smoker",
    "aspirin": "Aspirin",
    "simvastatin": "Simvastatin (Zocor)",
}
_INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
_SNP = "VKORC1 -1639 consensus"  # rs9923231
# What tells that genotype where it is missing (IWPC 2009, supplement S4), the first that is known;
# and whether it does for all, or for white and Asian patients only.
_LINKED = (
    ("VKORC1 2255 consensus", {"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}, False),  # rs2359612
    ("VKORC1 1173 consensus", {"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}, True),  # rs9934438
    ("VKORC1 1542 consensus", {"G/G": "G/G", "C/G": "A/G", "C/C": "A/A"}, False),  # rs8050894
)
_COLUMNS = (
    "Gender",
    "Race",
    "Age",
    "Height (cm)",
    "Weight (kg)",
    "CYP2C9 consensus",
    _DOSE,
    _SNP,
    *_YES_OR_NO.values(),
    *_INDUCERS,
    *(name for name, _, _ in _LINKED),
)


@dataclass(frozen=True, eq=False, repr=False)
class Warfarin:
    """The patients whose therapeutic dose is known.

    Attributes:
        patients: one row each, in the order of the file: ``dose`` (mg per week), ``decade`` (of
            age, 1 for 10 to 19 years up to 9 for 90 and above), ``height`` (cm), ``weight`` (kg),
            each NaN where it is missing; 0 or 1 (0 where it is not said): ``male``, ``asian``,
            ``black``, ``race_unknown``, ``enzyme_inducer`` (carbamazepine, phenytoin or
            rifampicin), ``amiodarone``, ``diabetes``, ``heart_failure``, ``valve``, ``smoker``,
            ``aspirin``, ``simvastatin``; and the genotypes ``vkorc1`` (of the SNP rs9923231: "G/G",
            "A/G", "A/A") and ``cyp2c9`` ("*1/*1" to "*3/*3"), empty where they are unknown.
        checksum: of the file, eight digits.
        ends: as for ``warfarin``.
    """

    patients: pd.DataFrame
    checksum: str
    ends: str = "medium"

    def arms(self) -> np.ndarray:
        """The right arm of every patient, see ``DOSES``.

        Returns:
            Shape (N,): 0, 1 or 2.
        """
        return arms_of(self.patients["dose"].to_numpy(), self.ends)

    def features(self, *, genotypes: bool = True) -> pd.DataFrame:
        """Make features of every patient from that patient's data alone.

        Age, height and weight are (x - c) / s with c = 6 decades, 168 cm, 78 kg and s = 1.5
        decades, 11 cm, 22 kg.  A missing value is replaced by c and marked by 1 in a column of its
        own.  All else is 0 or 1, the last column the intercept.  Then rows are divided by their
        lengths.

        Returns:
            A row per patient, of length 1, with 28 columns, or 19 without ``genotypes``.

        Raises:
            ArgumentError: ``genotypes`` is no bool.
        """
        people, columns = self.patients, {}
        for name, (centre, scale) in _TYPICAL.items():
            columns[name] = (people[name].fillna(centre) - centre) / scale
            columns[f"{name} unknown"] = people[name].isna()
        for name in ("male", "asian", "black", "race_unknown", "enzyme_inducer", *_YES_OR_NO):
            columns[name] = people[name]
        if flag("genotypes", genotypes):
            for gene, effects in _LESS.items():
                for genotype in effects:
                    columns[f"{gene.upper()} {genotype or 'unknown'}"] = people[gene] == genotype
        columns["intercept"] = np.ones(len(people))
        table = pd.DataFrame(columns).astype(float)
        return table.div(np.sqrt((table**2).sum(axis=1)), axis=0)

    def environment(
        self, *, genotypes: bool = True, once: bool = False, seed: int = 0, blocks: bool = True
    ) -> Classification:
        """Show patients as contexts, with reward 1 for the right dose, else 0.

        Args:
            genotypes: as of ``features``.
            once, seed, blocks: as of ``Classification``.

        Returns:
            A ``Classification`` with three arms, ``DOSES``.
        """
        rows = self.features(genotypes=genotypes).to_numpy()
        made = Classification.of_rows(
            rows, self.arms(), once=once, seed=seed, names=DOSES, blocks=blocks
        )
        drawn = f", seed={seed}" * once
        return made._made(f"warfarin {self.checksum}, ends={self.ends!r}{drawn}")

    def doses(self) -> pd.DataFrame:
        """Compute the doses of other rules.  Two are algorithms of the consortium (IWPC 2009,
        supplement S1).

        Heights, weights and ages that are missing count as typical, see ``features``.

        Returns:
            A row per patient, in mg per week: ``fixed``, and of the consortium ``clinical`` and
            ``pharmacogenetic``.
        """
        people = self.patients.fillna({name: c for name, (c, _) in _TYPICAL.items()})
        less = sum(people[gene].map(effects).fillna(0.0) for gene, effects in _LESS.items())
        people = people.assign(less=less)
        given: dict[str, Any] = {"fixed": FIXED}
        for name, numbers in (("clinical", _CLINICAL), ("pharmacogenetic", _GENETIC)):
            root: Any = numbers[0]
            for column, weight in zip(_PREDICTORS, numbers[1:], strict=True):
                root = root + weight * people[column]
            given[name] = root**2
        return pd.DataFrame(given)

    def baselines(self) -> pd.DataFrame:
        """Compute the accuracy of the rules in ``doses``.

        The consortium fitted its algorithms to most of these patients.

        Returns:
            A row per rule: ``correct``, the share of doses in the right arm, and ``error``, the
            mean absolute error in mg per week.
        """
        given, right = self.doses(), self.arms()
        chosen = {name: arms_of(doses.to_numpy(), self.ends) for name, doses in given.items()}
        return pd.DataFrame(
            {
                "correct": {name: (arms == right).mean() for name, arms in chosen.items()},
                "error": given.sub(self.patients["dose"], axis=0).abs().mean(),
            }
        )

    def __repr__(self) -> str:
        return f"Warfarin({len(self.patients)} patients)"


def arms_of(doses: np.ndarray, ends: str = "medium") -> np.ndarray:
    """Low, medium or high: which arm doses in mg per week belong to; ``ends`` as for ``warfarin``.

    >>> arms_of(np.array([20.9, 21.0, 49.0, 49.1])).tolist()
    [0, 1, 1, 2]
    """
    low, high = MEDIUM
    if ends == "outer":
        return (doses > low).astype(np.int64) + (doses >= high)
    return (doses >= low).astype(np.int64) + (doses > high)


def warfarin(path: str | os.PathLike[str], *, ends: str = "medium") -> Warfarin:
    """The IWPC data from a CSV file; ``docs/data/warfarin.md`` says where it comes from.

    Args:
        path: of the file.
        ends: the arm of doses of just 21 and 49 mg per week: "medium", or "outer" for low and high,
            as the consortium counts (2009, Table 3).

    Raises:
        ArgumentError: an argument is outside its range, or the file is missing, has other columns
            or no doses, or an entry is not what its column holds.

    References:
        International Warfarin Pharmacogenetics Consortium (2009), Estimation of the warfarin dose
        with clinical and pharmacogenetic data, New England Journal of Medicine 360:753-764.

        H. Bastani, M. Bayati (2020), Online decision making with high-dimensional covariates,
        Operations Research 68:276-294.

    >>> warfarin("no/such/file.csv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    dpbandits.errors.ArgumentError: path must be the CSV file of the patients, got ...
    """
    choice("ends", ends, ("medium", "outer"))
    try:
        raw = Path(path).read_bytes()
        text = raw.decode("utf-8-sig")
        lines = list(csv.DictReader(StringIO(text, newline=""), strict=True))
    except (OSError, TypeError, ValueError, csv.Error) as error:  # whose words may quote a cell
        got = error.strerror if isinstance(error, OSError) else "no table of text in UTF-8"
        raise ArgumentError(
            f"path must be the CSV file of the patients, got {path!r} ({got}).  {_INSTRUCTIONS}",
            "path",
        ) from None
    if missing := [name for name in _COLUMNS if not lines or name not in lines[0]]:
        raise ArgumentError(
            f"path must be a file with the column {missing[0]!r}, got {path!r} without it. "
            f" {_INSTRUCTIONS}",
            "path",
        )
    if ragged := [row for row, line in enumerate(lines) if None in line or None in line.values()]:
        raise ArgumentError(
            "path must be a file with rows as long as its header, got another length in row"
            f" {ragged[0]} of {path!r}",
            "path",
        )
    table = pd.DataFrame(lines, columns=list(_COLUMNS)).replace({"NA": ""})
    table = table[table[_DOSE] != ""].reset_index(drop=True)
    if not len(table):
        raise ArgumentError(f"path must hold patients with a dose, got none in {path!r}", "path")
    return Warfarin(_tidy(table), checksum({"patients": raw}), ends)


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    race = table["Race"]
    tidy = {
        "dose": _numbers(table, _DOSE, 0.1, 1000.0),
        "decade": _decades(table["Age"]),
        "height": _numbers(table, "Height (cm)", 50.0, 250.0),
        "weight": _numbers(table, "Weight (kg)", 20.0, 400.0),
        "male": _among(table, "Gender", ("male", "female")) == "male",
        "asian": race == "Asian",
        "black": race == "Black or African American",
        "race_unknown": ~race.isin(["White", "Asian", "Black or African American"]),
        "enzyme_inducer": sum(_among(table, name, ("0", "1")) == "1" for name in _INDUCERS) > 0,
    }
    for name, column in _YES_OR_NO.items():
        tidy[name] = _among(table, column, ("0", "1")) == "1"
    tidy = {name: column.astype(float) for name, column in tidy.items()}
    cyp2c9 = table["CYP2C9 consensus"]
    known = cyp2c9.where(cyp2c9.isin(["*1/*1", *_LESS["cyp2c9"]]), "")
    return pd.DataFrame({**tidy, "vkorc1": _vkorc1(table), "cyp2c9": known})


def _vkorc1(table: pd.DataFrame) -> pd.Series:
    """The genotype, and where it is missing what linked ones say."""
    genotype = _among(table, _SNP, ("G/G", "A/G", "A/A"))
    related = table["Race"].isin(["White", "Asian"])
    for column, meaning, everybody in _LINKED:
        told = _among(table, column, tuple(meaning)).map(meaning).fillna("")
        genotype = genotype.where((genotype != "") | ~(related | everybody), told)
    return genotype


def _among(table: pd.DataFrame, column: str, known: tuple[str, ...]) -> pd.Series:
    """A column whose entries are among ``known``, or missing."""
    _refuse(column, ~table[column].isin([*known, ""]), f"one of {', '.join(known)}")
    return table[column]


def _numbers(table: pd.DataFrame, column: str, low: float, high: float) -> pd.Series:
    values = pd.to_numeric(table[column].replace("", "nan"), errors="coerce")
    wrong = (table[column] != "") & ~values.between(low, high)
    _refuse(column, wrong, f"a number in [{low:g}, {high:g}]")
    return values


def _decades(ages: pd.Series) -> pd.Series:
    known = {f"{decade}0 - {decade}9": float(decade) for decade in range(1, 9)} | {"90+": 9.0}
    _refuse("Age", ~ages.isin([*known, ""]), "decades such as '60 - 69', or '90+'")
    return ages.map(known)


def _refuse(column: str, wrong: pd.Series, wanted: str) -> None:
    """Refuse a column with wrong entries."""
    if wrong.any():
        raise ArgumentError(
            f"path must be a file whose column {column!r} holds {wanted}, or NA, got another entry"
            f" in row {int(wrong.argmax())} of the patients with a dose",
            "path",
        )
