"""The command ``evaluate-privately``: values of policies from a log, with a budget of their own."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from .evaluate import (
    ArmColumn,
    EpisodeColumn,
    Features,
    PropensityColumn,
    RewardColumn,
    Rewards,
    columns_of,
    target_of,
)
from .inputs import AsJson, Noise, budget_of, clear_errors
from .tables import new_console, new_table, print_json, with_rows


def evaluate_privately(
    log: Annotated[
        str,
        Argument(
            metavar="LOG",
            help="A folder of DecisionLog, or a file: Parquet, CSV, or the CSV of Open Bandit.",
        ),
    ],
    target: Annotated[
        list[str],
        Option(
            help=(
                "A target, as for `dpbandits evaluate`. Repeat the option for several targets,"
                " which are one release. With private contexts, name a column that holds the"
                " target's probability of each record's arm."
            )
        ),
    ],
    budget: Annotated[str, Option(help="A budget: zcdp=0.1, pure=1, approx=1,1e-6 or gdp=0.5.")],
    largest_weight: Annotated[
        float,
        Option(help="1 / p, where p is the smallest probability with which the log plays an arm."),
    ],
    protects: Annotated[
        str,
        Option(
            help=(
                "rewards; or 'contexts and rewards', with which the command does not read arms and"
                " contexts."
            )
        ),
    ] = "rewards",
    reward_range: Rewards = ("0", "1"),
    default_reward: Annotated[
        float | None,
        Option(help="The reward that replaces a missing one. Default: the lower end of the range."),
    ] = None,
    user: Annotated[
        str | None,
        Option(help="The column of users. Default: each record belongs to another person."),
    ] = None,
    records_per_user: Annotated[int, Option(help="How many records of each user count.")] = 1,
    confidence: Annotated[
        float, Option(help="The probability that all intervals cover their values.")
    ] = 0.95,
    estimator: Annotated[
        str, Option(help="The estimator of the intervals: SNIPS or IPS.")
    ] = "SNIPS",
    noise: Annotated[
        Noise,
        Option(metavar="NOISE", help="secure; or simulation: seeded noise, which protects nobody."),
    ] = Noise.secure,
    seed: Annotated[int | None, Option(help="The seed of simulated noise.")] = None,
    arm: ArmColumn = "arm",
    reward: RewardColumn = "reward",
    propensity: PropensityColumn = "propensity",
    episode: EpisodeColumn = None,
    features: Features = None,
    as_json: AsJson = False,
) -> None:
    """Release what other policies would have earned, with differential privacy.

    The release spends the budget on each record of the log. Run it once: each run spends it again.
    """
    from ..evaluation import evaluate_privately as released
    from ..evaluation.private import RECORDS, asked

    with clear_errors():
        asked(confidence, estimator)  # before anything is spent
        hidden = protects == RECORDS
        found = released(
            log,
            {one: one if hidden else target_of(one) for one in target},
            budget=budget_of(budget),
            largest_weight=largest_weight,
            protects=protects,
            reward_range=(float(reward_range[0]), float(reward_range[1])),
            default_reward=default_reward,
            user=user,
            records_per_user=records_per_user,
            noise=noise.value,
            seed=seed,
            arm=arm,
            reward=reward,
            propensity=propensity,
            episode=episode,
            features=columns_of(features),
        )
        told = found.to_dict(confidence, estimator)
    if as_json:
        print_json(told)
        return
    console, (heads, rows) = new_console(), found.table(confidence, estimator)
    console.print(
        f"{100.0 * confidence:.4g} % intervals, which include the noise. They hold together."
    )
    console.print(with_rows(new_table(*heads), rows))
    for one in found.breaks:
        console.print(f"* {one}", soft_wrap=True)
    console.print(str(found.guarantee), soft_wrap=True)
