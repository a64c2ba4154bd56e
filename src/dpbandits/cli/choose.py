"""The command ``dpbandits choose``: which policy to take."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError
from ..policies import default_for
from .inputs import budget_of, clear_errors
from .tables import new_console

if TYPE_CHECKING:
    from ..policies import Default
    from ..privacy import Budget


class Trust(StrEnum):
    """The values of ``--trust``."""

    central = "central"
    shuffle = "shuffle"
    local = "local"


class Contexts(StrEnum):
    """The values of ``--contexts``."""

    none = "none"
    fixed = "fixed"
    public = "public"
    private = "private"


def choose(
    arms: Annotated[int, typer.Option(min=1, help="Number of arms.")],
    experts: Annotated[
        int | None,
        typer.Option(min=1, help="Number of experts; without it, finite arms and no advice."),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(min=1, help="Number of rounds; needed with experts.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Such as pure=1.0 or approx=1.0,1e-6; without it, no privacy."),
    ] = None,
    standing_advice: Annotated[
        bool,
        typer.Option(
            "--standing-advice",
            help="Experts keep to their advice for as many rounds as a batch has, or for ever.",
        ),
    ] = False,
    trust: Annotated[
        Trust, typer.Option(help="Who may see raw rewards; without experts.")
    ] = Trust.central,
    any_rewards: Annotated[
        bool,
        typer.Option(
            "--any-rewards", help="Nobody promised that rewards follow a law; without experts."
        ),
    ] = False,
    rounds_per_change: Annotated[
        int | None,
        typer.Option(
            min=1, help="The best arm may change, about once in so many rounds; without experts."
        ),
    ] = None,
    contexts: Annotated[
        Contexts,
        typer.Option(
            help="What is known before a choice, and who may see it; fixed features of the arms."
        ),
    ] = Contexts.none,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Of public or private contexts.")
    ] = None,
) -> None:
    """Name the default for finite arms, with features or without, or rank the policies with expert
    advice by their proved regret bounds.
    """
    with clear_errors():
        asked = budget_of(budget) if budget else None
        if experts is None and standing_advice:
            raise ArgumentError("--standing-advice is for experts; give --experts")
        plain = not any_rewards and trust is Trust.central and contexts is Contexts.none
        if experts is not None and not (plain and rounds_per_change is None):
            raise ArgumentError(
                "--any-rewards, --rounds-per-change, --trust and --contexts are for arms without"
                " experts"
            )
        in_each_round = contexts in (Contexts.public, Contexts.private)
        if (dimension is not None) != in_each_round:
            raise ArgumentError("--dimension must be given with public or private contexts only")
        if experts is None:
            default = default_for(
                trust_model=trust.value,
                random=not any_rewards,
                contexts=contexts.value,
                drifting=rounds_per_change is not None,
            )
            own = {"rounds_per_change": rounds_per_change} if default.drifting else {}
            _for_arms(default, arms, asked, horizon, dimension, own)
        elif horizon is None:
            raise ArgumentError("--horizon must be given with experts, got none")
        else:
            _for_experts(arms, experts, horizon, asked, standing_advice)


def _for_arms(
    default: Default,
    arms: int,
    budget: Budget | None,
    horizon: int | None,
    dimension: int | None,
    own: dict[str, Any],
) -> None:
    if default.contexts == "fixed":  # whoever asks has the features
        written = f"{default.policy}(arms=features, budget={budget!r})"
    else:
        given = {"horizon": horizon, "dimension": dimension, **own}
        written = repr(default.build(arms, budget=budget, **given))
    console = new_console()
    console.print(written, soft_wrap=True, highlight=False, markup=False)
    console.print(
        f"The default for {default.setting}, {default.trust_model} trust.", highlight=False
    )
    console.print(f"What it promises: dpbandits explain {default.policy}", highlight=False)
    console.print("Against whom: dpbandits reproduce equal-budget", highlight=False)


def _for_experts(
    arms: int, experts: int, horizon: int, budget: Budget | None, standing_advice: bool
) -> None:
    from rich.table import Table

    from ..studies import choose_for_experts

    chosen = choose_for_experts(
        arms, experts, budget=budget, horizon=horizon, advice_changes=not standing_advice
    )
    table = Table(
        "policy",
        "regret at most",
        "share of the horizon",
        "batch",
        box=None,
        pad_edge=False,
        header_style="bold",
    )
    for row in chosen.bounds.itertuples():
        table.add_row(str(row.policy), f"{row.bound:,.0f}", f"{row.share:.3g}", f"{row.batch:,}")
    console = new_console()
    console.print(table)
    console.print(
        f"\nThe first of them: {chosen.policy!r}", soft_wrap=True, highlight=False, markup=False
    )
    console.print(
        f"What it promises: dpbandits explain {type(chosen.policy).__name__}",
        soft_wrap=True,
        highlight=False,
    )
    if not chosen.says_something:
        console.print(
            "\nNo bound is below the horizon: none says more than that rewards lie in their range.",
            soft_wrap=True,
        )
