"""The commands ``dpbandits explain`` and ``card``: guarantees of a policy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..errors import ArgumentError, BudgetWarning
from .audit import attack
from .first_run import announce_compilation
from .inputs import AsJson, Noise, budget_of, clear_errors
from .tables import new_console, print_json, print_sections
from .warm import play

if TYPE_CHECKING:
    from ..auditing import Audit
    from ..policies import Policy, PrivacyCard
    from .modest_audits import Finding

KEPT = ".audits"  # beside cards, what attacks found of this code
_ROUNDS = 50  # that a card's example plays at least

Name = Annotated[str, Argument(help="A policy of `dpbandits list`.")]
BudgetText = Annotated[
    str | None,
    Option(
        "--budget",
        help="A budget: pure=1, zcdp=0.1, approx=1,1e-5, rdp=4,1 or gdp=0.5. Default: a"
        " budget of each notion that fits the policy.",
    ),
]
NoiseKind = Annotated[
    Noise | None,
    Option("--noise", help="Default: secure if OpenDP is installed."),
]


def explain(
    policy: Name, budget: BudgetText = None, noise: NoiseKind = None, as_json: AsJson = False
) -> None:
    """Explain the guarantees of a policy under a budget: privacy, and for linear models also
    regret.
    """
    from ..policies import find

    with clear_errors():
        cls = find(policy)
        policies = _instances(cls, budget, noise)
    if as_json:
        print_json([_explained(one) for one in policies])
        return
    console = new_console()
    console.print(f"[bold]{policy}[/bold]: {cls.card.title}", markup=True)
    console.print(f"Source: {cls.card.source}", soft_wrap=True)
    if noise is None and _noise(cls) is Noise.simulation and not cls.card.refuted_because:
        hint = "pip install 'dpbandits[secure]'"
        told = f"With simulated noise, because OpenDP is not installed: {hint}"
        console.print(told, soft_wrap=True)
    for one in policies:
        asked = "asked for " if one.budget and cls.card.refuted_because else ""
        console.print(f"\n{asked}{one.budget or 'no budget'}: {one.guarantee}", soft_wrap=True)
        if proved := getattr(one, "regret_guarantee", None):
            console.print(f"Bound on regret: {proved}.", soft_wrap=True)
        for bound in _bounds_of(one):
            console.print(f"Bound: {bound}", soft_wrap=True)


def _explained(policy: Policy) -> dict[str, Any]:
    return {
        "policy": repr(policy),
        "budget": policy.budget and policy.budget.to_dict(),
        "guarantee": policy.guarantee.to_dict(),
        "says": str(policy.guarantee),
        "regret": getattr(policy, "regret_guarantee", None),
        "bounds": _bounds_of(policy),
    }


def card(
    policy: Annotated[
        str | None,
        Argument(
            metavar="POLICY | FILE",
            help="A policy of `dpbandits list`, or a file of `Policy.save`.",
        ),
    ] = None,
    budget: BudgetText = None,
    noise: NoiseKind = None,
    html: Annotated[
        Path | None,
        Option(metavar="FILE", help="Also write the card to this file, as a page for printing."),
    ] = None,
    audit: Annotated[
        bool,
        Option(
            "--audit",
            help="Attack the policy first, as `dpbandits audit` does. With --all, each attack has"
            " fewer runs.",
        ),
    ] = False,
    every: Annotated[
        Path | None,
        Option(
            "--all",
            metavar="DIR",
            help="Write the cards of all policies to this folder, as Markdown and as HTML.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the privacy card of a policy: guarantees, enforcement, unprotected data, and spending.

    For a saved policy the card shows its present state.  Otherwise it shows a small example of the
    policy.
    """
    from ..inspection import inspect as look
    from ..policies import find

    with clear_errors():
        if (policy is None) == (every is None):
            raise ArgumentError("a POLICY or --all must be given, and not both")
        if audit and policy is not None and Path(policy).is_file():
            raise ArgumentError(
                "--audit must not be given for a saved policy, only for one of"
                " `dpbandits list` or with --all"
            )
        if every is not None:
            from .modest_audits import modest_audits

            names = write_cards(every, modest_audits(every / KEPT) if audit else None)
            typer.echo(f"{len(names)} cards: {every}")
            return
        assert policy is not None
        if Path(policy).is_file():
            cards = [look(policy).card]
        else:
            made = _instances(find(policy), budget, noise)
            cards = [_played(one, attack(one) if audit else None) for one in made]
    if html is not None:  # first, for a pipe may be closed before all is said
        html.write_text(cards[0].html(), encoding="utf-8")
    if as_json:
        print_json([one.to_dict() for one in cards])
        return
    for one in cards:
        _print(one)
    if html is not None:
        typer.echo(f"Card: {html}")


def write_cards(folder: Path, audits: Mapping[str, Any] | None = None) -> Sequence[str]:
    """Write the card of every policy, with the first budget that it takes, and a list of them; with
    ``audits`` of policies by name, as ``modest_audits`` has them.  Links to errata are to the page
    beside the folder.

    Returns:
        The names of all policies.
    """
    from ..policies import registered

    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Privacy cards\n"]
    for name, cls in registered().items():
        found = _played(_instances(cls, None, None, first=True)[0], (audits or {}).get(name))
        (folder / f"{name}.md").write_text(found.markdown("../errata.md"), encoding="utf-8")
        (folder / f"{name}.html").write_text(found.html(), encoding="utf-8")
        lines.append(f"* [{name}]({name}.md): {found.title}")
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(registered())


def _bounds_of(policy: Policy) -> list[str]:
    """The bounds of a policy for stationary arms with any gaps."""
    from ..theory import label_of, promises

    width = policy.reward_range[1] - policy.reward_range[0]
    gaps = [width * arm / policy.n_arms for arm in range(policy.n_arms)]
    found = promises(policy, gaps, [10**6])
    return [f"{label_of(one.bound)}: {one.bound.name}" for one in found if one.says_something]


def _instances(
    cls: type[Policy], budget: str | None, noise: Noise | None, *, first: bool = False
) -> list[Policy]:
    """Small instances, with this budget or one of each notion."""
    from ..studies.cautions import cautions

    budgets: list[Any] = [budget_of(budget)] if budget else cls.example_budgets() or [None]
    if first:
        del budgets[1:]
    announce_compilation()
    made = [_instance(cls, one, noise) for one in budgets]
    if found := cautions(budgets):
        warnings.warn(" ".join(found), BudgetWarning, stacklevel=1)
    return made


def _instance(cls: type[Policy], budget: Any, noise: Noise | None) -> Policy:
    # As whoever trusts nobody runs it: what people's devices send is all that it sees.
    sent = {name: True for name in ("reports", "messages") if name in signature(cls).parameters}

    def made(kind: Noise) -> Policy:
        return cls(**{**cls.example, **sent}, budget=budget, noise=kind.value)

    try:
        return made(noise or _noise(cls))
    except ArgumentError as error:
        if noise or error.argument != "noise":
            raise
        return made(Noise.simulation)  # secure noise is drawn on people's devices alone


def _noise(cls: type[Policy]) -> Noise:
    """The best noise there is."""
    secure = find_spec("opendp") and not cls.card.refuted_because
    return Noise.secure if secure else Noise.simulation


def _played(policy: Policy, audit: Audit | Finding | None = None) -> PrivacyCard:
    if not policy.takes_reports:
        play(policy, _ROUNDS)
    return policy.card_page(audit)


def _print(card: PrivacyCard) -> None:
    from rich.text import Text

    console = new_console()
    console.print(Text.assemble(("Privacy card", "bold"), f" {card.title}"))
    console.print(card.policy, soft_wrap=True)
    print_sections(console, card.sections)
