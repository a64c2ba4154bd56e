"""Wall: what decides cannot see raw rewards, imports point down, and only the wall draws noise."""

from __future__ import annotations

import ast
import graphlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from suite import BY_FAMILY, CASES, FIRST_OF_CLASS, Case, over

import dpbandits
from dpbandits.kernel import plain
from dpbandits.testing import wall
from dpbandits.testing.walk import Walk, scratch_of

SOURCE = Path(dpbandits.__file__).parent


@over(FIRST_OF_CLASS)
def test_kernels_take_what_the_protocol_says_and_nothing_else(case: Case):
    assert set(vars(case.cls.kernels)) - {"skips_closed"} == set(wall.ARGUMENTS)
    wall.kernels_take_their_arguments(case.cls.kernels)


@over(BY_FAMILY)
def test_the_two_sides_share_no_memory(case: Case):
    wall.sides_share_no_memory(case.make)


@over(FIRST_OF_CLASS)
@given(seed=st.integers(0, 2**32 - 1), noise=st.sampled_from([0.0, 1.0, 1e6]))
@settings(max_examples=10)
def test_deciding_changes_nothing(case: Case, seed: int, noise: float):
    wall.deciding_changes_nothing(case.make, seed, noise)


@over(BY_FAMILY)
def test_kernels_have_no_randomness_of_their_own(case: Case):
    wall.randomness_comes_from_rng(case.make)


def has_scratch(side: Any) -> bool:
    """Whether a type of nested tuples has working memory, or kept values, somewhere."""
    parts = get_type_hints(side) if hasattr(side, "_fields") else {}
    return not parts.keys().isdisjoint(("scratch", "cache")) or any(
        map(has_scratch, parts.values())
    )


# As the annotations say, so that nothing is compiled where tests are collected.
WITH_SCRATCH = [
    case
    for case in CASES
    if has_scratch(get_args(get_type_hints(plain(case.cls.kernels.init))["return"])[1])
]


@over(CASES)
def test_annotations_tell_who_has_scratch(case: Case):
    assert (case in WITH_SCRATCH) == bool(scratch_of(case.make().new_state().public))


@over(CASES)
def test_cards_tell_the_noise(case: Case):
    assert type(case.make().channel) is type(case.noise)


@over(WITH_SCRATCH)
def test_nobody_reads_what_an_earlier_call_left_in_scratch(case: Case):
    wall.nobody_reads_old_scratch(case.make)


def test_a_kernel_that_reads_old_scratch_is_noticed():
    policy = next(case for case in WITH_SCRATCH if case.name == "PrivateLinUCB").make()

    def publish(params, public, memo, release):
        public.estimate[:] = public.scratch[0, 0]

    walk = Walk(policy, spoil=True, kernels=replace(policy.driven, publish=publish))
    walk.until(1, lambda first, arm, n: [1.0])
    assert np.isnan(walk.public.estimate).all()


def test_a_choice_that_changes_the_public_side_is_noticed():
    policy = dpbandits.papers.concentrated.AdaCUCB(3, budget=None)

    def choose(params, public, contexts, rng):
        public.clock[0] += 1
        return 0, 1.0

    walk = Walk(policy, kernels=replace(policy.kernels, choose=choose))
    with pytest.raises(AssertionError, match="choose changes the public side"):
        walk.step(lambda first, arm, n: [0.0])


# Rooms ---------------------------------------------------------------------------------------

# What each room may import: everything to its left in these rows, and itself.
_UP = [
    "errors",
    "rooms",
    "validation",
    "constraints",
    "tables",
    "source",
    "html",
    "folders",
    "compiling",
    "kernel_cache",
    "kernel",
    "calls",
    "privacy",
    "finite",
    "glm",
    "shuffle",
    "stores",
    "inference",
    "protocol",
    "session",
    "policies",
    "inspection",
    "conclusions",
    "logs",
    "evaluation",
    "algorithms",
    "parts",
    "door",
    "simulation",
    "auditing",
    "theory",
    "testing",
    "report",
    "planning",
    "studies",
    "service",
    "shuffler",
    "demonstration",
    "cli",
]
BELOW = {room: set(_UP[: i + 1]) for i, room in enumerate(_UP)}
BELOW["environments"] = {
    "errors",
    "rooms",
    "validation",
    "constraints",
    "tables",
    "kernel",
    "glm",
    "environments",
}
BELOW["client"] = {"errors", "client"}  # which loads neither numba nor NumPy
BELOW["shuffler"] |= {"client"}
BELOW["device"] = set(_UP[: _UP.index("algorithms") + 1]) | {"client", "device"}
BELOW["demonstration"] |= {"client", "device"}  # it plays all parties
BELOW["plotting"] = {"errors", "validation", "privacy", "plotting"}
for _room in _UP[_UP.index("simulation") :]:
    BELOW[_room] |= {"environments", "plotting"}
# What reproduces papers imports the core, all but the command line; nothing imports it.
BELOW["papers"] = BELOW["studies"] | {"papers"}
TOP = {"__init__", "__main__"}
DOOR = "rooms.py"  # alone knows where papers are
ROOMS = {path.name for path in (SOURCE / "papers").iterdir() if path.is_dir()}
# People who do not exist, as in environments.
SIMULATED = ("papers/glm/designs.py", "demonstration/people.py")
# What families of algorithms share, each to be used by those to its right and by families.
SHARED_BY_FAMILIES = ("maths", "exploration", "bases")
GENERALISED = {
    "exp4": ("adversarial",),
    "glm": ("hidden",),
    "search": ("arms",),
}

SAMPLERS = {name for name in dir(np.random.Generator) if not name.startswith("_")} - {
    "bit_generator",
    "spawn",
    "choice",
}
NOISE = {
    "standard_normal",
    "normal",
    "laplace",
    "standard_exponential",
    "exponential",
    "gumbel",
    "logistic",
    "standard_t",
}
NO_NOISE = {"integer_counter", "standard_normal"}  # which draws choices of devices from bytes
RANDOM_MODULES = {"random", "secrets", "opendp", "dp_accounting"}


def violations(path: str, source: str) -> list[str]:
    """What a file of the package, named relative to it, does against the order of the rooms."""
    module = path.removesuffix(".py").split("/")
    room, tree = module[0], ast.parse(source)
    if room in TOP:
        return []
    algorithm = room == "algorithms" or (room == "papers" and _is_of_a_policy(tree, module))
    found = []
    for node in ast.walk(tree):
        for target, names in _imports(node, module):
            if target[0] not in BELOW.get(room, set()):
                found.append(f"{path} imports {'.'.join(target)}")
            if target[0] == "papers" == room and len(module) > 2:
                others = {*target[1:2], *([] if target[1:] else names)} & ROOMS - {module[1]}
                found += [f"{path} imports another paper's room {other}" for other in others]
            if algorithm:
                found += [f"{path} {complaint}" for complaint in _from_the_wall(target, names)]
            if room == "algorithms":
                found += [f"{path} {complaint}" for complaint in _sideways(module, target)]
        if room != "papers" and path != DOOR and _names_papers(node):
            found.append(f"{path} names a module of papers")
    if algorithm or room in ("protocol", "session", "policies", "inspection", "logs"):
        found += [f"{path} {complaint}" for complaint in _draws(tree, algorithm)]
    elif room not in ("privacy", "shuffle", "environments", "testing") and path not in SIMULATED:
        calls = (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in NOISE
        )
        found += [f"{path} draws {call.attr}" for call in calls]
    return found


def _imports(node: ast.AST, module: list[str]) -> list[tuple[list[str], list[str]]]:
    """The package's own modules that a statement imports, as paths, with the names taken from each."""
    if isinstance(node, ast.Import):
        return [
            (a.name.split(".")[1:] or ["__init__"], [])
            for a in node.names
            if a.name.split(".")[0] == "dpbandits"
        ]
    if not isinstance(node, ast.ImportFrom):
        return []
    names = [alias.name for alias in node.names]
    absolute = (node.module or "").split(".")
    if node.level == 0:
        base = absolute[1:] if absolute[0] == "dpbandits" else None
    else:
        base = module[: len(module) - node.level] + [part for part in absolute if part]
    if base is None:
        return []
    return [(base, names)] if base else [([name], []) for name in names if name != "__version__"]


def _is_of_a_policy(tree: ast.AST, module: list[str]) -> bool:
    """Whether a paper's file has a policy or its kernels, and is no environment."""
    taken = [(target, names) for node in ast.walk(tree) for target, names in _imports(node, module)]
    if any(target[0] == "environments" for target, _ in taken):
        return False
    return any(
        {"kernel", "register"} & set(names)
        for target, names in taken
        if target[0] in ("kernel", "policies")
    )


def _names_papers(node: ast.AST) -> bool:
    """Whether it is a text by which a module of papers could be imported."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"(dpbandits)?\.+papers(\.\w+)*", node.value) is not None
    )


def _from_the_wall(target: list[str], names: list[str]) -> list[str]:
    """From the wall algorithms take classes and constants, never what adds noise."""
    return [
        f"takes {name} from the wall"
        for name in names
        if target[0] == "privacy" and not name[0].isupper() and name not in NO_NOISE
    ]


def _sideways(module: list[str], target: list[str]) -> list[str]:
    """Families of algorithms use what all share, and no other family but one that they
    generalise.
    """
    complaints = []
    if target[0] == "algorithms" and module[1] != "__init__":
        family, used = module[1], target[1] if len(target) > 1 else ""
        shared = SHARED_BY_FAMILIES
        below = shared[: shared.index(family) + 1] if family in shared else (family, *shared)
        below += GENERALISED.get(family, ())
        if used not in below:
            complaints.append(f"imports its neighbour {'.'.join(target)}")
    return complaints


def _draws(tree: ast.AST, algorithm: bool) -> list[str]:
    """Random numbers are drawn from the ``rng`` of a ``choose`` or ``preprocess_contexts`` kernel: exploration,
    which no reward enters.

    Policies carry generators, so that they may name their types; they draw nothing.
    """
    complaints = []
    allowed = {
        id(node)
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        and f.name.startswith(("prepare", "choose", "preprocess_contexts"))
        and "rng" in [a.arg for a in f.args.args]
        for node in ast.walk(f)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "rng"
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", "") in SAMPLERS
            and id(node.func) not in allowed
        ):
            complaints.append(f"draws {node.func.attr}")
        if (
            algorithm
            and isinstance(node, ast.Attribute)
            and node.attr == "random"
            and isinstance(node.value, ast.Name)
            and node.value.id == "np"
        ):
            complaints.append("uses np.random")
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in node.names]
            )
            level = getattr(node, "level", 0)
            complaints += [
                f"imports {name}"
                for name in imported
                if level == 0 and name.split(".")[0] in RANDOM_MODULES
            ]
    return complaints


def sources() -> dict[str, str]:
    """Every file of the package, by its path within."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in SOURCE.rglob("*.py")
    }


def circle(files: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle, be it late or for type hints only; empty if there
    is none.
    """
    modules = {
        tuple(path.removesuffix(".py").removesuffix("/__init__").split("/")) for path in files
    }
    graph: dict[str, set[str]] = {}
    for path, source in files.items():
        module = path.removesuffix(".py").split("/")
        own = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        used = graph.setdefault(own, set())
        for node in ast.walk(ast.parse(source)):
            for target, names in _imports(node, module):
                # ``from .room import name``: a module of the room, or something in it
                for found in [(*target, name) for name in names] or [tuple(target)]:
                    hit = found if found in modules else tuple(target)
                    used.add(".".join(hit))
        used.discard(own)
    graph.pop("__init__", None)  # the package itself, which everything is a part of
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle():
    assert circle(sources()) == []


@pytest.mark.parametrize(
    "late",
    [
        "from .privacy import noise",
        "def f():\n    from .privacy.noise import g",
        "if TYPE_CHECKING:\n    from .privacy.noise import g",
    ],
)
def test_a_planted_circle_is_found(late: str):
    files = {
        "privacy/__init__.py": "",
        "privacy/noise.py": "from ..kernel import f",
        "kernel.py": "",
    }
    assert circle(files) == []
    assert set(circle({**files, "kernel.py": late})) == {"kernel", "privacy.noise"}


def test_imports_point_down_and_only_the_wall_draws_noise():
    files = sources()
    assert "algorithms/arms/arms.py" in files
    assert "papers/dgs/policy.py" in files
    assert [
        complaint
        for path, source in sorted(files.items())
        for complaint in violations(path, source)
    ] == []


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("algorithms/new.py", "from ..simulation import simulate", "imports simulation"),
        (
            "algorithms/new.py",
            "from dpbandits.environments import Bernoulli",
            "imports environments",
        ),
        ("algorithms/new.py", "from .stepwise import publish", "neighbour algorithms.stepwise"),
        (
            "algorithms/maths/ridge.py",
            "from ..bases.linear import estimate",
            "neighbour algorithms.bases.linear",
        ),
        (
            "algorithms/bases/linear.py",
            "from ..exp4.weighing import weigh",
            "neighbour algorithms.exp4",
        ),
        (
            "algorithms/new.py",
            "from ..privacy.channels import add_noise",
            "takes add_noise from the wall",
        ),
        (
            "simulation/results.py",
            "def plot(self):\n    from ..report.figures import regret_curves",
            "imports report",
        ),
        (
            "simulation/results.py",
            "if TYPE_CHECKING:\n    from ..report import figures",
            "imports report",
        ),
        ("plotting/curves.py", "from ..simulation.results import Result", "imports simulation"),
        (
            "algorithms/new.py",
            "def publish(params, public, release, rng):\n    x = rng.normal()",
            "draws normal",
        ),
        ("algorithms/new.py", "import numpy as np\nx = np.random.default_rng()", "uses np.random"),
        (
            "algorithms/new.py",
            "def choose(params, rng):\n    return other.laplace()",
            "draws laplace",
        ),
        ("algorithms/new.py", "import secrets", "imports secrets"),
        ("policies/policy.py", "from ..algorithms import AdaCUCB", "imports algorithms"),
        (
            "policies/policy.py",
            "def pull(self):\n    from ..simulation import simulate",
            "imports simulation",
        ),
        ("privacy/ledger.py", "from ..policies import Policy", "imports policies"),
        ("environments/new.py", "from .. import policies", "imports policies"),
        ("simulation/loops.py", "from ..report import page", "imports report"),
        ("simulation/loops.py", "def f(rng):\n    return rng.laplace()", "draws laplace"),
        ("kernel.py", "import dpbandits.privacy", "imports privacy"),
        ("attic/new.py", "from ..kernel import kernel", "imports kernel"),
        ("algorithms/new.py", "from ..papers.dgs import LinUCBDGS", "imports papers.dgs"),
        ("theory/new.py", "import dpbandits.papers", "imports papers"),
        ("cli/new.py", "def f():\n    from ..papers import dgs", "imports papers"),
        ("cli/new.py", 'import_module("dpbandits.papers.dgs")', "names a module of papers"),
        ("papers/dgs/new.py", "from ...cli import app", "imports cli"),
        ("papers/dgs/new.py", "from ..glm import plan", "another paper's room glm"),
        ("papers/dgs/new.py", "from .. import glm", "another paper's room glm"),
        (
            "papers/dgs/new.py",
            "from ...policies import register\nfrom ...privacy.channels import add_noise",
            "takes add_noise from the wall",
        ),
        (
            "papers/dgs/new.py",
            "from ...kernel import kernel\n@kernel\ndef f(rng):\n    x = rng.random()",
            "draws random",
        ),
    ],
)
def test_a_planted_import_across_the_wall_is_caught(path: str, source: str, complaint: str):
    assert any(complaint in found for found in violations(path, source)), violations(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "algorithms/new.py",
            (
                "from .maths.ridge import update\nfrom ..policies import Policy\nfrom"
                " ..privacy.ledger import WHOLE"
            ),
        ),
        (
            "algorithms/new.py",
            "def choose_beta(params, public, contexts, rng):\n    return rng.beta(1.0, 1.0)",
        ),
        ("algorithms/__init__.py", "from .doubling import AdaCUCB"),
        (
            "simulation/results.py",
            "def plot(self):\n    from ..plotting.curves import regret_curves",
        ),
        ("cli.py", "from .studies import run\nfrom . import environments"),
        (
            "papers/dgs/new.py",
            "from ...algorithms.linear import LinUCB\nfrom ...environments import Bernoulli",
        ),
        ("papers/theories.py", "from .dgs import theory"),
        ("papers/dgs/new.py", "from ..plans import figure\nfrom .. import plans"),
    ],
)
def test_what_the_order_allows_passes(path: str, source: str):
    assert violations(path, source) == []
