"""Bandits with finitely many arms on sums from a shuffler: servers, devices, and what they promise."""

import math
import pickle
from threading import Thread

import numpy as np
import pytest
from scipy import stats

import dpbandits as dpb
from dpbandits.algorithms.bases import shuffled
from dpbandits.environments import Bernoulli
from dpbandits.papers.others import DPSE, DPSESDP
from dpbandits.privacy.ledger import SPAN
from dpbandits.session import episodes
from dpbandits.shuffle import Messages

MEANS = np.array([0.8, 0.5, 0.2])
CLASSES = {
    dpb.papers.concentrated.AdaPUCBSDP: dpb.papers.concentrated.AdaPUCB,
    dpb.papers.concentrated.AdaPKLUCBSDP: dpb.papers.concentrated.AdaPKLUCB,
}


def server(cls=dpb.papers.concentrated.AdaPUCBSDP, **options):
    given = {"budget": dpb.PureDP(1.0), "messages": True, "seed": 1} | options
    return cls(3, **given)


def play_batch(policy, reward, people=None, **shuffling):
    """One batch; the arm, and whether the policy has learned."""
    device, shuffler = policy.device(), policy.shuffler(**shuffling)
    for person in range(policy.protocol.batch if people is None else people):
        shuffler.submit(device.report(reward(device.arm)), sender=person)
    mixed = shuffler.close()
    return device.arm, policy.receive(mixed)


@pytest.mark.parametrize("made", ["device", "shuffler"])
def test_a_device_has_batch_and_version_of_one_moment(made, monkeypatch):
    """With the version of the next batch, shares of noise for this one would be too small."""
    policy = server()
    device, shuffler = policy.device(), policy.shuffler()
    for person in range(policy.protocol.batch):
        shuffler.submit(device.report(0.5), sender=person)
    mixed, before = shuffler.close(), (policy.rounds, policy.protocol.batch)
    threads = []

    def meanwhile(*arguments):
        if not threads:
            threads.append(Thread(target=policy.receive, args=(mixed,)))
            threads[0].start()
            threads[0].join(0.2)  # it has to wait
        return share(*arguments)

    share = shuffled._protocol
    monkeypatch.setattr(shuffled, "_protocol", meanwhile)
    found = getattr(policy, made)()
    threads[0].join()
    party = found.randomizer if made == "device" else found
    assert (party.version, party.protocol.batch) == before
    assert policy.rounds > before[0]


def test_elimination_has_a_batch_for_each_arm_of_an_epoch(tmp_path):
    """Three epochs, under a budget so loose that noise decides nothing; saved in the middle of one."""
    means, own = [0.9, 0.88, 0.1], {"horizon": 10_000, "failure_probability": 0.9}
    budget = dpb.PureDP(40.0)
    ours = DPSESDP(3, budget=budget, messages=True, seed=1, **own)
    central = DPSE(3, budget=budget, seed=2, **own)
    played, batches = [], []
    for number in range(7):
        device, shuffler = ours.device(), ours.shuffler()
        n = ours.protocol.batch
        mixed = shuffler.shuffle([device.report_many(n * [means[device.arm]])])
        assert ours.receive(mixed)
        with pytest.raises(dpb.ArgumentError, match="version"):
            ours.receive(mixed)
        batches.append((device.arm, ours.ledger.releases))
        played += n * [device.arm]
        if number == 3:
            ours = dpb.load(ours.save(tmp_path / "server.dpb"))
    assert batches == [(0, 0), (1, 0), (2, 1), (0, 1), (1, 2), (0, 2), (1, 3)]
    for arm in played:
        assert central.pull().arm == arm
        central.update(means[arm])
    central.pull()
    assert ours.ledger.frame.equals(central.ledger.frame)
    one = DPSESDP(1, budget=budget, messages=True, **own)
    with pytest.raises(dpb.ArgumentError, match="there is no next batch, because one arm is left"):
        one.device()
    assert one.chooser().choose() == 0


def released(policy):
    return policy.session.state.wall.release[0]


@pytest.mark.parametrize("cls", CLASSES)
def test_without_messages_it_is_the_central_policy(cls):
    """The same arms, draw for draw."""
    budget, rng = dpb.PureDP(0.5), np.random.default_rng(1)
    ours, central = (kind(3, budget=budget, seed=7) for kind in (cls, CLASSES[cls]))
    for row in rng.random((2000, 3)) < MEANS:
        assert ours.pull().arm == central.pull().arm
        ours.update(float(row[ours.session.last.arm]))
        central.update(float(row[central.session.last.arm]))
    assert ours.ledger.frame.equals(central.ledger.frame)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.long
def test_batches_are_episodes_of_the_central_policy(cls):
    """With a budget so loose that noise decides nothing: arms, lengths, and the ledger."""
    budget, means, played = dpb.PureDP(40.0), [0.9, 0.1, 0.5], []
    ours, central = server(cls, budget=budget), CLASSES[cls](3, budget=budget, seed=2)
    for _ in range(25):
        n = ours.protocol.batch
        arm, learned = play_batch(ours, lambda arm: means[arm])
        assert learned
        played += n * [arm]
    for arm in played:
        assert central.pull().arm == arm
        central.update(means[arm])
    central.pull()
    assert ours.rounds == len(played)
    assert ours.ledger.frame.equals(central.ledger.frame)
    assert ours.ledger.spent() == dpb.PureDP(40.0)
    estimates = [one.session.state.public.estimate for one in (ours, central)]
    assert np.abs(estimates[0] - estimates[1]).max() < 0.1


@pytest.mark.long
@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (-3.0, 1.0)])
def test_what_is_released_has_the_law_of_laplace_noise_once(reward_range):
    """The first batch, of one person.  KS at alpha 1e-4; noise half as much again fails, as noise
    added twice would.
    """
    lo, hi = reward_range
    reward, width, found = lo + 0.7 * (hi - lo), hi - lo, []
    for seed in range(800):
        policy = server(reward_range=reward_range, seed=seed)
        play_batch(policy, lambda arm: reward)
        found.append(released(policy))
    law = stats.laplace(reward, width)
    assert stats.kstest(found, law.cdf).pvalue > 1e-4
    assert stats.kstest(found, stats.laplace(reward, 1.5 * width).cdf).pvalue < 1e-4
    assert stats.kstest(found, stats.laplace(reward, width / 1.5).cdf).pvalue < 1e-4


def test_noise_does_not_grow_with_the_batch():
    """The scale of the noise on the sum of 64 people is that on one person's."""
    policy = server()
    while policy.protocol.batch < 64:
        play_batch(policy, lambda arm: 0.5)
    protocol = policy.protocol
    assert protocol.noise_std == pytest.approx(math.sqrt(2.0), rel=1e-3)
    assert protocol.epsilon <= 1.0


@pytest.mark.long
@pytest.mark.parametrize("cls", CLASSES)
def test_regret_is_that_of_the_central_policy(cls):
    """Messages against the compiled loop of the central policy, to four standard errors, which are
    less than a third of what half the budget would cost.
    """
    horizon, runs, budget = 1200, 60, dpb.PureDP(0.5)
    rng = np.random.default_rng(4)

    def regret(seed):
        policy, total = server(cls, budget=budget, seed=seed), 0.0
        while policy.rounds < horizon:
            n = min(policy.protocol.batch, horizon - policy.rounds)
            device, shuffler = policy.device(), policy.shuffler()
            rewards = rng.random(policy.protocol.batch) < MEANS[device.arm]
            policy.receive(shuffler.shuffle([device.report_many(rewards)]))
            total += n * (MEANS.max() - MEANS[device.arm])
        return total

    ours = np.array([regret(seed) for seed in range(runs)])
    central = dpb.simulate(
        [CLASSES[cls](3, budget=one) for one in (budget, dpb.PureDP(0.2))],
        Bernoulli(MEANS),
        horizon=horizon,
        runs=1000,
        seed=1,
    ).runs.groupby("budget", sort=False)["regret"]
    (mean, stricter), spread = central.mean(), central.std().iloc[0]
    error = math.hypot(ours.std() / math.sqrt(runs), spread / math.sqrt(1000))
    assert abs(ours.mean() - mean) < 4 * error
    assert stricter - mean > 4 * error


@pytest.mark.parametrize("kind", ["arms", "features"])
def test_guarantees_say_what_parties_must_not_do(kind):
    private = {"features": 2, "horizon": 1000, "protects": "contexts and rewards", "batch": 4}
    budget = dpb.ApproxDP(1.0, 1e-3) if kind == "features" else dpb.PureDP(1.0)
    options = {"trust": "shuffle", "messages": True, **(private if kind == "features" else {})}
    told = dpb.bandit(3, budget=budget, **options).guarantee.assumptions
    for words in (
        "messages of noise alone",
        "the shuffler knows this noise, so this noise does not protect rewards",
        "never share what they see",
        "holds none of the tickets",
        "from a source that people trust",
        "no older copy",
        "the time of sending does not depend",
        "nobody but the shuffler sees messages before they leave the shuffler",
    ):
        assert sum(words in one for one in told) == 1, words


def test_guarantees_say_who_is_trusted():
    ours = server(dropout=0.25).guarantee
    assert (ours.trust_model, ours.view, ours.holds) == ("shuffle", "shuffle", dpb.PureDP(1.0))
    assert any("all but 25 % of the people of a batch" in one for one in ours.assumptions)
    assert any("a reward has no protection of its own" in one for one in ours.assumptions)
    trusting = server(messages=False).guarantee
    assert (trusting.trust_model, trusting.view) == ("central", "interactive")
    assert any("messages=True" in one for one in trusting.caveats)
    simulated = server(messages=False).guarantee_in_simulations
    assert (simulated.trust_model, simulated.view) == ("shuffle", "shuffle")
    assert server(budget=None, messages=False).guarantee.trust_model == "none"


def test_without_those_who_drop_out_the_noise_is_still_enough():
    policy = server(dropout=0.3)
    while policy.protocol.batch < 8:
        assert policy.protocol.dropout == math.floor(0.3 * policy.protocol.batch)
        play_batch(policy, lambda arm: 0.5)
    assert policy.protocol.dropout == 2


def test_batches_that_are_short():
    """Filled up with the middle of the range; or discarded, and played again."""
    policy = server(budget=dpb.PureDP(40.0))
    while policy.protocol.batch < 8:
        play_batch(policy, lambda arm: 1.0)
    rounds, arm = policy.rounds, policy.device().arm
    assert play_batch(policy, lambda arm: 1.0, people=2, short="discard") == (arm, False)
    assert (policy.rounds, policy.device().arm) == (rounds, arm)
    assert play_batch(policy, lambda arm: 1.0, people=2) == (arm, True)
    assert policy.rounds == rounds + 8
    assert released(policy) == pytest.approx(2 * 1.0 + 6 * 0.5, abs=0.5)


@pytest.mark.parametrize(
    ("reward", "counts"), [(None, 0.25), (math.nan, 0.25), (7.0, 1.0), (-math.inf, 0.0), (0.6, 0.6)]
)
def test_what_devices_make_of_a_reward(reward, counts):
    found = []
    for seed in range(40):
        policy = server(budget=dpb.PureDP(40.0), default_reward=0.25, seed=seed)
        play_batch(policy, lambda arm: reward)
        found.append(released(policy))
    assert np.mean(found) == pytest.approx(counts, abs=4 * math.sqrt(2 / 40) / 40)


def test_devices_travel_and_have_noise_of_their_own():
    policy = server()
    device = pickle.loads(pickle.dumps(policy.device()))
    assert repr(device) == "<RewardDevice for a batch of arm 0>"
    sent = {int(policy.device().report(1.0).values[0, 0]) for _ in range(20)}
    assert len(sent) > 10
    assert device.report("good").values.shape == device.report().values.shape  # never silent


def test_secure_noise_of_devices():
    policy = server(noise="secure", seed=None)
    assert policy.device().randomizer.caveats == ()
    assert play_batch(policy, lambda arm: 1.0) == (0, True)
    assert not policy.guarantee.simulated


def test_messages_of_another_batch_are_refused():
    policy = server()
    mixed = policy.shuffler().close()
    assert policy.receive(mixed)
    before = policy.rounds, policy.ledger.releases
    for wrong in (mixed, Messages(np.zeros(2, np.int64), 1), Messages(np.zeros(1), 1)):
        with pytest.raises(dpb.ArgumentError):
            policy.receive(wrong)
    assert (policy.rounds, policy.ledger.releases) == before


def test_a_saved_server_goes_on(tmp_path):
    """With its release in the journal, one that was lost is charged, and its batch is over."""
    policy = server()
    for _ in range(4):
        play_batch(policy, lambda arm: 0.5)
    path = policy.save(tmp_path / "server.dpb")
    assert play_batch(policy, lambda arm: 0.5)[1]
    lost = policy.ledger.releases
    del policy
    again = dpb.load(path)
    assert again.ledger.releases == lost
    assert play_batch(again, lambda arm: 0.5)[1]
    span = again.session.state.wall.ledger.span[: len(again.ledger)]
    assert np.all(span[1:, SPAN.first] > span[:-1, SPAN.last])
    assert again.ledger.spent() == dpb.PureDP(1.0)


def test_no_batch_is_larger_than_devices_take():
    """After 250,000 people of an arm its next batch would have more than 80,000, and later ones more
    than the 100,000 at which every device refuses: then the bandit would stand still.
    """
    server = dpb.ArmsShuffled(2, budget=dpb.PureDP(40.0), messages=True, seed=1)
    free = dpb.ArmsShuffled(2, budget=dpb.PureDP(40.0), messages=False, seed=1)
    sizes = {server: [], free: []}
    for policy, found in sizes.items():
        for _ in range(60):
            choice, n = policy.session.coming()
            found.append(n)
            episodes.receive_sum(policy.session, n * [0.9, 0.1][choice.arm])
    assert max(sizes[server]) == 100_000 < max(sizes[free])
    assert server.device().randomizer.protocol.batch == server.protocol.batch == 100_000
    large = dpb.parts.Fixed(100_001)
    with pytest.raises(dpb.ArgumentError, match="batches must have at most 100000 rounds"):
        dpb.ArmsShuffled(2, budget=dpb.PureDP(1.0), batches=large, messages=True)
    dpb.ArmsShuffled(2, budget=dpb.PureDP(1.0), batches=large)


def test_epochs_are_cut_to_what_devices_take():
    """Two arms are alike, and one is worse by 0.025: only a cut epoch can tell that."""
    means, own = [0.5, 0.5, 0.475], {"horizon": 10_000, "budget": dpb.PureDP(40.0), "seed": 1}
    server = DPSESDP(3, messages=True, **own)
    free = DPSESDP(3, messages=False, **own)
    played = {server: [], free: []}
    for policy, found in played.items():
        for _ in range(16):
            choice, n = policy.session.coming()
            found.append((choice.arm, n))
            episodes.receive_sum(policy.session, n * means[choice.arm])
    sizes = {policy: [n for _, n in found] for policy, found in played.items()}
    assert max(sizes[server]) == 100_000 < max(sizes[free])
    assert [n for n in sizes[free] if n <= 100_000] == [n for n in sizes[server] if n < 100_000]
    assert [arm for arm, n in played[server] if n == 100_000] == [0, 1, 2, 0, 1, 0, 1]
    assert server.device().randomizer.protocol.batch == 100_000
    with pytest.raises(dpb.ArgumentError, match="budget must be larger with messages=True"):
        DPSESDP(3, horizon=10_000, budget=dpb.PureDP(1e-3), messages=True)
    DPSESDP(3, horizon=10_000, budget=dpb.PureDP(1e-3))


def test_what_is_refused():
    with pytest.raises(dpb.ArgumentError, match="messages must be False for pull"):
        server().pull()
    with pytest.raises(dpb.UpdateError):
        server().update(1.0)
    with pytest.raises(dpb.ArgumentError, match="messages must be True"):
        server(messages=False).receive(server().shuffler().close())
    for options in ({"max_rounds": 3}, {"clip": False}, {"choices_public": True}):
        with pytest.raises(dpb.ArgumentError, match=rf"^{next(iter(options))} must be"):
            server(**options)
        server(messages=False, **options)
    with pytest.raises(dpb.ArgumentError, match="budget must not be None"):
        server(budget=None).device()
    with pytest.raises(dpb.ArgumentError, match="dropout"):
        server(dropout=1.0)
