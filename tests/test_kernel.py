"""The kernel cache: never stale, never in the way.  Each test is a trap that a user of numba's own
cache meets.
"""

import os
import subprocess
import sys
import textwrap
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from numba import typeof

import dpbandits
from dpbandits.kernel import _describe_type, bind, digest_of, kernel, plain, unbound
from dpbandits.policies.protocol import registered

SOURCE = Path(dpbandits.__file__).parents[1]
NO_COMPILER = """
import numba.core.compiler, numba.core.dispatcher
def refuse(*args, **kwargs):
    raise AssertionError("compiled " + str(args[2:3]))
numba.core.compiler.compile_extra = refuse
"""
POLICY = """
import dpbandits
from dpbandits.environments import Bernoulli
policy = dpbandits.AdaCUCB(2, budget=dpbandits.ZCDP(1.0), seed=1)
for i in range(8):
    policy.update(policy.pull().arm)
result = dpbandits.simulate(policy, Bernoulli([0.9, 0.1]), horizon=500, runs=2, seed=3)
print(policy.pull().arm, policy.ledger.frame.to_csv(), result.frame.regret.tolist(), result.runs.spent.tolist())
"""


def command(folder: Path, script: str, cache: Path | str, **environment: str) -> subprocess.Popen:
    if "import dpbandits" not in script:
        # The package without its __init__, which would import everything: most traps need nothing
        # but kernel.py.
        (folder / "dpbandits").mkdir(exist_ok=True)
        (folder / "dpbandits" / "__init__.py").write_text(
            f"__path__ = [{str(SOURCE / 'dpbandits')!r}]"
        )
    paths = os.pathsep.join((str(folder), str(SOURCE)))
    return subprocess.Popen(
        [sys.executable, "-B", "-c", textwrap.dedent(script)],
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "DPBANDITS_CACHE_DIR": str(cache),
            "NUMBA_DISABLE_JIT": "0",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def run(folder: Path, script: str, cache: Path | str | None = None, **environment: str) -> str:
    return finish(
        command(folder, script, cache if cache is not None else folder / "cache", **environment)
    )


def entries(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache in which one policy, its steps and its loop have been compiled, and what the policy
    printed.
    """
    folder = tmp_path_factory.mktemp("warm")
    return folder, run(folder, POLICY)


def test_the_second_process_compiles_nothing(warm):
    folder, first = warm
    before = entries(folder / "cache")
    assert len(before) > 10
    assert run(folder, NO_COMPILER + POLICY) == first
    assert entries(folder / "cache") == before


def test_the_compiler_that_is_refused_is_the_one_in_use(tmp_path):
    process = command(tmp_path, NO_COMPILER + POLICY, tmp_path / "cache")
    assert "AssertionError: compiled" in process.communicate(timeout=300)[1]


def test_plain_python_runs_the_same_code(warm):
    folder, compiled = warm
    assert run(folder, NO_COMPILER + POLICY, NUMBA_DISABLE_JIT="1") == compiled


CALLEE = (
    "from dpbandits.kernel import kernel\nSCALE = {scale}\n@kernel\ndef inner(x{default}):\n   "
    " return {body}\n"
)
CALLER = (
    "from dpbandits.kernel import kernel\nfrom callee import inner\n@kernel\ndef outer(x):\n   "
    " return inner(x) + 1\n"
)


def test_a_change_of_a_callee_in_another_file_is_seen(tmp_path):
    (tmp_path / "caller.py").write_text(CALLER)
    versions = [
        ({"scale": 2, "default": "", "body": "SCALE * x"}, "21"),
        ({"scale": 3, "default": "", "body": "SCALE * x"}, "31"),
        ({"scale": 3, "default": "", "body": "SCALE - x"}, "-6"),
        ({"scale": 3, "default": ", y=4", "body": "x + y"}, "15"),
        ({"scale": 3, "default": ", y=5", "body": "x + y"}, "16"),
        ({"scale": "(1, 2)", "default": "", "body": "SCALE[1] * x"}, "21"),
        ({"scale": "(1, 3)", "default": "", "body": "SCALE[1] * x"}, "31"),
    ]
    script = "from caller import outer; print(outer(10))"
    for version, expected in versions:
        (tmp_path / "callee.py").write_text(CALLEE.format(**version))
        assert run(tmp_path, script) == expected
    assert run(tmp_path, NO_COMPILER + script) == expected


def test_a_constant_that_changes_after_its_kernel_does_not_poison_the_cache(tmp_path):
    (tmp_path / "callee.py").write_text(CALLEE.format(scale=2, default="", body="SCALE * x"))
    assert run(tmp_path, "import callee; callee.SCALE = 7; print(callee.inner(10))") == "20"
    assert run(tmp_path, "from callee import inner; print(inner(10))") == "20"


STATE = """
from typing import NamedTuple
from dpbandits.kernel import kernel
class State(NamedTuple):
    {first}: float
    {second}: float
@kernel
def read(state):
    return state.left
"""


def test_swapped_fields_of_a_named_tuple_are_seen(tmp_path):
    script = "from state import State, read; print(read(State(right=2.0, left=1.0)))"
    for first, second in (("left", "right"), ("right", "left")):
        (tmp_path / "state.py").write_text(STATE.format(first=first, second=second))
        assert run(tmp_path, script) == "1.0"


def test_a_renamed_field_changes_the_digest_of_whoever_builds_the_tuple(tmp_path):
    source = STATE + "@kernel\ndef build(x):\n    return State(x, 2.0)\n"
    digests = set()
    for second in ("right", "other"):
        (tmp_path / "state.py").write_text(source.format(first="left", second=second))
        digests.add(
            run(
                tmp_path,
                "from state import build; from dpbandits.kernel import digest_of;"
                " print(digest_of(build))",
            )
        )
    assert len(digests) == 2


def test_types_are_told_apart_by_their_fields_at_any_depth():
    One, Other = namedtuple("State", "a b"), namedtuple("State", "b a")
    one, other = One(1.0, 2.0), Other(1.0, 2.0)
    assert _describe_type(typeof(one)) != _describe_type(typeof(other))
    assert _describe_type(typeof((1, (one,)))) != _describe_type(typeof((1, (other,))))
    assert _describe_type(typeof((1, 2.0))) != _describe_type(typeof((1, 2)))


def test_a_class_of_a_script_is_not_mistaken_for_its_like(tmp_path):
    script = (
        STATE.format(first="left", second="right")
        + "print(read(State(1.0, 2.0)), type(State(1.0, 2.0)) is State)"
    )
    assert run(tmp_path, script) == run(tmp_path, script) == "1.0 True"


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "flipped", "directory"])
def test_a_damaged_entry_is_a_miss(tmp_path, damage):
    (tmp_path / "callee.py").write_text(CALLEE.format(scale=2, default="", body="SCALE * x"))
    script = "from callee import inner; print(inner(10))"
    assert run(tmp_path, script) == "20"
    (entry,) = (path for path in entries(tmp_path / "cache") if b"inner" in path.read_bytes())
    content = entry.read_bytes()
    if damage == "directory":
        entry.unlink()
        entry.mkdir()
    else:
        flipped = content[:100] + bytes([content[100] ^ 1]) + content[101:]
        entry.write_bytes(
            {"empty": b"", "cut": content[:-7], "garbage": b"\x80" * 999, "flipped": flipped}[
                damage
            ]
        )
    assert run(tmp_path, script) == "20"
    if damage != "directory":  # and it has been mended
        assert run(tmp_path, NO_COMPILER + script) == "20"
    assert not list((tmp_path / "cache").rglob("tmp*"))


@pytest.mark.parametrize("place", ["below a file", "/proc/nowhere"])
def test_without_a_writable_folder_everything_works_uncached(tmp_path, place):
    (tmp_path / "callee.py").write_text(CALLEE.format(scale=2, default="", body="SCALE * x"))
    (tmp_path / "file").write_text("")
    cache = place if place.startswith("/") else tmp_path / "file" / "cache"
    assert run(tmp_path, "from callee import inner; print(inner(10))", cache) == "20"


LOOPS = """
import sys
from dpbandits.kernel import bind, kernel, unbound
step = unbound
@kernel
def double(x):
    return 2 * x
@kernel
def triple(x):
    return 3 * x
@kernel
def loop(x, n):
    for _ in range(n):
        x = step(x)
    return x
print([bind(loop, step=globals()[name])(1, 3) for name in sys.argv_names])
"""


def test_equally_named_loops_of_different_processes_do_not_mix(tmp_path):
    def script(*names):
        return f"import sys; sys.argv_names = {names!r}\n" + LOOPS

    assert run(tmp_path, script("double")) == "[8]"
    assert run(tmp_path, script("triple")) == "[27]"
    assert run(tmp_path, NO_COMPILER + script("triple", "double")) == "[27, 8]"


def test_processes_that_write_the_same_entry_at_once_leave_a_good_one(tmp_path):
    (tmp_path / "callee.py").write_text(CALLEE.format(scale=2, default="", body="SCALE * x"))
    script = "from callee import inner; print(inner(10))"
    at_once = [command(tmp_path, script, tmp_path / "cache") for _ in range(4)]
    assert [finish(process) for process in at_once] == ["20"] * 4
    assert run(tmp_path, NO_COMPILER + script) == "20"
    assert not list((tmp_path / "cache").rglob("tmp*"))


def test_no_two_state_classes_share_a_name():
    classes = set()
    for policy in registered().values():
        example = policy(**policy.example, budget=next(iter(policy.example_budgets()), None))
        classes |= {type(example.params)} | {type(state) for state in example.new_state()}
    names = [cls.__name__ for cls in classes]
    assert len(names) == len(set(names)) > 3


# What a kernel may use -----------------------------------------------------------------------


def plain_function(x):
    return x


STRANGE, ANYTHING, FUNCTIONS = object(), {"a": 1}, (plain_function,)
OBJECTS = np.array([object()])
TABLE = np.arange(3.0)


def calls_plain(x):
    return plain_function(x)


def uses_object(x):
    return STRANGE


def uses_dictionary(x):
    return ANYTHING


def uses_functions(x):
    return FUNCTIONS[0](x)


def uses_objects(x):
    return OBJECTS[0]


def uses_module(x):
    return os.getpid()


@pytest.mark.parametrize(
    "function",
    [calls_plain, uses_object, uses_dictionary, uses_functions, uses_objects, uses_module],
)
def test_a_global_whose_changes_could_not_be_seen_is_refused(function):
    with pytest.raises(TypeError, match=f"^{function.__name__} uses .* make it a kernel"):
        kernel(function)


def test_closures_and_names_defined_below_are_refused():
    y = 3

    def closes(x):
        return x + y

    def early(x):
        return below_this_line(x)  # noqa: F821

    with pytest.raises(TypeError, match="closes over variables"):
        kernel(closes)
    with pytest.raises(NameError, match="below_this_line, which is not defined above it"):
        kernel(early)


def test_constants_arrays_and_numpy_may_be_used():
    @kernel
    def total(x):
        return np.sum(TABLE) + x

    assert total(1.0) == 4.0
    assert plain(total)(1.0) == 4.0


hook = unbound


@kernel
def template(x):
    return hook(x) + 1


def test_templates_have_to_be_bound_and_only_where_they_have_a_place():
    @kernel
    def tenfold(x):
        return 10 * x

    bound = bind(template, hook=tenfold)
    assert bound(2) == 21
    assert digest_of(bound) != digest_of(template)
    assert digest_of(bind(template, hook=tenfold)) == digest_of(bound)
    with pytest.raises(ValueError, match="template has no place for crook"):
        bind(template, crook=tenfold)
    with pytest.raises(TypeError, match="bind it first"):
        plain(template)(2)
