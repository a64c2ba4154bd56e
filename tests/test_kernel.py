"""The kernel cache: never stale, never in the way.  Each test is a trap that a user of numba's own
cache meets.
"""

import contextlib
import dis
import io
import os
import statistics
import subprocess
import sys
import traceback
import types
from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof

import dpbandits
from dpbandits.compiling import describe_type
from dpbandits.kernel import _global_names, bind, kernel, plain, unbound
from dpbandits.policies import registered

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
policy = dpbandits.papers.concentrated.AdaCUCB(2, budget=dpbandits.ZCDP(1.0), seed=1)
for i in range(8):
    policy.update(policy.pull().arm)
result = dpbandits.simulate(policy, Bernoulli([0.9, 0.1]), horizon=500, runs=2, seed=3)
print(policy.pull().arm, policy.ledger.frame.to_csv(), result.frame.regret.tolist(), result.runs.spent.tolist())
"""


class Running(NamedTuple):
    """A script in a process of its own, and where its output comes from."""

    process: int
    output: int


def start(folder: Path, script: str, cache: Path | str | None = None) -> Running:
    """Run a script that may import from the folder, in a fork: to import numba takes ten times as
    long as most of these scripts.
    """
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this platform")
    output, writing = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        with os.fdopen(writing, "w") as out, contextlib.redirect_stdout(out):
            try:
                os.environ["DPBANDITS_CACHE_DIR"] = str(cache or folder / "cache")
                sys.path.insert(0, str(folder))
                sys.dont_write_bytecode = True
                sys.modules["__main__"] = main = types.ModuleType("__main__")
                exec(script, vars(main))
                status = 0
            except BaseException:
                traceback.print_exc(file=out)
        os._exit(status)
    os.close(writing)
    return Running(process, output)


def finish(running: Running) -> tuple[bool, str]:
    """Whether the script went well, and what it printed."""
    with os.fdopen(running.output) as pipe:
        printed = pipe.read().strip()
    return os.waitpid(running.process, 0)[1] == 0, printed


def run(folder: Path, script: str, cache: Path | str | None = None) -> str:
    good, printed = finish(start(folder, script, cache))
    assert good, printed
    return printed


def run_anew(script: str, **environment: str) -> str:
    """The same with imports and a cache as any process has them."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "NUMBA_DISABLE_JIT": "0", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def entries(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file()}


pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def printed():
    """What a policy prints whose steps and loop this process has compiled, or found."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(POLICY, {})
    return out.getvalue().strip()


@pytest.mark.long
def test_the_next_process_compiles_nothing(printed):
    assert run_anew(NO_COMPILER + POLICY) == printed


@pytest.mark.long
def test_plain_python_runs_the_same_code(printed):
    assert run_anew(NO_COMPILER + POLICY, NUMBA_DISABLE_JIT="1") == printed


ASKS_FOR_BUILTINS = """
import numpy as np
from dpbandits.kernel import kernel
@kernel
def total(x):
    return x.sum()
print(total(np.arange(4.0)))
"""


def test_methods_of_arrays_work_without_a_compiler():
    """NumPy imports their code at the first call, with the builtins of the function that calls."""
    assert run_anew(ASKS_FOR_BUILTINS, NUMBA_DISABLE_JIT="1") == "6.0"


def test_the_second_process_neither_compiles_nor_writes(tmp_path):
    (tmp_path / "callee.py").write_text(CALLEE.format(scale=2, default="", body="SCALE * x"))
    script = "from callee import inner; print(inner(10))"
    good, complaint = finish(start(tmp_path, NO_COMPILER + script))
    assert not good  # the compiler that is refused is the one in use
    assert "AssertionError: compiled" in complaint
    assert run(tmp_path, script) == "20"
    before = entries(tmp_path / "cache")
    assert before
    assert run(tmp_path, NO_COMPILER + script) == "20"
    assert entries(tmp_path / "cache") == before


CALLEE = (
    "from dpbandits.kernel import kernel\nSCALE = {scale}\n@kernel\ndef inner(x{default}):\n   "
    " return {body}\n"
)
CALLER = (
    "from dpbandits.kernel import kernel\nfrom callee import inner\n@kernel\ndef outer(x):\n   "
    " return inner(x) + 1\n"
)


FIELDS = """
from dpbandits.kernel import entry, outlined
@outlined
def far(pair):
    return pair.a
@entry
def near(pair):
    return far(pair)
"""
PAIR = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    {}: float\n    {}: float\n"


@pytest.mark.long
def test_equally_named_tuples_with_other_fields_share_no_code(tmp_path):
    """numba names a tuple's type by its class and its types alone, and symbols by it."""
    (tmp_path / "shared.py").write_text(FIELDS)
    for module, fields in (("one", "ab"), ("other", "ba")):
        (tmp_path / f"{module}.py").write_text(PAIR.format(*fields))
    script = "from shared import near; import one, other\nprint([near(m.Pair(a=1.0, b=2.0)) for m in ({})])"
    for order in ("one, other", "other, one", "one, other", "other,", "other, one, other"):
        expected = [1.0] * len(order.rstrip(",").split(","))
        assert run(tmp_path, script.format(order)) == str(expected)


@pytest.mark.long
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


@pytest.mark.long
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
                "from state import build; print(build._digest)",
            )
        )
    assert len(digests) == 2


def test_types_are_told_apart_by_their_fields_at_any_depth():
    One, Other = namedtuple("State", "a b"), namedtuple("State", "b a")
    one, other = One(1.0, 2.0), Other(1.0, 2.0)
    assert describe_type(typeof(one)) != describe_type(typeof(other))
    assert describe_type(typeof((1, (one,)))) != describe_type(typeof((1, (other,))))
    assert describe_type(typeof((1, 2.0))) != describe_type(typeof((1, 2)))


@pytest.mark.long
def test_a_class_of_a_script_is_not_mistaken_for_its_like(tmp_path):
    script = (
        STATE.format(first="left", second="right")
        + "print(read(State(1.0, 2.0)), type(State(1.0, 2.0)) is State)"
    )
    assert run(tmp_path, script) == run(tmp_path, script) == "1.0 True"


@pytest.mark.parametrize("damage", ["empty", "cut", "garbage", "flipped", "directory"])
@pytest.mark.long
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


# Two kernels, so that there are two reasons to warn.
DISTRUSTS = """
import warnings
from dpbandits.errors import CacheWarning
from dpbandits.kernel import entry
@entry
def double(x):
    return 2 * x
@entry
def triple(x):
    return 3 * x
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(double(10), triple(10))
for one in caught:
    if issubclass(one.category, CacheWarning):
        print(one.message)
"""
on_posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners")
as_root = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root gives folders away"
)


def refuses(tmp_path, cache, *words, script=DISTRUSTS):
    """Whether a cache is not used, with one warning of these words, and kernels compute."""
    before = entries(tmp_path)
    first, *warned = run(tmp_path, script, cache).split("\n")
    assert first == "20 30"
    assert len(warned) == 1, warned
    for word in ("is not used", "set DPBANDITS_CACHE_DIR", *words):
        assert word in warned[0]
    assert entries(tmp_path) == before
    with pytest.raises(AssertionError, match="compiled"):  # nor is anything read
        run(tmp_path, NO_COMPILER + script, cache)


@on_posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
def test_a_cache_that_others_write_is_not_used(tmp_path, mode, full):
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    if full:
        assert run(tmp_path, DISTRUSTS) == "20 30"
        assert entries(cache)
    cache.chmod(mode)
    remedy = () if mode == 0o1777 else (f"chmod go-w {cache}`",)  # which nobody does to /tmp
    refuses(tmp_path, cache, f"{cache} can be written by other users", *remedy)
    cache.chmod(0o700)
    assert run(tmp_path, DISTRUSTS) == "20 30"  # as the warning said
    assert run(tmp_path, NO_COMPILER + DISTRUSTS) == "20 30"


@on_posix
def test_no_cache_is_made_where_others_can_replace_it(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    refuses(tmp_path, tmp_path / "shared" / "cache", f"chmod go-w {tmp_path}/shared`")
    (tmp_path / "link").symlink_to("shared")
    refuses(tmp_path, tmp_path / "link", f"chmod go-w {tmp_path}/shared`")
    (tmp_path / "shared").chmod(0o1777)  # as /tmp
    assert run(tmp_path, DISTRUSTS, tmp_path / "shared" / "cache") == "20 30"
    assert run(tmp_path, NO_COMPILER + DISTRUSTS, tmp_path / "shared" / "cache") == "20 30"


@as_root
@on_posix
@pytest.mark.parametrize("place", ["cache", "subfolder", "entry"])
def test_a_cache_with_something_of_another_user_is_not_used(tmp_path, place):
    cache = tmp_path / "cache"
    assert run(tmp_path, DISTRUSTS) == "20 30"
    for entry in entries(cache):
        one = {"cache": cache, "subfolder": entry.parent.parent, "entry": entry}[place]
        os.chown(one, 54321, 54321)
    remedy = () if place == "cache" else ("empty the cache folder",)
    refuses(tmp_path, cache, "belongs to another user (uid 54321)", *remedy)


@on_posix
def test_without_a_choice_the_cache_of_the_user_is_private(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    unset = f"""
import os
del os.environ["DPBANDITS_CACHE_DIR"]
os.environ.pop("XDG_CACHE_HOME", None)
os.environ["HOME"] = {str(home)!r}
os.umask(0)
"""
    assert run(tmp_path, unset + DISTRUSTS) == "20 30"
    made = [path for path in home.rglob("*") if path.is_dir()]
    assert made
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in entries(home)} == {0o600}
    assert run(tmp_path, NO_COMPILER + unset + DISTRUSTS) == "20 30"
    home.chmod(0o777)
    refuses(tmp_path, "unset", f"chmod go-w {home}`", script=unset + DISTRUSTS)


@on_posix
def test_a_refused_cache_raises_where_warnings_are_errors(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    script = DISTRUSTS.replace('"always"', '"error"')
    good, printed = finish(start(tmp_path, script))
    assert not good
    assert "CacheWarning: the cache folder" in printed


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
    at_once = [start(tmp_path, script) for _ in range(4)]
    assert [finish(running) for running in at_once] == [(True, "20")] * 4
    assert run(tmp_path, NO_COMPILER + script) == "20"
    assert not list((tmp_path / "cache").rglob("tmp*"))


OUTLINED = """
from dpbandits.kernel import entry, outlined
@outlined
def inner(x):
    return {factor} * x
@entry
def outer(x):
    return inner(x) + 1
print(outer(10))
"""


def test_a_caller_from_the_cache_finds_the_machine_code_it_calls(tmp_path):
    for factor, expected in ((2, "21"), (3, "31")):
        script = OUTLINED.format(factor=factor)
        assert run(tmp_path, script) == expected
        assert run(tmp_path, NO_COMPILER + script) == expected
    for path in entries(tmp_path / "cache"):
        if b"outer" not in path.read_bytes():  # what is called is gone, its callers are not
            path.unlink()
    assert run(tmp_path, script) == expected


INTERPRETED = """
import numpy as np
from dpbandits.kernel import entry, interpreted, kernel, unbound
draw = unbound
@kernel
def twice(rng):
    return draw(rng), draw(rng)
@entry
def uniform(rng):
    return rng.random()
rngs = np.random.default_rng(1), np.random.default_rng(1)
print(interpreted(twice, draw=uniform)(rngs[0]) == (rngs[1].random(), rngs[1].random()))
"""


def test_interpreted_templates_hand_generators_to_compiled_code(tmp_path):
    # in a process of its own: whatever goes wrong with a generator is no exception
    assert run(tmp_path, INTERPRETED) == "True"


def test_no_two_state_classes_share_a_name():
    classes = set()
    for policy in registered().values():
        example = policy(**policy.example, budget=next(iter(policy.example_budgets()), None))
        state = example.new_state()
        classes |= {type(held) for held in (example.params, state.raw, state.public, state.wall)}
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


def test_globals_are_those_of_the_disassembler():
    functions = [one for one in vars(statistics).values() if isinstance(one, types.FunctionType)]
    many = " + ".join(f"name_{i} + thing.name_{i}" for i in range(300))  # beyond one byte
    long = compile(f"def f():\n return {many}", "many", "exec").co_consts[0]
    for code in [*(one.__code__ for one in functions), long]:
        found = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        assert found <= _global_names(code)
        inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
        assert _global_names(code) == found.union(*map(_global_names, inner))
    assert len(found) == 301
    assert len(functions) > 20


@pytest.mark.parametrize(
    "function",
    [calls_plain, uses_object, uses_dictionary, uses_functions, uses_objects, uses_module],
)
def test_a_global_whose_changes_could_not_be_seen_is_refused(function):
    with pytest.raises(TypeError, match=f"^{function.__name__} uses .* make the function a kernel"):
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
    assert bound._digest != template._digest
    assert bind(template, hook=tenfold)._digest == bound._digest
    with pytest.raises(ValueError, match="template has no place for crook"):
        bind(template, crook=tenfold)
    with pytest.raises(TypeError, match="bind it first"):
        plain(template)(2)
