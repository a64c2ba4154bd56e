"""No message holds data: marked values go through every public door, and are found in no exception,
warning or log line.

Doors are found by the names of parameters of what is public, so that a new one is tried, or named
below with the reason why not.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import re
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpbandits as dpb
import dpbandits.environments as worlds
from dpbandits import glm, shuffle
from dpbandits.algorithms.bases.shuffled import RewardDevice
from dpbandits.algorithms.hidden.choosing_devices import Device
from dpbandits.cli import app
from dpbandits.papers.dgs import LinUCBDGS
from dpbandits.policies import registered
from dpbandits.privacy import (
    BinaryTree,
    ContinualSum,
    Laplace,
    SymmetricChannel,
    VectorChannel,
    smat,
    svec,
)
from dpbandits.privacy.randomiser import Randomiser, VectorRandomiser
from dpbandits.shuffle import GaussianReports, Messages, Protocol, Randomizer, Shuffler

NUMBER, WORD = 7919.73123, "marked-person"
MARKS = re.compile(r"7[.,]?919[.,]?73|7\.91973|791973|marked-person|79197")
PARAMETERS = {
    *("X", "x", "y", "advice", "batch", "contexts", "decision", "features", "frame", "labels"),
    *(
        "log",
        "matrix",
        "messages",
        "outcomes",
        "release",
        "report",
        "reports",
        "reward",
        "rewards",
        "rows",
    ),
    *("sender", "submitted", "value", "values", "vector", "vectors"),
}
ROOMS = "environments glm shuffle finite logs evaluation privacy auditing simulation planning"

# Arguments of what somebody sets up, which are no data, and containers that look at nothing.
EXEMPT = {
    "Budget.at": "a number of a budget",
    "bandit": "words for features of arms, and how many numbers are known of a person",
    "BitSum.published": "sizes of a study",
    "Chooser.__init__": "made of public releases, by `Policy.chooser`",
    "Device.__init__": "a number of reports",
    "Evaluation.__init__": "keeps results of `evaluate`",
    "Holdout.__init__": "takes shares and weights, which are arguments",
    "FinitePolicy.__init__": "all rewards that there could be, of nobody",
    "FinitePolicy.from_function": "all rewards that there could be, of nobody",
    "FinitePolicy.from_reports": "all rewards that there could be, of nobody",
    "GaussianContexts.__init__": "the law of simulated rewards",
    "GaussianReports.published": "sizes of a study",
    "HiddenGLMLocal.composition": "whether reports come",
    "HiddenLinearLocal.composition": "whether reports come",
    "HiddenLinearShuffled.composition": "whether messages come",
    "LinearArms.__init__": "the law of simulated rewards",
    "LinearArms.on_sphere": "the law of simulated rewards",
    "LocalChannel.__init__": "the number of a batch",
    "Messages.__init__": "keeps what it is given, and looks at nothing",
    "PoolContexts.uniform": "the law of simulated rewards",
    "Report.__init__": "keeps what it is given, and looks at nothing",
    "Result.__init__": "results of simulations",
    "Setting.__init__": "words for kinds of contexts and of rewards, and features of arms",
    "BitSum.mixed": "called by `Shuffler.shuffle` with what it has checked",
    "GaussianReports.mixed": "called by `Shuffler.shuffle` with what it has checked",
    "Protocol.mixed": "called by `Shuffler.shuffle` with what it has checked",
    "Shares.mixed": "called by `Shuffler.shuffle` with what it has checked",
    "Protocol.rounded": "called with what `Protocol.table` has checked",
    "Policy.preprocessed": "called with what `Configured.seen` has checked",
    "DecisionLog.__init__": "which columns there are",
    "LocalChannel.record": "called by devices with what they have checked",
    "VectorRandomiser.__call__": "called by devices with the records that they make",
    "gaussian_shuffle_amplification": "a number of reports",
    "published_batch": "a number of features",
    "shuffle_amplification": "a number of reports",
}


# Devices of people, who always send: an error would tell.
SILENT = {"Device.report", "Randomiser.__call__", "RewardDevice.report"}


class Odd:
    """An object that tells what is in it."""

    def __repr__(self) -> str:
        return WORD

    __str__ = __repr__


def variants(*shape: int) -> Iterator[Any]:
    """Marked values of a shape, right and wrong."""
    good = np.full(shape, NUMBER)
    yield from (
        good,
        -good,
        good.tolist(),
        good * 1j,
        good.astype(str),
        good[..., None],
        good * 1e99,
    )
    yield from (NUMBER, WORD, Odd(), [Odd()], {"a": NUMBER}, {"a": good}, [], [WORD, NUMBER])
    for entry in (np.nan, np.inf, None, WORD, Odd(), 1j, [NUMBER]):
        holed = good.astype(object)
        if shape:
            holed[(0,) * len(shape)] = entry
        yield from (holed, holed.tolist())
    if shape:
        yield from (good[:0], good[:-1], np.ma.array(good, mask=good > 0), good.ravel())
        yield [*good.tolist(), [NUMBER]]
    if len(shape) == 1:
        yield from (pd.Series(good), pd.Series(good.astype(str)), pd.Series(good, dtype="category"))
    if len(shape) == 2:
        frame = pd.DataFrame(good)
        yield from (frame, frame.assign(b=WORD), frame.astype("Float64"))


class Door(NamedTuple):
    shape: tuple[int, ...]
    enter: Callable[[Any], Any]


ZCDP = dpb.ZCDP(0.5)
ARMS, PEOPLE = np.tile([0, 1], 4), np.tile([0, 1], 20)
HALVES = np.full((4, 2), 0.5)


def policy(name: str, *arguments: Any, **options: Any) -> Any:
    return dpb.parts.find(name)(*arguments, seed=1, **options)


def pulled(name: str, *arguments: Any, contexts: Any = None, **options: Any) -> Any:
    made = policy(name, *arguments, **options)
    made.pull(contexts)
    return made


def private() -> Any:
    return policy("LinUCBJDP", 2, 3, budget=ZCDP, horizon=100)


def local() -> Any:
    return policy("LinUCBLDP", 2, 3, budget=ZCDP, horizon=100, reports=True)


def batch() -> GaussianReports:
    return GaussianReports(batch=4, dimension=2, bound=1.0, levels=16, noise=64)


def messages(values: Any) -> Messages:
    return Messages(values, 0)


def estimated() -> Any:
    return glm.PrivateGLM(budget=ZCDP, seed=1).fit(HALVES, [0, 1, 0, 1])


def curator() -> Any:
    model = glm.LocalGLM(budget=ZCDP, batches=1, seed=1)
    return model.curator(4, 2)


def release_of(values: Any) -> Any:
    one, other = (dpb.algorithms.MergedIMED(2, budget=ZCDP, seed=seed) for seed in (1, 2))
    for _ in range(4):
        one.update(1.0, one.pull())
    (first, *_) = one.releases()
    return other.learn_from(first._replace(values=values))


def logged(name: str, *arguments: Any, features: bool = False, **options: Any) -> Any:
    made = policy(name, *arguments, **options)
    return dpb.DecisionLog(tempfile.mkdtemp(), made, features=features)


def arms_log(column: str) -> Callable[[Any], Any]:
    def enter(given: Any) -> Any:
        log = {"arm": ARMS, "reward": ARMS * 0.5, column: given}
        return dpb.fit_logs(policy("MergedIMED", 2, budget=ZCDP), log, private=column != "arm")

    return enter


def context_log(given: Any) -> Any:
    log = {"arm": ARMS, "reward": ARMS * 0.5, "features": given}
    return dpb.fit_logs(policy("LinUCB", 2, 3, models="disjoint"), log, features="features")


def evaluated(column: str) -> Callable[[Any], Any]:
    def enter(given: Any) -> Any:
        log = {"arm": ARMS, "reward": ARMS * 0.5, "propensity": ARMS * 0.0 + 0.5, column: given}
        more = {"x": {"features": "x"}, "p": {"propensities": "p"}, "draw": {"episode": "draw"}}
        return dpb.evaluate(log, 1, reward_range=(-1e4, 1e4), **more.get(column, {}))

    return enter


def evaluated_privately(column: str, protects: str) -> Callable[[Any], Any]:
    def enter(given: Any) -> Any:
        log = {"arm": ARMS, "reward": ARMS * 0.5, "propensity": ARMS * 0.0 + 0.5, column: given}
        more = {"person": {"user": "person"}}.get(column, {})
        asked = {"budget": ZCDP, "largest_weight": 2.0, "protects": protects, "seed": 1}
        target: Any = 1 if protects == "rewards" else "x"
        return dpb.evaluate_privately(log, target, **asked, **more)

    return enter


def replayed(given: Any) -> Any:
    trial = worlds.LoggedTrial(ARMS, given)
    return dpb.replay(policy("UCB1", 2), trial, runs=1)


def simulated(given: Any) -> Any:
    return dpb.simulate(policy("UCB1", 2), worlds.RewardTable(given), horizon=4, runs=1)


def submitted(given: Any) -> Any:
    return Shuffler(batch(), version=0, noise="simulation", seed=1).submit(messages(given), WORD)


def twice(given: Any) -> Any:
    shuffler, randomizer = (
        Shuffler(batch(), version=0, noise="simulation", seed=1),
        Randomizer(batch(), version=0, noise="simulation", seed=1),
    )
    shuffler.submit(randomizer.encode(np.zeros(2)), WORD)
    return shuffler.submit(randomizer.encode(np.zeros(2)), WORD)


def reward_device() -> Any:
    made = policy("MergedIMEDSDP", 2, budget=dpb.PureDP(1.0), messages=True)
    return made.device()


def received(given: Any) -> Any:
    made = policy("MergedIMEDSDP", 2, budget=dpb.PureDP(1.0), messages=True)
    return made.receive(messages(given))


def mixed(given: Any) -> Any:
    options = {"horizon": 100, "batch": 2, "messages": True, "noise": "simulation"}
    made = policy("LinUCBSDP", 2, 3, budget=dpb.ApproxDP(1.0, 1e-4), **options)
    return made.receive(messages(given))


DOORS: dict[str, list[Door]] = {
    "AdvicePolicy.seen": [
        Door((3, 2), lambda v: policy("EXP4", 2, 3, budget=ZCDP, horizon=9).pull(v))
    ],
    "AdviceTable.__init__": [
        Door((4, 3, 2), lambda v: worlds.AdviceTable(v, HALVES)),
        Door((4, 2), lambda v: worlds.AdviceTable(np.full((4, 3, 2), 0.5), v)),
    ],
    "Advised.__init__": [
        Door((4, 3, 2), lambda v: worlds.Advised(worlds.Bernoulli([0.1, 0.2]), v, horizon=4))
    ],
    "Analyzer.aggregate": [
        Door((4, 2), lambda v: shuffle.Analyzer(batch()).aggregate(messages(v)))
    ],
    "Chooser.choose": [
        Door((2, 3), lambda v: policy("LinUCB", 2, 3).chooser().choose(v)),
        Door((2, 3), lambda v: private().chooser().choose(v)),
    ],
    "Chooser.decide": [Door((2, 3), lambda v: policy("LinUCB", 2, 3).chooser().decide(v))],
    "Classification.__init__": [
        Door((4, 2), lambda v: worlds.Classification(v, [0, 1, 0, 1])),
        Door((4,), lambda v: worlds.Classification(HALVES, v)),
    ],
    "Classification.of_rows": [
        Door((4, 2), lambda v: worlds.Classification.of_rows(v, [0, 1, 0, 1])),
        Door((4,), lambda v: worlds.Classification.of_rows(HALVES, v)),
    ],
    "ClassifierAdvice.__init__": [
        Door((4, 3, 2), lambda v: worlds.ClassifierAdvice(v, [0, 1, 0, 1])),
        Door((4,), lambda v: worlds.ClassifierAdvice(np.full((4, 3, 2), 0.5), v)),
    ],
    "ContextTable.__init__": [
        Door((4, 2, 3), lambda v: worlds.ContextTable(v, HALVES)),
        Door((4, 2), lambda v: worlds.ContextTable(np.ones((4, 2, 3)), v)),
        Door((4, 2), lambda v: worlds.ContextTable(np.ones((4, 2, 3)), HALVES, v)),
    ],
    "ContextualPolicy.seen": [
        Door((2, 3), lambda v: policy("LinUCB", 2, 3).pull(v)),
        Door((3,), lambda v: policy("LinUCB", 2, 3, models="disjoint").pull(v)),
    ],
    "ContinualSum.add": [
        Door((), lambda v: ContinualSum(BinaryTree(8), ZCDP, sensitivity=1.0, seed=1).add(v)),
        Door(
            (2,),
            lambda v: ContinualSum(
                BinaryTree(8), ZCDP, sensitivity=1.0, shape=(2,), noise="secure", grid=0.5
            ).add(v),
        ),
    ],
    "Curator.receive": [Door((2,), lambda v: curator().receive(glm.Report(0, v)))],
    "Curator.receive_sum": [Door((2,), lambda v: curator().receive_sum(v, 4))],
    "DecisionLog.write": [
        Door((), lambda v: logged("MergedIMED", 2, budget=ZCDP).write(v)),
        Door((2, 3), lambda v: logged("LinUCB", 2, 3, features=True).write(0, contexts=v)),
    ],
    "Device.choose": [Door((2, 3), lambda v: local().device().choose(v))],
    "Device.report": [Door((), lambda v: local().device().report(v))],
    "Estimator.score": [
        Door((4, 2), lambda v: estimated().score(v, np.ones(4))),
        Door((4,), lambda v: estimated().score(np.ones((4, 2)), v)),
    ],
    "Estimator.predict": [Door((4, 2), lambda v: estimated().predict(v))],
    "Estimator.predict_proba": [Door((4, 2), lambda v: estimated().predict_proba(v))],
    "HiddenLinearShuffled.receive": [Door((2, 9), mixed)],
    "InformationWeightedGLM.fit": [
        Door((40, 2), lambda v: glm.InformationWeightedGLM(budget=ZCDP, seed=1).fit(v, PEOPLE)),
        Door(
            (8,), lambda v: glm.InformationWeightedGLM(budget=ZCDP, seed=1).fit(np.eye(8)[:, :2], v)
        ),
    ],
    "LinUCBDGS.estimate_eigenvalue": [
        Door((4, 3), lambda v: LinUCBDGS.estimate_eigenvalue(v)),
        Door((4, 2, 3), lambda v: LinUCBDGS.estimate_eigenvalue(v)),
    ],
    "LinUCBDGS.exact_loss": [
        Door(
            (4, 3),
            lambda v: policy(
                "LinUCBDGS", 2, 3, budget=dpb.PureDP(1.0), horizon=9, smallest_eigenvalue=0.1
            ).exact_loss(v),
        )
    ],
    "LocalDevice.report": [
        Door((2,), lambda v: glm.LocalDevice(curator().channel()).report(v, 1.0)),
        Door((), lambda v: glm.LocalDevice(curator().channel()).report([0.5, 0.5], v)),
    ],
    "LocalPolicy.receive": [Door((9,), lambda v: local().receive(v))],
    "LocalGLM.fit": [
        Door((8, 2), lambda v: glm.LocalGLM(budget=ZCDP, batches=2, seed=1).fit(v, ARMS)),
        Door((8,), lambda v: glm.LocalGLM(budget=ZCDP, batches=2, seed=1).fit(np.eye(8)[:, :2], v)),
    ],
    "LoggedTrial.__init__": [
        Door((8,), lambda v: worlds.LoggedTrial(ARMS, v)),
        Door((8, 2), lambda v: worlds.LoggedTrial(ARMS, ARMS, v)),
        Door((8, 2, 3), lambda v: worlds.LoggedTrial(ARMS, ARMS, v)),
        Door((8,), lambda v: worlds.LoggedTrial(v, ARMS, arm_names=["a", "b"])),
    ],
    "Answering.checked_reward": [Door((), lambda v: policy("UCB1", 2).checked_reward(v))],
    "Answering.expire": [Door((), lambda v: pulled("UCB1", 2).expire(v))],
    "Answering.cancel": [Door((), lambda v: pulled("UCB1", 2).cancel(v))],
    "Answering.erase": [Door((), lambda v: pulled("UCB1", 2).erase(v))],
    "Answering.is_open": [Door((), lambda v: pulled("UCB1", 2).is_open(v))],
    "Publishing.learn_from": [
        Door((1,), release_of),
        Door((), lambda v: policy("MergedIMED", 2, budget=ZCDP).learn_from(v)),
    ],
    "Policy.pull": [
        Door((), lambda v: policy("MergedIMED", 2, budget=ZCDP).pull(v)),
        Door((), lambda v: policy("MergedIMED", 2, budget=ZCDP, max_rounds=1).pull(user=v)),
    ],
    "Configured.seen": [Door((), lambda v: policy("UCB1", 2).seen(v))],
    "Answering.update": [
        Door((), lambda v: pulled("MergedIMED", 2, budget=ZCDP).update(v)),
        Door((), lambda v: pulled("UCB1", 2, clip=False).update(v)),
        Door((), lambda v: pulled("UCB1", 2).update(0.5, v)),
        Door((), lambda v: pulled("LDPIMED", 2, budget=ZCDP, reports=True).update(v)),
    ],
    "PoolContexts.__init__": [
        Door((4, 2), lambda v: worlds.PoolContexts(v, [0.1, 0.2], per_round=2))
    ],
    "PrivateGLM.fit": [
        Door((8, 2), lambda v: glm.PrivateGLM(budget=ZCDP, seed=1).fit(v, ARMS)),
        Door((8,), lambda v: glm.PrivateGLM(budget=ZCDP, seed=1).fit(np.eye(8)[:, :2], v)),
    ],
    "Protocol.simulate_sums": [
        Door((2, 2), lambda v: batch().simulate_sums(v, np.random.default_rng(1)))
    ],
    "Protocol.table": [Door((2, 2), lambda v: batch().table(v))],
    "Randomiser.__call__": [
        Door((), lambda v: Randomiser(Laplace(1.0), (0.0, 1.0), noise="simulation", seed=1)(v))
    ],
    "Randomiser.law": [
        Door(
            (2,), lambda v: Randomiser(Laplace(1.0), (0.0, 1.0), noise="secure", grid=1.0).law(v, 1)
        )
    ],
    "Randomizer.encode": [
        Door((2,), lambda v: Randomizer(batch(), noise="simulation", seed=1).encode(v))
    ],
    "Randomizer.encode_many": [
        Door((3, 2), lambda v: Randomizer(batch(), noise="simulation", seed=1).encode_many(v))
    ],
    "Recommendations.__init__": [
        Door((4, 2), lambda v: worlds.Recommendations(v, [0, 1], [0, 1], per_round=2)),
        Door((2,), lambda v: worlds.Recommendations(np.eye(4), [0, 1], v, per_round=2)),
    ],
    "RewardDevice.report": [Door((), lambda v: reward_device().report(v))],
    "RewardDevice.report_many": [Door((3,), lambda v: reward_device().report_many(v))],
    "RewardTable.__init__": [Door((4, 2), simulated), Door((4, 2), worlds.RewardTable)],
    "ShuffledPolicy.pull": [
        Door((), lambda v: policy("MergedIMEDSDP", 2, budget=dpb.PureDP(1.0)).pull(v))
    ],
    "ShuffledPolicy.receive": [Door((2, 1), received)],
    "Shuffler.shuffle": [
        Door(
            (2, 2),
            lambda v: Shuffler(batch(), version=0, noise="simulation", seed=1).shuffle(
                [messages(v)]
            ),
        )
    ],
    "Shuffler.submit": [Door((1, 2), submitted), Door((), twice)],
    "VectorChannel.__call__": [
        Door((2,), lambda v: VectorChannel(ZCDP, noise="simulation", seed=1)(v))
    ],
    "evaluate": [
        *(
            Door((8,), evaluated(one))
            for one in ("arm", "reward", "propensity", "recorded", "draw")
        ),
        *(Door((8, 3), evaluated(one)) for one in ("x", "p")),
    ],
    "evaluate_privately": [
        *(
            Door((8,), evaluated_privately(one, "rewards"))
            for one in ("arm", "reward", "propensity", "recorded", "person")
        ),
        Door((8,), evaluated_privately("x", "contexts and rewards")),
    ],
    "fit_logs": [
        Door((8,), arms_log("reward")),
        Door((8,), arms_log("arm")),
        Door((8,), arms_log("propensity")),
        Door((8, 3), context_log),
        Door((8, 2, 3), context_log),
    ],
    "replay": [Door((8,), replayed), Door((8,), lambda v: dpb.replay(policy("UCB1", 2), v))],
    "smat": [Door((3,), smat)],
    "svec": [Door((2, 2), svec)],
    "SymmetricChannel.__call__": [
        Door((2, 2), lambda v: SymmetricChannel(ZCDP, noise="simulation", seed=1)(v))
    ],
}


def functions() -> dict[str, list[str]]:
    """Public functions, and what of data they take."""
    rooms = [dpb, *(importlib.import_module(f"dpbandits.{room}") for room in ROOMS.split())]
    things = [getattr(room, name) for room in rooms for name in room.__all__]
    things += [getattr(one, "policy_class", one) for one in registered().values()]
    things += [Device, RewardDevice, Randomiser, VectorRandomiser]
    found = {}
    for thing in things:
        for one in _members(thing):
            takes = [name for name in inspect.signature(one).parameters if name in PARAMETERS]
            if takes and one.__module__.startswith("dpbandits"):
                found[one.__qualname__] = takes
    return found


def _members(thing: Any) -> Iterator[Any]:
    if inspect.isfunction(thing):
        yield thing
    if not inspect.isclass(thing):
        return
    for name in dir(thing):
        set_up = name == "__init__" and issubclass(thing, dpb.Policy | Protocol)
        if set_up or (name.startswith("_") and name not in ("__init__", "__call__")):
            continue
        one = inspect.getattr_static(thing, name)
        one = getattr(one, "__func__", one)
        if inspect.isfunction(one):
            yield one


@pytest.mark.compiled
def test_every_door_is_tried_or_exempt():
    found = set(functions())
    assert found - set(DOORS) - set(EXEMPT) == set()
    assert set(DOORS) & set(EXEMPT) == set()
    assert all(EXEMPT.values())


def everything_said(error: BaseException | None) -> str:
    """What a traceback shows of an exception, and all that led to it, shown or not."""
    said = []
    while error is not None:
        said += ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


def overheard(
    call: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> tuple[str, BaseException | None]:
    """What is said while something is called, and the error by which it was refused."""
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            call()
        except (Exception, SystemExit) as raised:
            error = raised
    said = [everything_said(error), *(str(one.message) for one in told), caplog.text]
    return "\n".join(said), error


@pytest.mark.parametrize("name", DOORS)
def test_no_message_holds_data(name, caplog):
    refused = 0
    for door in DOORS[name]:
        for given in variants(*door.shape):
            said, error = overheard(lambda g=given, d=door: d.enter(g), caplog)
            assert MARKS.search(said) is None, said
            assert error is None or isinstance(error, dpb.DPBanditsError), said
            refused += error is not None
    assert bool(refused) == (name not in SILENT)


def test_the_search_finds_what_is_said(caplog):
    def chained() -> None:
        try:
            float(WORD)
        except ValueError:
            raise dpb.ArgumentError("x must be a number", "x") from None

    leaks: list[Callable[[], Any]] = [
        chained,
        lambda: warnings.warn(f"got {NUMBER}", stacklevel=1),
        lambda: logging.getLogger("dpbandits").debug("got %s", NUMBER),
        lambda: dpb.ArgumentError(str([NUMBER] * 3)) and float(str([NUMBER])),
    ]
    for leak in leaks:
        assert MARKS.search(overheard(leak, caplog)[0])
    assert not MARKS.search(overheard(lambda: float("another"), caplog)[0])


FILES = {
    "csv": f"a,b,y\n0.1,0.2,1\n0.3,{NUMBER},{WORD}\n0.1,0.2,0\n",
    "short": f"a,b,y\n0.1,0.2,1\n{NUMBER},{WORD}\n",
    "quote": f'a,b,y\n0.1,"{WORD},1\n0.3,{NUMBER},0\n',
    "binary": f"\0{WORD},{NUMBER}\n",
    "empty": "",
}


@pytest.mark.parametrize("name", FILES)
def test_no_command_tells_of_a_file(name, tmp_path, caplog):
    path = tmp_path / "people.csv"
    path.write_text(FILES[name])
    commands = [
        ["estimate", str(path), "--outcome", "y", "--budget", "zcdp=0.5"],
        ["plan", "--features", str(path), "--budget", "zcdp=0.5", "--horizon", "100"],
    ]
    for command in commands:
        result = CliRunner().invoke(app, command)
        said = result.output + everything_said(result.exception) + caplog.text
        assert result.exit_code != 0 or name == "csv"
        assert MARKS.search(said) is None, said


@pytest.mark.parametrize("where", ["header", "answers", "arrays", "whole"])
def test_no_error_of_a_broken_state_tells_of_it(where, tmp_path, caplog):
    made = pulled("LinUCB", 2, 2, contexts=np.eye(2), answers_within=3)
    path = made.save(tmp_path / "state.dpb")
    content = path.read_bytes()
    broken = {
        "header": content.replace(b'"pending"', b'"marked-person"', 1),
        "answers": content.replace(b'"answers": {}', b'"answers": {"marked-person": 7919.73}', 1),
        "arrays": content[: len(content) // 2] + WORD.encode(),
        "whole": json.dumps({WORD: NUMBER}).encode(),
    }
    path.write_bytes(broken[where])
    said, error = overheard(lambda: dpb.load(path), caplog)
    assert error is not None or broken[where] == content
    assert MARKS.search(said) is None, said
