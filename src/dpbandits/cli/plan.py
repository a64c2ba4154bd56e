"""The command ``dpbandits plan``: recommend a policy, and estimate its regret."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import ArgumentError
from .first_run import announce_compilation
from .inputs import (
    AsJson,
    Cluster,
    Decimal,
    Separator,
    Thousands,
    budget_of,
    clear_errors,
    module_called,
    on_cluster,
)
from .tables import new_console, new_table, print_json, with_rows

if TYPE_CHECKING:
    from ..planning import Plan, Setting
    from ..policies import Holdout
    from ..privacy import Budget
    from ..studies import Study


# The values of options.
Trust = StrEnum("Trust", ["central", "shuffle", "local"])
Protects = StrEnum("Protects", {"rewards": "rewards", "both": "contexts and rewards"})
Goal = StrEnum("Goal", {"regret": "regret", "best_arm": "best arm"})


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"must be numbers separated by commas, got {text!r}") from None


def plan(
    study_file: Annotated[
        Path | None,
        Argument(
            metavar="STUDY.toml",
            help="A study file: the plan takes its first environment, first budget and horizon.",
        ),
    ] = None,
    arms: Annotated[int | None, Option(min=1, metavar="N", help="Number of arms.")] = None,
    budget: Annotated[
        str | None,
        Option(
            help="A budget: pure=1, zcdp=0.1, approx=1,1e-6, rdp=4,1 or gdp=1. Default: no privacy."
        ),
    ] = None,
    horizon: Annotated[int | None, Option(min=1, metavar="N", help="Number of rounds.")] = None,
    means: Annotated[
        Any,
        Option(
            parser=_numbers,
            metavar="M,M,...",
            help="The means of arms whose rewards are 0 or 1. With them the plan measures regret.",
        ),
    ] = None,
    gaps: Annotated[
        Any,
        Option(
            parser=_numbers,
            metavar="G,G,...",
            help="The best mean minus each arm's mean. With them the plan measures regret.",
        ),
    ] = None,
    trust: Annotated[
        Trust | None,
        Option(
            metavar="TRUST",
            help="central: the operator sees raw rewards. shuffle, local: people's devices add the"
            " noise, if the policy is made with messages=True or reports=True.",
        ),
    ] = None,
    protects: Annotated[
        Protects | None,
        Option(
            metavar="DATA",
            help='The private data of a person: rewards, or "contexts and rewards".',
        ),
    ] = None,
    features: Annotated[
        str | None,
        Option(
            help="The number of features of each arm, if they change every round. If they are"
            " fixed: a file with a row for each arm."
        ),
    ] = None,
    person: Annotated[
        int | None,
        Option(
            min=1, metavar="N", help="The number of features of a person: one vector for all arms."
        ),
    ] = None,
    link: Annotated[
        str | None, Option(help="The link from features to mean rewards, such as logistic.")
    ] = None,
    drift: Annotated[
        str | None,
        Option(
            help='Rounds between changes of the best arm; or "any", if rewards may change in any'
            " way."
        ),
    ] = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    thousands: Thousands = "",
    experts: Annotated[int | None, Option(min=1, metavar="N", help="Number of experts.")] = None,
    standing_advice: Annotated[
        bool,
        Option(
            "--standing-advice",
            help="Declare that experts do not change their advice within a batch of rounds.",
        ),
    ] = False,
    goal: Annotated[
        Goal | None, Option(help="regret: keep regret small. best arm: find the best arm.")
    ] = None,
    failure_probability: Annotated[
        float | None,
        Option(help="The largest allowed probability that a search fails. Default: 0.05."),
    ] = None,
    target_regret: Annotated[
        float | None, Option(help="Also find the smallest budget at which regret is at most this.")
    ] = None,
    rounds: Annotated[
        int | None,
        Option(min=0, help="Rounds to simulate; 0 for none. Default: the horizon, up to a limit."),
    ] = None,
    runs: Annotated[int, Option(min=2, help="Simulated runs of each policy.")] = 20,
    seed: Annotated[int, Option(min=0, help="The seed of the simulation.")] = 0,
    holdout: Annotated[
        float | None,
        Option(
            help="A share of people who get arms by chance, such as 0.1. The plan shows what it"
            " costs and what it tells."
        ),
    ] = None,
    min_share: Annotated[
        float | None,
        Option(help="In place of --holdout: the least share of all people that every arm gets."),
    ] = None,
    imports: Annotated[
        list[str] | None,
        Option(
            metavar="MODULE",
            help="A module in this folder or on the Python path that registers policies of your"
            " own. Repeatable; a study names its modules itself.",
        ),
    ] = None,
    jobs: Annotated[int, Option(help="Number of processes; -1 for one per core.")] = -1,
    cluster: Cluster = None,
    left_out: Annotated[
        bool, Option("--left-out", help="Also say why other policies do not fit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the policies that suit your setting, with their proved bounds and measured regret.

    Regret is measured if you give the means of arms, or their gaps, or a study.
    """
    chosen = {"trust": trust, "protects": protects, "goal": goal}
    known = {
        **{name: option and option.value for name, option in chosen.items()},
        **{"person": person, "experts": experts, "link": link, "gaps": gaps},
        "drift": int(drift) if drift and drift.isdecimal() else drift,
        "standing_advice": standing_advice or None,
        "failure_probability": failure_probability,
    }
    given = {name: value for name, value in known.items() if value is not None}
    with clear_errors():
        announce_compilation()
        asked, study = budget_of(budget) if budget else None, None
        if study_file is not None:
            if arms or means or gaps or features or imports:
                raise ArgumentError(
                    "--arms, --means, --gaps, --features and --imports must not be given with a"
                    " study, which has its own"
                )
            from ..studies import load_study

            study = load_study(study_file)
            setting, horizon, asked = _of_study(study, given, horizon, asked)
        else:
            for module in imports or ():
                module_called(module)
            marks = {"separator": separator, "decimal": decimal, "thousands": thousands}
            setting = _described(arms, means, features, marks, given)
        if horizon is None:
            raise ArgumentError("--horizon must be given")
        from ..planning import plan as make

        size: dict[str, Any] = {"rounds": rounds, "runs": runs, "seed": seed, "n_jobs": jobs}
        size["holdout"] = _held_out(holdout, min_share)
        with on_cluster(cluster, study, imports or ()):
            made = make(setting, horizon, asked, progress=new_console().is_terminal, **size)
            affordable = None if target_regret is None else made.budget_for(target_regret)
    if as_json:
        told = made.to_dict()
        if affordable is not None:
            told["affordable"] = str(affordable)
        print_json(told)
        return
    _show(made, left_out)
    if affordable is not None:
        new_console().print(str(affordable), soft_wrap=True)


def _held_out(share: float | None, min_share: float | None) -> float | Holdout | None:
    """The holdout that the options ask for."""
    from ..policies import Holdout

    if min_share is None:
        return share
    if share is not None:
        raise ArgumentError("--min-share must not be given with --holdout")
    return Holdout(min_share=min_share)


def _described(
    arms: int | None,
    means: list[float] | None,
    features: str | None,
    marks: dict[str, Any],
    given: dict[str, Any],
) -> Setting:
    """The setting that the options describe; ``marks`` are those of the file of features."""
    import numpy as np

    from ..environments import Bernoulli
    from ..planning import Setting
    from ..tables import read_numbers

    if features is not None:
        number = int(features) if features.isdecimal() else None
        table = number or read_numbers("--features", Path(features), **marks)
        given = {**given, "features": table}
    told = [len(given[name]) for name in ("gaps", "features") if np.ndim(given.get(name, 0))]
    told += [len(means)] if means else []
    counts = {count for count in (arms, *told) if count is not None}
    if len(counts) != 1:
        raise ArgumentError(
            "--arms, --means, --gaps and the rows of --features must agree on the number of"
            f" arms, got {' and '.join(map(str, sorted(counts))) or 'none'}"
        )
    return Setting.of(Bernoulli(means), **given) if means else Setting(counts.pop(), **given)


def _of_study(
    study: Study, given: dict[str, Any], horizon: int | None, budget: Budget | None
) -> tuple[Setting, int, Budget | None]:
    """The first environment of a study, its horizon, and its first budget."""
    from ..planning import Setting

    first = next((one.budget for one in study.policies if one.budget is not None), None)
    setting = Setting.of(study.environments[0], **given)
    return setting, horizon or study.horizon, budget or first


def _show(made: Plan, left_out: bool) -> None:
    console = new_console()
    console.print(repr(made.policy()), soft_wrap=True)
    heads, rows = made.rows()
    console.print(made.heading, style="italic")
    console.print(with_rows(new_table(heads[0], numbers=heads[1:]), rows))
    console.print("* the default of the setting\n" if made.table["default"].any() else "")
    for sentence in made.findings:
        console.print(sentence, soft_wrap=True)
    if left_out:
        console.print("\nLeft out:")
        for name, reason in made.left_out.items():
            console.print(f"  {name}: {reason}", soft_wrap=True)
    promise = made.policy().guarantee
    if promise.holds is not None:
        console.print(f"{promise.holds.shown()}: {promise.means}", soft_wrap=True)
    best = made.fitting[made.best].cls.__name__
    console.print(f"Its promise in full: dpbandits explain {best}")
