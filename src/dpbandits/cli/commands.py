"""The commands.  They import slow modules inside their functions: ``dpbandits list`` answers at
once.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import __version__
from ..errors import StudyError
from ..rooms import papers
from .audit import audit
from .check_policy import check_policy
from .demo_parties import demo_parties
from .estimate import estimate
from .evaluate import evaluate
from .evaluate_privately import evaluate_privately
from .exact import exact
from .first_run import announce_compilation
from .inputs import WRONG_INPUT, AsJson, Cluster, clear_errors, dated
from .kept import conclude, decided, inspect, intervals, restore
from .merge import merge
from .plan import plan
from .promises import card, explain
from .serve import keys, serve
from .shuffle import shuffle
from .tables import new_console, new_table, print_claims, print_json, print_results
from .theory import theory
from .warm import warm

if TYPE_CHECKING:
    from ..policies import Policy
    from ..report.record import StudyRecord
    from ..studies import Study
    from ..studies.cells import Cell
    from ..studies.engines import Engine
    from ..studies.orders import Origin

_KEPT = "Interrupted: finished parts are kept beside the output, and the same command continues."


# What ``papers.reproduce`` can run, which is imported only where it is needed.
PAPERS = ("adversarial", "concentrated", "dgs", "equal-budget", "glm", "shuffle")

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

StudyFile = Annotated[Path, Argument(metavar="STUDY.toml", help="A study file.")]
Output = Annotated[
    Path | None,
    Option(help="Folder to write. Default: a new folder here, named after the study and the time."),
]


def _job_count(jobs: int) -> int:
    from ..simulation.parallel import MOST_JOBS

    if jobs != -1 and not 1 <= jobs <= MOST_JOBS:
        raise typer.BadParameter(
            f"must be -1, for one process per core, or between 1 and {MOST_JOBS}, got {jobs}"
        )
    return jobs


Jobs = Annotated[int, Option(callback=_job_count, help="Number of processes; -1 for one per core.")]
Force = Annotated[
    bool,
    Option(
        "--force",
        help="Replace the report, figures and data of an earlier run. Refused if the folder"
        " holds other files.",
    ),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bandits that keep the people behind the rewards private."""


@app.command("list")
def list_policies(as_json: AsJson = False) -> None:
    """Show every policy: budgets, trust, protected data, source, and where it is the default."""
    from ..policies import DEFAULTS, registered

    rows = [_card(name, cls) for name, cls in registered().items()]
    if as_json:
        print_json(rows)
        return
    table = new_table("policy", "budgets", "trust", "protects", "source")
    table.columns[0].no_wrap = True
    # All that a person contributes: the full words would wrap every line.
    short = {None: "nothing", "contexts and rewards": "records"}
    for row in rows:
        name = row["policy"] + (" *" if row["default_for"] else "")
        protected = short.get(row["protects"], row["protects"])
        said = (row["trust_model"], protected, _authors(row["source"]))
        table.add_row(name, _notions(row["budgets"]), *said)
    console = new_console()
    console.print(table)
    console.print("\n* the default for this setting and trust model")
    for one in DEFAULTS:
        console.print(f"  {one.setting}, {one.trust}: {one.call}")


_COMMANDS = (
    *(explain, card, check_policy, inspect, intervals, decided, conclude, restore, estimate),
    *(evaluate, evaluate_privately),
    *(plan, theory, exact, audit, warm, merge, serve, shuffle, demo_parties),
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(keys, name="keys")


@app.command()
def check(study_file: StudyFile, as_json: AsJson = False) -> None:
    """Check a study file and list all its mistakes."""
    from ..studies import load_study

    with clear_errors():
        try:
            study = load_study(study_file, before_policies=announce_compilation)
        except StudyError as error:
            if as_json:
                print_json({"study": str(study_file), "problems": error.problems})
                raise typer.Exit(WRONG_INPUT) from None
            raise
    if as_json:
        print_json({"study": str(study_file), "problems": [], "size": _size(study)})
    else:
        typer.echo(f"{study_file} is in order: {_size(study)}.")


@app.command()
def run(
    study_file: StudyFile,
    output: Output = None,
    jobs: Jobs = -1,
    seed: Annotated[int | None, Option(help="The seed. Default: the study's.")] = None,
    runs: Annotated[int | None, Option(help="Number of runs. Default: the study's.")] = None,
    first_run: Annotated[
        int | None,
        Option(
            help="Number of the first run. `dpbandits merge` joins the results with those of"
            " other runs."
        ),
    ] = None,
    cluster: Cluster = None,
    quick: Annotated[
        bool, Option("--quick", help="Try the study with 5 runs of at most 10,000 rounds.")
    ] = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run a study and write a folder with report, figures and data.

    Finished parts survive an interrupt: run the command again, with the same --output, to
    continue.
    """
    from ..studies import load_study

    with clear_errors(_KEPT):
        study = load_study(study_file, before_policies=announce_compilation)
        if quick:
            study = study.quick()
        given = {"seed": seed, "runs": runs, "first_run": first_run}
        changes = {name: value for name, value in given.items() if value is not None}
        altered = study.altered(**changes) if changes else study
        target = output or dated(study_file.stem)
        _run(altered, study_file, target, jobs, cluster, force, as_json)


@app.command()
def demo(
    output: Annotated[
        Path | None, Option(help="Folder to write. Default: dpbandits-demo-<time>.")
    ] = None,
    jobs: Jobs = -1,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run the shipped study: simulate private choices of treatment with the data of a real HIV
    trial.
    """
    from ..studies import DEMO, load_study

    with clear_errors(_KEPT):
        study = load_study(DEMO, before_policies=announce_compilation)
        _run(study, DEMO, output or dated("dpbandits-demo"), jobs, None, force, as_json)


def _paper(name: str) -> str:
    if name not in PAPERS:
        from ..validation import close_name

        raise typer.BadParameter(f"there is no {name!r}; {close_name(name, PAPERS)}")
    return name


@app.command()
def reproduce(
    paper: Annotated[
        str,
        Argument(metavar="PAPER", callback=_paper, help=f"The paper: {', '.join(PAPERS)}."),
    ],
    quick: Annotated[
        bool,
        Option(
            "--quick",
            help="Run a small version of everything. Its verdicts may differ from those of the"
            " full size.",
        ),
    ] = False,
    full: Annotated[
        bool,
        Option(
            "--full",
            help="Run all experiments in full. Without --full, some are shorter than in the paper.",
        ),
    ] = False,
    runs: Annotated[
        int | None, Option(min=1, help="Number of runs. Default: each experiment's own.")
    ] = None,
    horizon: Annotated[
        int | None, Option(min=1, help="Number of rounds. Default: each experiment's own.")
    ] = None,
    jobs: Jobs = -1,
    seed: Annotated[
        int, Option(min=0, help="The seed of everything, including random instances.")
    ] = 1,
    data: Annotated[
        Path | None,
        Option(
            help="Folder with the files of Last.fm or MovieLens. Without it, experiments on"
            " these data are left out."
        ),
    ] = None,
    cluster: Cluster = None,
    output: Output = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Run the experiments of a paper again, and say which of its claims hold.

    Finished parts survive an interrupt: run the command again, with the same --output, to
    continue.
    """
    with clear_errors(_KEPT):
        announce_compilation()
        typer.echo("Preparing the experiments.", err=True)
        size = papers("plans").Size(
            quick=quick, full=full, runs=runs, horizon=horizon, seed=seed, data=data
        )
        _reproduce(paper, size, output or dated(paper), jobs, cluster, force, as_json)


def _reproduce(
    paper: str,
    size: Any,
    target: Path,
    jobs: int,
    cluster: str | None,
    force: bool,
    as_json: bool,
) -> None:
    from ..studies.orders import of_paper

    reproduction = papers("reproduce")
    plan = reproduction.PAPERS[paper](size)
    heading, again = f"{plan.title}: {len(plan.cells)} simulations.", partial(_planned, paper, size)
    engine = _engine(jobs, cluster, partial(of_paper, paper, size))
    measured = partial(reproduction.reproduce, plan, size, engine=engine)
    record = _carried_out(heading, plan.cells, again, measured, target, jobs, cluster, force)
    print_claims(record, target, as_json)


def _engine(jobs: int, cluster: str | None, origin: Callable[[], Origin]) -> Engine:
    from ..studies.engines import Dask, Processes

    return Processes(jobs) if cluster is None else Dask(cluster, origin())


def _run(
    study: Study,
    file: Path,
    target: Path,
    jobs: int,
    cluster: str | None,
    force: bool,
    as_json: bool,
) -> None:
    from ..studies.cells import cells_of
    from ..studies.orders import of_study
    from ..studies.output import final_table
    from ..studies.run import run_study

    engine = _engine(jobs, cluster, partial(of_study, study))
    heading, again = f"{study.title}: {_size(study)}.", partial(_read, file)
    measured = partial(run_study, study, engine=engine)
    record = _carried_out(heading, cells_of(study), again, measured, target, jobs, cluster, force)
    print_results(record, final_table(record), target, as_json)


def _planned(paper: str, size: Any) -> Sequence[Cell]:
    return papers("reproduce").PAPERS[paper](size).cells


def _read(study_file: Path) -> Sequence[Cell]:
    from ..studies import load_study
    from ..studies.cells import cells_of

    return cells_of(load_study(study_file))


def _carried_out(
    heading: str,
    cells: Sequence[Cell],
    again: Callable[[], Sequence[Cell]],
    measure: Callable[..., StudyRecord],
    target: Path,
    jobs: int,
    cluster: str | None,
    force: bool,
) -> StudyRecord:
    """Compute the cells, continuing where an earlier run was cut short, and write the folder.

    ``again`` makes the cells once more, in another process.
    """
    from ..studies.cells import kept, stages
    from ..studies.output import result_folder, write_results
    from .compiling import compiling_ahead
    from .progress import StudyProgress

    started, talk = datetime.now(UTC), new_console(stderr=True)
    with kept(cells, target), result_folder(target, force=force) as folder:
        talk.print(heading)
        ahead = nullcontext() if cluster else compiling_ahead(again, jobs)
        with ahead, StudyProgress(talk, stages(cells)) as progress:
            record = measure(beside=target, progress=progress)
        talk.print("Writing the report.")
        command = ["dpbandits", *sys.argv[1:]]
        own = 1 if cluster else jobs  # processes of this machine
        write_results(folder, record, started=started, n_jobs=own, command=command)
    return record


def _card(name: str, cls: type[Policy]) -> dict[str, Any]:
    from ..policies import DEFAULTS

    card = cls.card
    private = bool(card.noise) and not card.refuted_because
    return {
        "policy": name,
        "title": card.title,
        "budgets": [kind.key for kind in card.notions],
        "trust_model": "void" if card.refuted_because else card.trust_model,
        "protects": card.protects if private else None,
        "view": card.view if private else None,
        "source": card.source,
        "default_for": [f"{d.setting}, {d.trust} trust" for d in DEFAULTS if d.policy == name],
    }


def _notions(taken: Sequence[str]) -> str:
    """Keys of notions, in few words."""
    from ..privacy.budgets import NOTIONS

    others = [key for key in NOTIONS if key not in taken]
    if len(others) > 1:
        return ", ".join(taken) or "-"
    return f"all but {others[0]}" if others else "all"


def _authors(source: str) -> str:
    """The beginning of a source, up to the year."""
    found = re.match(r".*?\(\d{4}\)", source)
    return found[0] if found else source


def _size(study: Study) -> str:
    def counted(n: int, one: str, many: str) -> str:
        return f"{n} {one if n == 1 else many}"

    worlds = len(study.environments) + (study.log is not None)
    met = counted(worlds, "environment", "environments")
    played = counted(len(study.policies), "policy", "policies")
    return f"{met} x {played} x {counted(study.runs, 'run', 'runs')} of {study.horizon:,} rounds"


# Typer keeps the line breaks of later paragraphs, and would wrap each of their lines again.
for entry in app.registered_commands:
    paragraphs = cleandoc((entry.callback and entry.callback.__doc__) or "").split("\n\n")
    entry.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)
