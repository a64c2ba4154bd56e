"""The command ``evaluate``: the value of a policy from the log of another one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from ..errors import ArgumentError
from .inputs import AsJson, clear_errors, imported, pair
from .tables import new_console, new_table, print_json, with_rows

# Options of both commands on logs.
Rewards = Annotated[
    tuple[str, str],
    Option(metavar="LOW HIGH", callback=pair, help="The range of rewards, as in 0 1."),
]
ArmColumn = Annotated[str, Option(help="The column of arms.")]
RewardColumn = Annotated[str, Option(help="The column of rewards.")]
PropensityColumn = Annotated[str, Option(help="The column of propensities.")]
EpisodeColumn = Annotated[
    str | None, Option(help="The column that names the draw of each row. Default: episode.")
]
Features = Annotated[str | None, Option(help="The columns of contexts, with commas between.")]


def evaluate(
    log: Annotated[
        str,
        Argument(
            metavar="LOG",
            help="A folder of DecisionLog, or a file: Parquet, CSV, the CSV of Open Bandit, or"
            " dsjson of Vowpal Wabbit.",
        ),
    ],
    target: Annotated[
        str,
        Option(
            help="An arm, by number or name; a saved policy; a chooser (.json); probabilities of"
            " arms (.csv), a line for each row of the log or one for all; or MODULE:FUNCTION."
        ),
    ],
    estimator: Annotated[str, Option(help="SNIPS, IPS, DM, DR, switch-DR or CAB.")] = "SNIPS",
    interval: Annotated[
        str,
        Option(
            help=(
                "bernstein, for a fixed number of episodes; betting, which holds whenever you look;"
                " or bootstrap, which is approximate."
            )
        ),
    ] = "bernstein",
    confidence: Annotated[
        float, Option(help="The probability that the interval covers the value.")
    ] = 0.95,
    q: Annotated[
        str | None,
        Option(
            help="Predictions of rewards for DM, DR, switch-DR and CAB: numbers for arms (.csv), or"
            " MODULE:NAME of a function or regressor. Default: means of arms."
        ),
    ] = None,
    clip: Annotated[
        float | None,
        Option(help="The bound on weights. For switch-DR and CAB: the threshold of weights."),
    ] = None,
    largest_weight: Annotated[
        float | None,
        Option(help="A bound on every possible weight. Default: the largest weight of the log."),
    ] = None,
    reward_range: Rewards = ("0", "1"),
    arm: ArmColumn = "arm",
    reward: RewardColumn = "reward",
    propensity: PropensityColumn = "propensity",
    episode: EpisodeColumn = None,
    features: Features = None,
    propensities: Annotated[
        str | None,
        Option(help="The propensities of all arms (.csv), or a column of lists, for CAB."),
    ] = None,
    held_out: Annotated[
        bool, Option("--held-out", help="Take only people of the holdout.")
    ] = False,
    resamples: Annotated[int, Option(help="The number of resamples of the bootstrap.")] = 2000,
    seed: Annotated[
        int, Option(help="The seed of the bootstrap, and of targets that draw arms.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate the mean reward of a policy from the log of another one.

    For the operator: the result is not private, and no budget covers it.
    """
    from ..evaluation import evaluate as estimated

    with clear_errors():
        found = estimated(
            log,
            target_of(target),
            estimator=estimator,
            interval=interval,
            confidence=confidence,
            q=None if q is None else _numbers("--q", q) if _is_csv(q) else _object("--q", q),
            clip=clip,
            largest_weight=largest_weight,
            reward_range=(float(reward_range[0]), float(reward_range[1])),
            arm=arm,
            reward=reward,
            propensity=propensity,
            episode=episode,
            features=columns_of(features),
            propensities=(
                _numbers("--propensities", propensities)
                if propensities is not None and _is_csv(propensities)
                else propensities
            ),
            held_out=held_out,
            resamples=resamples,
            seed=seed,
        )
    if as_json:
        print_json(found.to_dict())
        return
    console, (_, rows) = new_console(), found.table()
    console.print(f"{found.title}.")
    console.print(with_rows(new_table("", "", show_header=False), rows))
    for one in found.breaks:
        console.print(f"* {one}", soft_wrap=True)


def target_of(text: str) -> Any:
    """A target of evaluation as the command line has it."""
    from ..inspection import inspect
    from ..policies.chooser import Chooser

    if text.isdecimal():  # a name, if the log has it, and otherwise a number
        return text
    if _is_csv(text):
        return _numbers("--target", text)
    if Path(text).is_file() and text.endswith(".json"):
        return Chooser.from_json(Path(text).read_text(encoding="utf-8"))
    if Path(text).is_file() or "://" in text:
        return inspect(text).chooser()
    return _object("--target", text) if ":" in text else text


def columns_of(features: str | None) -> str | list[str] | None:
    """The columns of contexts as the command line has them."""
    return features if features is None or "," not in features else features.split(",")


def _is_csv(text: str) -> bool:
    return text.endswith(".csv") and Path(text).is_file()


def _numbers(option: str, path: str) -> Any:
    from ..tables import read_numbers

    table = read_numbers(option, path)
    return table[0] if len(table) == 1 else table


def _object(option: str, text: str) -> Any:
    module, name, found = imported(option, text, "MODULE:NAME")
    if found is None:
        raise ArgumentError(f"{module} has no {name!r}")
    return found
