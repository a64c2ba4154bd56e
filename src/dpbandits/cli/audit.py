"""The command ``dpbandits audit``: attack policies, and print bounds on their privacy loss."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import ArgumentError
from .first_run import announce_compilation
from .inputs import AsJson, Cluster, Noise, budget_of, clear_errors, on_cluster
from .tables import new_console, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ..auditing import Audit
    from ..policies import Policy
    from ..studies import Study

REFUTED = 1
FIGURES = (".png", ".svg", ".pdf")


def audit(
    what: Annotated[
        str,
        Argument(
            metavar="POLICY | STUDY.toml",
            help="A policy of `dpbandits list`; or a study file, to attack all its policies.",
        ),
    ],
    budget: Annotated[
        str | None,
        Option(
            help="The policy's budget, such as zcdp=0.5. Default: an example that fits the policy."
        ),
    ] = None,
    runs: Annotated[
        int | None,
        Option(
            min=50,
            help="Runs with each of the two data sets. Default: 20,000, or 2,000 with secure"
            " noise.",
        ),
    ] = None,
    horizon: Annotated[
        int | None, Option(min=1, help="Rounds of a run. Default: as many as the attack needs.")
    ] = None,
    noise: Annotated[Noise, Option(help="The noise to attack.")] = Noise.simulation,
    plant: Annotated[
        str | None,
        Option(
            help=(
                "A bug to plant in the policy, to test the attack: half (of the noise), redrawn"
                " (noise), add-remove (sensitivity), repeated (records) or timed (releases). With"
                " null, both data sets are equal."
            )
        ),
    ] = None,
    controls: Annotated[
        bool,
        Option("--controls", help="Also attack the policy with each bug planted, in fewer runs."),
    ] = False,
    alpha: Annotated[
        float, Option(help="The largest probability of refuting a true claim.")
    ] = 1e-4,
    seed: Annotated[int, Option(min=0, help="The seed of everything except secure noise.")] = 0,
    jobs: Annotated[int, Option(help="Number of processes; -1 for one per core.")] = -1,
    cluster: Cluster = None,
    figure: Annotated[
        Path | None, Option(help="Draw the attack on one policy to this PNG, SVG or PDF file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Attack a policy with data that differ in one person, and bound its privacy loss from below.

    The command ends with status 1 if the bound exceeds the policy's guarantee.
    """
    with clear_errors():
        if figure is not None and figure.suffix.lower() not in FIGURES:
            raise ArgumentError(f"--figure must end in {', '.join(FIGURES)}, got {figure}")
        policies, study = _policies(what, budget)
        if figure is not None and len(policies) > 1:
            raise ArgumentError("--figure must not be given for a study, only for one policy")
        size: dict[str, Any] = {"runs": runs, "horizon": horizon, "seed": seed, "n_jobs": jobs}
        how = {"noise": noise.value, "plant": plant, "controls": controls, "alpha": alpha}
        console = new_console(stderr=as_json)
        with on_cluster(cluster, study):
            found = _audited(policies, {**size, **how}, console)
        if as_json:
            print_json([one.to_dict() for one in found])
        if figure is not None:
            found[0].plot().savefig(figure, dpi=160)
        if any(one.refuted for one in found):
            raise typer.Exit(REFUTED)


def attack(policy: Policy, **given: Any) -> Audit:
    """Run an audit and show its progress."""
    from ..auditing import audit
    from .progress import StudyProgress

    with StudyProgress(new_console(stderr=True), {policy.label: None}) as bars:
        return audit(policy, progress=partial(bars, policy.label), **given)


def _policies(what: str, budget: str | None) -> tuple[Sequence[Policy], Study | None]:
    """The policies to attack, and their study where they are of one."""
    announce_compilation()
    if what.endswith(".toml"):
        from ..studies import load_study

        if budget is not None:
            raise ArgumentError("--budget must not be given for a study, which has its own budgets")
        study = load_study(what)
        return study.policies, study
    from ..policies import find

    cls = find(what)
    chosen: Any = budget_of(budget) if budget else next(iter(cls.example_budgets()), None)
    return [cls(**cls.example, budget=chosen, noise="simulation")], None


def _audited(policies: Sequence[Policy], given: dict[str, Any], console: Console) -> list[Audit]:
    """All that can be audited; of the others the reason is told, and of a single one raised."""
    found = []
    for policy in policies:
        try:
            one = attack(policy, **given)
        except ArgumentError as error:
            if len(policies) == 1:
                raise
            console.print(f"{policy!r}\nNot audited: {error}\n")
            continue
        console.print(f"{one}\n", soft_wrap=True)
        found.append(one)
    return found
