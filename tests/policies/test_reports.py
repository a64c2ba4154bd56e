"""Policies that take reports: whoever does not answer is hidden among those who do."""

import math

import numpy as np
import pytest
from scipy import stats

import dpbandits as dpb

ADVICE = np.random.default_rng(5).dirichlet(np.ones(3), 4)
DEFAULT = 0.25
SILENCES = {
    "expires": lambda policy, decision: policy.expire(decision),
    "deviates": lambda policy, decision: policy.update(0.9, decision, arm=1 - decision.arm),
}


def ldp(**options):
    options = {"budget": dpb.PureDP(1.0), "reports": True, "default_reward": DEFAULT} | options
    return dpb.papers.others.LDPUCB(2, **options)


def entered(policy, silence, count):
    """What entered in the place of answers that did not come: each round is released by itself."""
    found = []
    for _ in range(count):
        assert silence(policy, policy.pull())
        found.append(policy.session.state.wall.release[0])
    return found


@pytest.mark.parametrize("silence", SILENCES)
def test_a_missing_report_is_a_randomised_default(silence):
    policy = ldp(seed=3)
    found = entered(policy, SILENCES[silence], 3000)
    law = stats.laplace(DEFAULT, policy.noise_scale)
    assert stats.kstest(found, law.cdf).pvalue > 1e-4
    for wrong in (stats.laplace(DEFAULT, 0.75 * law.std() / math.sqrt(2)), stats.laplace(0, 1)):
        assert stats.kstest(found, wrong.cdf).pvalue < 1e-4  # enough of them to tell


def test_what_no_device_sends_is_refused_and_can_be_answered_again():
    policy = ldp(seed=3)
    decision = policy.pull()
    for report in (math.nan, math.inf, 1e9):
        with pytest.raises(dpb.ArgumentError, match=r"^reward must be a number in"):
            policy.update(report, decision)
    assert (policy.diagnostics.missing, policy.diagnostics.clipped, policy.rounds) == (0, 0, 0)
    assert policy.update(17.5, decision)  # far outside of the range, as reports may be
    assert policy.session.state.wall.release[0] == 17.5
    assert policy.diagnostics.clipped == 0


def test_secure_noise_hides_it_too():
    policy = ldp(noise="secure", grid=2.0**-32)
    found = np.array(entered(policy, SILENCES["expires"], 20))
    assert len(set(found)) == 20
    assert np.all(found / policy.grid % 1 == 0)


def test_without_noise_or_reports_it_is_the_default():
    assert entered(ldp(budget=None), SILENCES["expires"], 3) == [DEFAULT] * 3
    # where the wall adds noise, what enters is exact
    policy = ldp(reports=False, seed=3, answers_within=0)
    assert policy.session.intake.substitute() == DEFAULT


def test_reports_that_are_late_or_missing_at_the_end_of_an_episode_are_randomised():
    def released(seed, **options):
        options = {"budget": dpb.PureDP(1.0), "reports": True} | options
        policy = dpb.algorithms.LocalEXP4(3, 4, horizon=2000, seed=seed, **options)
        while policy.ledger.releases == 0:
            policy.pull(ADVICE)  # nobody answers
        return policy.session.state.wall.release.tolist()

    # The advice is the same for everybody, and so are arms and weights until the first release.
    exact = {tuple(released(seed, budget=None)) for seed in range(3)}
    noisy = {tuple(released(seed)) for seed in range(3)}
    assert len(noisy) == 3
    assert not noisy & exact
