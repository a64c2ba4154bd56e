"""Amplification by shuffling against enumerations that know no theorem."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import binom, norm

from dpbandits import privacy
from dpbandits.errors import ArgumentError
from dpbandits.privacy import gaussian_shuffle_amplification, shuffle_amplification
from dpbandits.privacy.accounting import gaussian_epsilon, gaussian_mu

DELTAS = (0.3, 0.05, 1e-2, 1e-3, 1e-5)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - np.exp(epsilon) * q, 0.0).sum())


def shuffled_law(randomiser, records):
    """The law of the multiset of reports: all outcomes of all people, one after the other."""
    law = Counter()
    for reports in itertools.product(range(randomiser.shape[1]), repeat=len(records)):
        chance = math.prod(randomiser[z, y] for z, y in zip(records, reports, strict=True))
        law[tuple(sorted(reports))] += chance
    return np.array([law[key] for key in sorted(law)])


def shuffled_pairs(randomiser, n):
    """The laws of all neighbouring inputs, in both directions."""
    inputs = range(len(randomiser))
    laws = {
        tuple(sorted(records)): shuffled_law(randomiser, records)
        for records in itertools.combinations_with_replacement(inputs, n)
    }
    for others in itertools.combinations_with_replacement(inputs, n - 1):
        for x, other in itertools.permutations(inputs, 2):
            yield laws[tuple(sorted((*others, x)))], laws[tuple(sorted((*others, other)))]


def exact_delta(pairs, epsilon):
    return max(hockey_stick(p, q, epsilon) for p, q in pairs)


def randomised_response(epsilon, inputs=2):
    table = np.ones((inputs, inputs)) + np.expm1(epsilon) * np.eye(inputs)
    return table / table.sum(axis=1, keepdims=True)


def random_randomiser(epsilon, rng):
    """Three inputs, three reports, with some column that spans all of e^epsilon."""
    while True:
        table = np.exp(epsilon * rng.integers(0, 2, (3, 3)))
        table /= table.sum(axis=1, keepdims=True)
        worst = max(np.log(column.max() / column.min()) for column in table.T)
        if worst > 0.0:
            return table, float(worst)


def splits(n, epsilon):
    """Counts of ones among n randomised bits, one person's 1 against 0, for every split of the
    others: person by person.
    """
    q = 1.0 / (1.0 + math.exp(-epsilon))
    one, zero = np.array([1.0 - q, q]), np.array([q, 1.0 - q])
    for ones in range(n):
        others = np.ones(1)
        for person in range(n - 1):
            others = np.convolve(others, one if person < ones else zero)
        yield np.convolve(others, one), np.convolve(others, zero)


def clone_pair(n, epsilon, share):
    """Theorem 3.2 as it is written, without leaving anything out."""
    q, p_law, q_law = 1.0 / (1.0 + math.exp(-epsilon)), Counter(), Counter()
    for clones in range(n):
        for alike in range(clones + 1):
            chance = binom.pmf(clones, n - 1, share) * binom.pmf(alike, clones, 0.5)
            for law, first in ((p_law, q), (q_law, 1.0 - q)):
                law[alike + 1, clones - alike] += chance * first
                law[alike, clones - alike + 1] += chance * (1.0 - first)
    return p_law, q_law


# Published numbers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "local_epsilon", "closed", "clones", "binary"),
    [
        (1_000, 1.0, 0.5662, 0.1824, 0.1266),
        (10_000, 0.5, 0.0939, 0.0204, 0.0162),
        (10_000, 1.0, 0.2140, 0.0530, 0.0357),
        (10_000, 2.0, 0.5009, 0.1550, 0.0870),
        (10_000, 4.0, None, 0.6009, 0.3146),
    ],
)
def test_numbers_computed_apart(n, local_epsilon, closed, clones, binary):
    def epsilon(method):
        return shuffle_amplification(n, local_epsilon, 1e-6, method=method).epsilon

    assert epsilon("closed") == pytest.approx(closed or local_epsilon, rel=2e-3)
    assert epsilon("clones") == pytest.approx(clones, rel=3e-3)
    assert epsilon("binary") == pytest.approx(binary, rel=3e-3)


def test_without_its_condition_the_closed_form_says_nothing():
    # log(1000 / (16 log(2e6))) = 1.46
    below, above = (shuffle_amplification(1000, e, 1e-6, method="closed") for e in (1.45, 1.47))
    assert below.amplified
    assert not above.amplified
    assert above.epsilon == 1.47
    assert "needs a local epsilon of at most" in str(above)
    assert str(above).startswith("no amplification proved, (1.47, 1e-06)-DP")


# Randomised response --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("local_epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_binary_is_the_exact_level_of_all_neighbouring_inputs(n, local_epsilon, delta):
    pairs = list(shuffled_pairs(randomised_response(local_epsilon), n))
    found = shuffle_amplification(n, local_epsilon, delta, method="binary").epsilon
    assert exact_delta(pairs, found) <= delta * (1 + 1e-12)
    if 0.0 < found < local_epsilon:
        assert exact_delta(pairs, found) > delta * (1 - 2e-3)


@pytest.mark.parametrize("local_epsilon", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("n", [20, 101])
def test_binary_is_exact_for_batches(n, local_epsilon):
    pairs = list(splits(n, local_epsilon))
    for delta in DELTAS:
        found = shuffle_amplification(n, local_epsilon, delta, method="binary").epsilon
        exact = exact_delta(pairs, found)
        assert exact <= delta * (1 + 1e-12)
        assert found == 0.0 or exact > delta * (1 - 2e-3)


def test_splits_at_the_ends_only_would_be_caught():
    pairs = list(splits(20, 1.0))
    pairs += [pair[::-1] for pair in pairs]
    ends = [pairs[0], pairs[19], pairs[20], pairs[39]]
    assert hockey_stick(*pairs[21], 0.5) == pytest.approx(0.004235, abs=1e-6)
    assert exact_delta(ends, 0.5) == pytest.approx(0.003833, abs=1e-6)
    assert exact_delta(pairs, 0.5) > 0.0042
    found = shuffle_amplification(20, 1.0, 0.0039, method="binary").epsilon
    assert exact_delta(ends, 0.5) < 0.0039 < exact_delta(pairs, 0.5)
    assert found > 0.5


# Clones ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 12, 40])
@pytest.mark.parametrize("local_epsilon", [0.3, 1.0, 2.5])
def test_clones_are_the_pair_of_the_theorem(n, local_epsilon):
    first, second = clone_pair(n, local_epsilon, math.exp(-local_epsilon))
    p, q = (np.array([law[key] for key in first]) for law in (first, second))
    for delta in DELTAS:
        found = shuffle_amplification(n, local_epsilon, delta).epsilon
        assert hockey_stick(p, q, found) <= delta * (1 + 1e-12)
        assert hockey_stick(q, p, found) <= delta * (1 + 1e-12)
        if 0.0 < found < local_epsilon:
            assert hockey_stick(p, q, found) > delta * (1 - 2e-3)


@pytest.mark.parametrize("n", [10**5, 10**6])
def test_clones_of_a_large_batch_are_hardly_rounded(n):
    local_epsilon, delta = 1.0, 1e-6
    found = shuffle_amplification(n, local_epsilon, delta).epsilon
    q = 1.0 / (1.0 + math.exp(-local_epsilon))
    clones = np.arange(*binom.ppf([1e-12, 1 - 1e-12], n - 1, math.exp(-local_epsilon)))

    def exact(epsilon):  # the loss grows with the reports that are alike: one threshold is enough
        level = (math.exp(epsilon) * q - (1 - q)) / ((2 * q - 1) * (1 + math.exp(epsilon)))
        at = np.ceil(level * (clones + 1))
        tail, point = binom.sf(at - 1, clones, 0.5), binom.pmf(at - 1, clones, 0.5)
        gain = q - math.exp(epsilon) * (1 - q)
        return binom.pmf(clones, n - 1, math.exp(-local_epsilon)) @ (
            point * gain - tail * math.expm1(epsilon)
        )

    assert exact(found) <= delta
    assert exact(found * (1 - 2e-3)) > delta


@pytest.mark.parametrize("seed", range(12))
def test_clones_cover_every_randomiser(seed):
    rng = np.random.default_rng(seed)
    table, local_epsilon = random_randomiser(float(rng.uniform(0.3, 2.5)), rng)
    pairs = list(shuffled_pairs(table, 4))
    for delta in DELTAS:
        found = shuffle_amplification(4, local_epsilon, delta).epsilon
        assert exact_delta(pairs, found) <= delta * (1 + 1e-12)


def test_where_only_the_hidden_person_can_say_it_there_are_few_clones():
    # The report 0 is e^epsilon as likely from the two records that differ as from everyone else:
    # the case in which the erratum of the stronger clones finds fault with their proof.
    rare = 0.3
    table = np.array([[rare, 0.6, 0.1], [rare, 0.1, 0.6], [rare / 6, 0.35, 0.65 - rare / 6]])
    local_epsilon = max(math.log(column.max() / column.min()) for column in table.T)
    half = (table[0] + table[1]) / 2
    assert (table[2] >= math.exp(-local_epsilon) * half - 1e-15).all()
    assert (table[2] < 2 / (math.exp(local_epsilon) + 1) * half).any()
    pairs = list(shuffled_pairs(table, 5))
    for delta in DELTAS:
        found = shuffle_amplification(5, local_epsilon, delta).epsilon
        assert exact_delta(pairs, found) <= delta * (1 + 1e-12)


# Randomisers that are (epsilon, delta)-DP -----------------------------------------------------


@pytest.mark.parametrize("local_delta", [1e-4, 1e-3, 1e-2])
def test_a_local_delta_is_paid_for(local_delta):
    local_epsilon, n = 1.0, 4
    table = np.zeros((3, 6))  # with probability local_delta the record itself
    table[:, :3] = (1 - local_delta) * randomised_response(local_epsilon, 3)
    table[:, 3:] = local_delta * np.eye(3)
    pairs = list(shuffled_pairs(table, n))
    for delta in (0.3, 0.1, 0.05):
        found = shuffle_amplification(n, local_epsilon, delta, local_delta=local_delta)
        assert exact_delta(pairs, found.epsilon) <= delta * (1 + 1e-12)
        assert found.epsilon <= local_epsilon
        free = shuffle_amplification(n, local_epsilon, delta)
        assert found.epsilon > free.epsilon or found.epsilon == 0.0


def test_a_local_delta_is_paid_for_in_every_batch():
    local_delta, batches, delta = 1e-3, 8, 0.1
    found = shuffle_amplification(2, 0.2, delta, local_delta=local_delta, batches=batches)
    shown = 1 - (1 - local_delta) ** batches  # the record itself, at least once
    free = shuffle_amplification(2, 0.2, delta - shown, batches=batches)
    assert found.amplified
    assert found.epsilon > free.epsilon > 0.1


def test_a_large_local_delta_leaves_the_local_level():
    found = shuffle_amplification(1000, 1.0, 1e-6, local_delta=1e-8)
    assert (found.epsilon, found.amplified) == (1.0, False)
    found = shuffle_amplification(1000, 1.0, 1e-6, local_delta=1e-8, method="closed")
    assert (found.epsilon, found.amplified) == (1.0, False)
    assert "cost" in found.reason


@pytest.mark.parametrize("n", [10**3, 10**4])
@pytest.mark.parametrize("local_epsilon", [0.1, 0.5, 1.0, 1.4])
@pytest.mark.parametrize("local_delta", [0.0, 1e-12])
def test_clones_prove_more_than_the_closed_form(n, local_epsilon, local_delta):
    closed, clones = (
        shuffle_amplification(n, local_epsilon, 1e-6, local_delta=local_delta, method=method)
        for method in ("closed", "clones")
    )
    assert closed.amplified
    assert clones.epsilon < closed.epsilon / 2


# Batches --------------------------------------------------------------------------------------


def adaptive_delta(n, local_epsilon, batches, epsilon):
    """The delta of randomised response where the other people of a batch are chosen, bit by bit,
    after seeing the batches before: by dynamic programming over what was seen.
    """
    pairs = list(splits(n, local_epsilon))

    def worst(left, epsilon):
        if left == 0:
            return max(0.0, -math.expm1(epsilon))
        return max(
            sum(a * worst(left - 1, epsilon - math.log(a / b)) for a, b in zip(p, q, strict=True))
            for pair in pairs
            for p, q in (pair, pair[::-1])
        )

    return worst(batches, epsilon)


@pytest.mark.parametrize("method", ["clones", "binary"])
@pytest.mark.parametrize("delta", [0.05, 0.01, 1e-3])
def test_batches_cover_an_adversary_who_fills_the_next_one(method, delta):
    for n, batches in ((6, 2), (3, 3)):
        found = shuffle_amplification(n, 0.8, delta, method=method, batches=batches).epsilon
        assert found < batches * 0.8
        exact = adaptive_delta(n, 0.8, batches, found)
        assert 0.1 * delta < exact <= delta


def test_one_split_again_and_again_is_no_bound_for_batches():
    n, local_epsilon, epsilon = 6, 0.8, 0.6
    fixed = max(
        sum(
            max(0.0, a * b - math.exp(epsilon) * c * d)
            for a, c in zip(p, q, strict=True)
            for b, d in zip(p, q, strict=True)
        )
        for pair in splits(n, local_epsilon)
        for p, q in (pair, pair[::-1])
    )
    adaptive = adaptive_delta(n, local_epsilon, 2, epsilon)
    assert adaptive > 1.05 * fixed
    found = shuffle_amplification(n, local_epsilon, 0.99 * adaptive, method="binary", batches=2)
    assert found.epsilon > epsilon


@pytest.mark.long
@pytest.mark.parametrize(("method", "share"), [("clones", math.exp(-1)), ("binary", 0.5378828)])
def test_composition_agrees_with_the_pair_spelt_out(method, share):
    first, second = (
        {key: math.log(chance) for key, chance in law.items()} for law in clone_pair(50, 1.0, share)
    )
    for upper, lower in ((first, second), (second, first)):
        spelt = pld.from_two_probability_mass_functions(
            lower, upper, value_discretization_interval=1e-4
        ).self_compose(10)
        found = shuffle_amplification(50, 1.0, 1e-4, method=method, batches=10)
        assert found.epsilon == pytest.approx(spelt.get_epsilon_for_delta(1e-4), rel=5e-3)


def test_a_published_composition():
    found = shuffle_amplification(1000, 1.0, 1e-6, batches=20)
    assert found.epsilon == pytest.approx(0.9053, abs=1e-3)


# Gaussian messages ----------------------------------------------------------------------------


def published_noise(epsilon, delta, batch):
    """sigma of Theorem 3.2 of Chowdhury & Zhou, per unit of the joint sensitivity."""
    sigma = 4 * math.sqrt(2 * math.log(2.5 * batch / delta) * math.log(2 / delta))
    return sigma / (epsilon * math.sqrt(batch)) / math.sqrt(4.5)


@pytest.mark.parametrize("method", ["clones", "closed"])
@pytest.mark.parametrize(
    ("epsilon", "sigma", "really", "enough"),
    [(0.2, 27.29, 0.0, 4.877), (1.0, 5.458, 0.1430, 2.303), (10.0, 0.5458, 11.6796, 0.598)],
)
def test_the_published_experiments_have_the_local_level_only(
    method, epsilon, sigma, really, enough
):
    multiplier = published_noise(epsilon, 0.1, 20)
    assert math.sqrt(4.5) * multiplier == pytest.approx(sigma, rel=1e-3)
    assert math.sqrt(4.5) / gaussian_mu(epsilon, 0.1) == pytest.approx(enough, rel=1e-3)
    found = gaussian_shuffle_amplification(20, multiplier, 0.1, method=method)
    assert not found.amplified
    assert found.epsilon == gaussian_epsilon(1 / multiplier, 0.1)
    assert found.epsilon == pytest.approx(really, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "lemma"), [(0.2, (0.873, 0.491)), (1.0, (2.849, 1.946)), (10.0, (24.92, 6.66e9))]
)
def test_the_published_lemma_would_say_little_in_the_published_experiments(epsilon, lemma):
    batch, delta = 20, 0.1
    local = epsilon * math.sqrt(batch / math.log(2 / delta))
    spread = math.exp(local) / batch
    amplified = 8 * math.sqrt(spread * math.log(4 / (delta / 2))) + 8 * spread
    amplified = math.log(1 + (math.exp(local) - 1) / (math.exp(local) + 1) * amplified)
    cost = delta / 2 + (math.exp(amplified) + 1) * (1 + math.exp(-local) / 2) * delta
    assert (amplified, cost) == pytest.approx(lemma, rel=2e-3)


@pytest.mark.long
def test_the_published_condition_is_out_of_reach():
    """The section of docs/errata.md."""

    def limit(batch, delta):
        return math.log(batch / (16 * math.log(2 / (delta / 2))))

    def local(epsilon, batch, delta):
        return epsilon * math.sqrt(batch / math.log(2 / delta))

    assert limit(20, 0.1) == pytest.approx(-1.08, abs=5e-3)
    batches = np.arange(1, 10**5)
    assert all(local(0.2, b, 0.1) > limit(b, 0.1) for b in batches)
    holds = [b for b in batches if local(0.1, b, 0.1) <= limit(b, 0.1)]
    assert (holds[0], holds[-1]) == (108, 6713)


@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6])
def test_the_constants_that_the_published_guarantee_hides(delta):
    hidden = []
    for batch in (10**3, 10**5, 10**7):
        for local_epsilon in (0.01, 0.1, 1.0):
            epsilon = local_epsilon * math.sqrt(math.log(2 / delta) / batch)
            found = shuffle_amplification(batch, local_epsilon, delta / 2, method="closed")
            extra = (math.exp(found.epsilon) + 1) * (1 + math.exp(-local_epsilon) / 2)
            hidden.append((found.epsilon / epsilon, 0.5 + extra))
    assert all(4.2 < ratio < 7.4 and share >= 2.865 for ratio, share in hidden)


def test_enumeration_proves_what_was_published_for_a_large_batch():
    multiplier = published_noise(0.1, 1e-6, 1000)
    closed, clones = (
        gaussian_shuffle_amplification(1000, multiplier, 1e-6, method=method).epsilon
        for method in ("closed", "clones")
    )
    assert gaussian_epsilon(1 / multiplier, 1e-6) == pytest.approx(0.2584, abs=1e-4)
    assert (closed, clones) == pytest.approx((0.2061, 0.0494), abs=1e-4)


@pytest.mark.long
def test_gaussian_messages_are_amplified_in_large_batches():
    local = gaussian_epsilon(1 / 5, 1e-6)
    closed, clones = (
        gaussian_shuffle_amplification(10_000, 5.0, 1e-6, method=m) for m in ("closed", "clones")
    )
    assert clones.amplified
    assert clones.epsilon < closed.epsilon < local
    returning = gaussian_shuffle_amplification(10_000, 5.0, 1e-6, batches=5)
    assert clones.epsilon < returning.epsilon < gaussian_epsilon(math.sqrt(5) / 5, 1e-6)


@pytest.mark.parametrize(("n", "multiplier"), [(300, 1.5), (300, 4.0), (2000, 2.0)])
def test_signs_of_shuffled_messages_show_no_more_than_the_claim(n, multiplier):
    up = norm.cdf(0.5 / multiplier)  # a message of 1/2 or -1/2 is positive
    for delta in (1e-2, 1e-4):
        found = gaussian_shuffle_amplification(n, multiplier, delta)
        for ones in range(0, n, n // 30):
            others = np.convolve(
                binom.pmf(np.arange(ones + 1), ones, up),
                binom.pmf(np.arange(n - ones), n - 1 - ones, 1 - up),
            )
            p, q = np.convolve(others, [1 - up, up]), np.convolve(others, [up, 1 - up])
            assert hockey_stick(p, q, found.epsilon) <= delta


# The door, and the edges ----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", ["clones", "closed", "binary"])
@pytest.mark.parametrize("batches", [1, 4])
def test_more_reports_and_less_asked_mean_less_loss(method, batches):
    def epsilon(n=600, local=0.7, delta=1e-4, batches=batches):
        return shuffle_amplification(n, local, delta, method=method, batches=batches).epsilon

    assert epsilon(n=620) < epsilon() < epsilon(n=580)
    assert epsilon(local=0.69) < epsilon() < epsilon(local=0.71)
    assert epsilon(delta=1.1e-4) < epsilon() < epsilon(delta=0.9e-4)
    assert epsilon() < epsilon(batches=batches + 1)


@pytest.mark.long
@pytest.mark.parametrize("method", ["clones", "closed", "binary"])
@pytest.mark.parametrize("n", [1, 2, 20, 3000])
@pytest.mark.parametrize("local_epsilon", [1e-9, 1.0, 99.9])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.filterwarnings("error")
def test_the_local_level_is_never_exceeded(method, n, local_epsilon, delta, batches):
    found = shuffle_amplification(n, local_epsilon, delta, method=method, batches=batches)
    assert 0.0 <= found.epsilon <= batches * local_epsilon
    assert found.amplified == (found.epsilon < batches * local_epsilon)
    assert found.amplified <= (n > 1)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 1.0, 0.1), {}, r"reports must be an integer between 1 and 10,000,000, got 0"),
        ((10, 0.0, 0.1), {}, r"local_epsilon must be a number in \(0, 100\), got 0"),
        ((10, 100.0, 0.1), {}, r"local_epsilon must be a number in \(0, 100\), got 100"),
        ((10, 1.0, 0.0), {}, r"delta must be a number in \(0, 1\), got 0"),
        ((10, 1.0, 1.0), {}, r"delta must be a number in \(0, 1\), got 1"),
        ((10, 1.0, 0.1), {"local_delta": 0.2}, r"local_delta must be a number in \[0, 0.1\]"),
        ((10, 1.0, 0.1), {"method": "stronger"}, r"method must be one of 'clones'"),
        ((10, 1.0, 0.1), {"batches": 0}, r"batches must be an integer between 1 and 10,000"),
        (
            (10, 1.0, 0.1),
            {"method": "binary", "local_delta": 1e-3},
            r"local_delta must be 0 for randomised response",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, options, message):
    with pytest.raises(ArgumentError, match=message):
        shuffle_amplification(*arguments, **options)


def test_bad_arguments_of_gaussian_messages_are_named():
    with pytest.raises(ArgumentError, match=r"noise_multiplier must be a number in \(0, inf\)"):
        gaussian_shuffle_amplification(10, 0.0, 0.1)
    with pytest.raises(ArgumentError, match=r"method must be one of 'clones', 'closed'"):
        gaussian_shuffle_amplification(10, 1.0, 0.1, method="binary")


def test_the_answer_is_a_value():
    found = shuffle_amplification(100, 1.0, 1e-3)
    assert found == privacy.Amplification(found.epsilon, 1e-3, True, found.reason)
    assert str(found) == f"({found.epsilon!r}, 0.001)-DP by shuffling: {found.reason}"
    assert gaussian_shuffle_amplification(5, 20.0, 0.1).epsilon == 0.0
