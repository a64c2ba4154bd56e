"""The warfarin loader: on a small file of its own, and on the real one where it is at hand."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from dpbandits import ArgumentError, simulate
from dpbandits.algorithms import LinUCB
from dpbandits.environments import warfarin
from dpbandits.environments.datasets.warfarin import _COLUMNS, _SNP
from dpbandits.studies import load_study

DOSE = "Therapeutic Dose of Warfarin"
NAMES = {  # columns of the file by short names
    "race": "Race",
    "sex": "Gender",
    "age": "Age",
    "cm": "Height (cm)",
    "kg": "Weight (kg)",
    "dose": DOSE,
    "snp": _SNP,
    "c9": "CYP2C9 consensus",
    "2255": "VKORC1 2255 consensus",
    "1173": "VKORC1 1173 consensus",
    "1542": "VKORC1 1542 consensus",
    "amio": "Amiodarone (Cordarone)",
    "phenytoin": "Phenytoin (Dilantin)",
}
PLAIN = {
    "race": "White",
    "sex": "female",
    "age": "60 - 69",
    "cm": "168.0",
    "kg": "78.0",
    "dose": "35",
    "snp": "G/G",
    "c9": "*1/*1",
}
TREATED = {**PLAIN, "race": "Asian", "sex": "male", "age": "90+", "cm": "160", "kg": "50"} | {
    "dose": "20.9", "snp": "A/A", "c9": "*2/*3", "amio": "1", "phenytoin": "1",
}  # fmt: skip
UNKNOWN = {"race": "Unknown", "dose": "49.5", "c9": "*1/*11"}


@pytest.fixture
def made(tmp_path):
    """``made(person, ...)``: the path of a file with these people."""

    def write(*people, columns=_COLUMNS):
        path = tmp_path / "warfarin.csv"
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, ["PharmGKB Subject ID", *columns, ""])
            writer.writeheader()
            for person in people:
                entries = {NAMES[name]: value for name, value in person.items()}
                writer.writerow({**dict.fromkeys(columns, "NA"), **entries})
        return path

    return write


def test_patients_are_read(made):
    data = warfarin(made(PLAIN, {**PLAIN, "dose": "NA"}, TREATED, UNKNOWN))
    patients = data.patients
    assert repr(data) == "Warfarin(3 patients)"  # those with a dose
    assert patients["decade"].tolist()[:2] == [6.0, 9.0]
    assert patients[["decade", "height", "weight"]].loc[2].isna().all()
    assert patients[["male", "asian", "black", "race_unknown"]].to_numpy().tolist() == [
        [0.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ]
    assert patients["enzyme_inducer"].tolist() == patients["amiodarone"].tolist() == [0, 1, 0]
    assert patients["vkorc1"].tolist() == ["G/G", "A/A", ""]
    assert patients["cyp2c9"].tolist() == ["*1/*1", "*2/*3", ""]  # rare alleles count as unknown
    assert data.arms().tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("person", "genotype"),
    [
        ({"2255": "C/T"}, "A/G"),
        ({"2255": "T/T", "race": "Black or African American"}, ""),
        ({"2255": "T/T", "race": "Unknown"}, ""),
        ({"1173": "C/C", "race": "Black or African American"}, "G/G"),
        ({"1542": "C/C"}, "A/A"),
        ({"1542": "G/G", "race": "Unknown"}, ""),
        ({"2255": "C/C", "1173": "T/T"}, "G/G"),  # the first that is known
        ({"snp": "A/G", "1173": "T/T"}, "A/G"),
        ({}, ""),
    ],
)
def test_genotypes_are_filled_in_from_linked_ones(made, person, genotype):
    assert warfarin(made({**PLAIN, "snp": "NA", **person})).patients["vkorc1"].item() == genotype


def test_features_say_what_is_known_and_what_is_not(made):
    features = warfarin(made(PLAIN, TREATED, UNKNOWN)).features()
    assert (features.shape, list(features)[-1]) == ((3, 28), "intercept")
    assert np.linalg.norm(features, axis=1) == pytest.approx(1.0)
    raw = features.div(features["intercept"], axis=0).round(9)
    shown = [{name: value for name, value in row.items() if value} for _, row in raw.iterrows()]
    assert shown[0] == {"intercept": 1.0}
    assert shown[1] == {
        "decade": 2.0,
        "height": round(-8 / 11, 9),
        "weight": round(-28 / 22, 9),
        **dict.fromkeys(("male", "asian", "enzyme_inducer", "amiodarone"), 1.0),
        **dict.fromkeys(("VKORC1 A/A", "CYP2C9 *2/*3", "intercept"), 1.0),
    }
    assert shown[2] == dict.fromkeys(
        [f"{name} unknown" for name in ("decade", "height", "weight", "VKORC1", "CYP2C9")]
        + ["race_unknown", "intercept"],
        1.0,
    )
    assert warfarin(made(PLAIN)).features(genotypes=False).shape == (1, 19)


def test_doses_of_the_consortium_by_hand(made):
    data = warfarin(made(PLAIN, TREATED, UNKNOWN))
    doses = data.doses()
    body = 0.0118 * 168 + 0.0134 * 78
    assert doses["fixed"].tolist() == [35.0] * 3
    assert doses["clinical"].tolist() == pytest.approx(
        [
            (4.0376 - 0.2546 * 6 + body) ** 2,
            (4.0376 - 0.2546 * 9 + 0.0118 * 160 + 0.0134 * 50 - 0.6752 + 1.2799 - 0.5695) ** 2,
            (4.0376 - 0.2546 * 6 + body + 0.0443) ** 2,
        ]
    )
    bare = 5.6044 - 0.2614 * 9 + 0.0087 * 160 + 0.0128 * 50
    assert doses["pharmacogenetic"].tolist() == pytest.approx(
        [
            (5.6044 - 0.2614 * 6 + 0.0087 * 168 + 0.0128 * 78) ** 2,
            (bare - 1.6974 - 1.9206 - 0.1092 + 1.1816 - 0.5503) ** 2,
            (5.6044 - 1.5684 + 1.4616 + 0.9984 - 0.4854 - 0.2188 - 0.1032) ** 2,
        ]
    )
    table = data.baselines()
    assert table.loc["fixed", "correct"] == pytest.approx(1 / 3)
    assert table.loc["fixed", "error"] == pytest.approx((0 + 14.1 + 14.5) / 3)


def test_the_ends_of_the_medium_dose_may_be_low_and_high(made):
    path = made(*({**PLAIN, "dose": dose} for dose in ("21", "21.1", "48.9", "49")))
    assert warfarin(path).arms().tolist() == [1, 1, 1, 1]
    assert warfarin(path, ends="outer").arms().tolist() == [0, 1, 1, 2]
    with pytest.raises(ArgumentError, match="ends must be one of 'medium', 'outer', got 'low'"):
        warfarin(path, ends="low")


def test_the_right_dose_is_rewarded(made, play):
    data = warfarin(made(PLAIN, TREATED, UNKNOWN, PLAIN))
    world = data.environment(once=True, seed=3, blocks=False)
    assert (world.horizon, world.dimension, world.arm_names) == (4, 28, ["low", "medium", "high"])
    rounds = play(world, np.ones(4), seed=1)
    rows = data.features().to_numpy()
    for t in range(4):
        person = world.state.order[t]
        assert np.array_equal(rounds.contexts[t], np.tile(rows[person], (3, 1)))
        assert rounds.rewards[t] == (data.arms()[person] == 1)
    blocks = data.environment(genotypes=False)
    assert (blocks.dimension, blocks.horizon) == (57, None)
    assert data.checksum in repr(world)
    assert repr(world).endswith(", seed=3)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"race": "White", "dose": "NA"}, "path must hold patients with a dose"),
        ({"dose": "much"}, "'Therapeutic Dose of Warfarin' holds a number in .0.1, 1000"),
        ({"dose": "-3"}, "'Therapeutic Dose of Warfarin' holds a number in"),
        (
            {"cm": "inf"},
            r"'Height \(cm\)' holds a number in \[50, 250\], or NA, got another entry in row 0",
        ),
        (
            {"age": "61"},
            "'Age' holds decades such as '60 - 69', or '90.', or NA, got another entry in row 0",
        ),
        (
            {"snp": "T/T"},
            "'VKORC1 -1639 consensus' holds one of G/G, A/G, A/A, or NA, got another entry in row 0",
        ),
        (
            {"amio": "yes"},
            "'Amiodarone .Cordarone.' holds one of 0, 1, or NA, got another entry in row 0",
        ),
        ({"sex": "f"}, "'Gender' holds one of male, female"),
    ],
)
def test_entries_that_make_no_sense_are_named(made, change, message):
    with pytest.raises(ArgumentError, match=message):
        warfarin(made({**PLAIN, **change}))


def test_files_that_are_none_are_refused(made, tmp_path):
    columns = [name for name in _COLUMNS if name != "Smoker" and name != "Age"]
    young = {name: value for name, value in PLAIN.items() if name != "age"}
    with pytest.raises(ArgumentError, match=r"^path must be a file with the column 'Age'"):
        warfarin(made(young, columns=columns))
    with pytest.raises(ArgumentError, match=r"^path must be a file with the column 'Gender'"):
        warfarin(made())
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    path = made(PLAIN, PLAIN)
    path.write_text(path.read_text() + "secret,1\n")
    with pytest.raises(
        ArgumentError, match=r"as long as its header, got another length in row 2 of"
    ) as caught:
        warfarin(path)
    assert "secret" not in str(caught.value)
    for bad in (tmp_path / "binary.csv", tmp_path, tmp_path / "none.csv", None):
        with pytest.raises(ArgumentError, match=r"^path must be the CSV file of the patients"):
            warfarin(bad)
    with pytest.raises(ArgumentError, match=r"^genotypes must be True or False"):
        warfarin(made(PLAIN)).features(genotypes=1)


STUDY = """
title = "Doses"
horizon = 4
runs = 1

[budgets]
open = true

[[environments]]
kind = "warfarin"
path = "warfarin.csv"
once = true
blocks = false

[[policies]]
kind = "LinUCB"
models = "disjoint"
"""


def test_study_files_name_the_file(made, tmp_path):
    made(PLAIN, TREATED, UNKNOWN, PLAIN)
    (tmp_path / "study.toml").write_text(STUDY)
    (world,) = load_study(tmp_path / "study.toml").environments
    assert (world.horizon, world.dimension) == (4, 28)


# The real file -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def iwpc(published):
    return warfarin(published("warfarin-iwpc") / "warfarin.csv")


def test_the_real_patients(iwpc):
    assert len(iwpc.patients) == 5528
    assert np.bincount(iwpc.arms()).tolist() == [1495, 3382, 651]
    assert (iwpc.patients["vkorc1"] == "").sum() == 108
    assert iwpc.patients[["decade", "height", "weight"]].isna().sum().tolist() == [39, 1081, 272]


def test_baselines_on_the_real_patients(iwpc):
    table = iwpc.baselines().round(3)
    assert table["correct"].to_dict() == {
        "fixed": 0.612,
        "clinical": 0.643,
        "pharmacogenetic": 0.69,
    }
    assert table["error"].to_dict() == {
        "fixed": 13.264,
        "clinical": 10.077,
        "pharmacogenetic": 8.381,
    }


def test_shares_are_those_of_the_consortium(published):
    """Its Table 3 has 1,711, 2,716 and 625 of 5,052 patients: 33.9, 53.8 and 12.4 %."""
    data = warfarin(published("warfarin-iwpc") / "warfarin.csv", ends="outer")
    shares = np.bincount(data.arms()) / 5528
    assert shares == pytest.approx([0.339, 0.538, 0.124], abs=0.01)
    assert data.baselines()["correct"].round(3).to_dict() == {
        "fixed": 0.541,
        "clinical": 0.607,
        "pharmacogenetic": 0.678,
    }


def test_who_knows_the_patient_doses_better(iwpc):
    """All 5,528 patients, each once: a linear learner that starts with nothing gets more of them
    right than the fixed dose, and fewer than the algorithm that was fitted to them.
    """
    world = iwpc.environment(once=True, seed=1, blocks=False)
    policy = LinUCB(3, 28, models="disjoint", radius_scale=0.1)
    (regret,) = simulate(policy, world, horizon=5528, runs=1).runs["regret"]
    missed = 5528 * (1.0 - iwpc.baselines()["correct"])
    assert missed["pharmacogenetic"] < regret < missed["fixed"] - 4 * np.sqrt(5528 * 0.25)
