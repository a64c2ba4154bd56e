"""What a policy learns after its rewards were lost: no lost round counts in a later release."""

import shutil

import numpy as np
import pytest
from clinic import Clinic, died, pull

import dpbandits as dpb
from dpbandits.policies import registered

THETA = np.array([0.8, 0.5])
NAMES = (
    *("MergedIMED", "AdaPUCB", "DiscountedIMED", "LazyDPTS", "AdaPTT", "DPSE", "HTINF", "EXP4"),
    *("AdaCOFUL", "RSLinearIMED"),
)


class Equal(Clinic):
    """All rewards are 1, or linear in the features of the arm; answers come late."""

    def play(self, rounds):
        for _ in range(rounds):
            shown = np.random.default_rng(self.policy.session.rounds.pulls).uniform(0, 0.5, (3, 2))
            is_linear = self.policy.sees == "contexts"
            decision = self.policy.pull(shown) if is_linear else pull(self.policy)
            self.waiting.append((float(shown[decision] @ THETA) if is_linear else 1.0, decision))
            if len(self.waiting) > 2:
                self.policy.update(*self.waiting.pop(0))
        return self

    def error(self):
        """How far estimates are from the truth; losses of rewards of 1 are 0."""
        public = self.policy.session.state.public
        if self.policy.sees == "contexts":
            return float(np.abs(self.policy.estimates.coefficients - THETA).max())
        found = -public.losses if hasattr(public, "losses") else self.policy.estimates.means - 1.0
        return float(np.nanmax(np.abs(found), initial=0.0))

    def restored(self, folder):
        """It goes on from a backup."""
        self.policy.save(folder / "a.dpb")
        for end in ("", ".journal"):
            if (folder / f"a.dpb{end}").exists():
                shutil.copy(folder / f"a.dpb{end}", folder / f"b.dpb{end}")
        died(self)
        return Equal(dpb.restore(folder / "b.dpb"))


@pytest.mark.parametrize("name", NAMES)
def test_rounds_whose_rewards_were_dropped_bias_no_estimate(name, tmp_path):
    cls = registered()[name]
    clinic = Equal(cls(**{**cls.example, "budget": None, "seed": 11, "answers_within": 5})).play(60)
    lost = 0
    for more in (3, 11, 30):
        rounds = clinic.play(more).policy.session.rounds
        lost += len(rounds.flights) + sum(one.rounds for one in rounds.unreleased.values())
        before, clinic = clinic.error(), clinic.restored(tmp_path)
        for _ in range(4):
            assert clinic.play(20).error() <= (before if name in NAMES[-2:] else 0.0) + 1e-9
    assert lost
    assert clinic.policy.rounds <= clinic.policy.session.rounds.pulls


def test_the_last_arm_of_a_search_is_loaded(tmp_path):
    """Its quota has no end."""
    policy = registered()["DPSE"](3, horizon=3000, budget=None, seed=1)
    while policy.session.rounds.left < 2**53:
        decision = policy.pull()
        policy.update(float(decision.arm == 1), decision)
    assert dpb.load(policy.save(tmp_path / "a.dpb")).pull().arm == 1
