"""The evidence: a supermartingale, equal to its definition, under every law of noise."""

import math

import numpy as np
import pytest
import slow_evidence as definitions
from slow_evidence import Batch

from dpbandits.inference import Batches, Noise, mixture
from dpbandits.inference.mixture import Evidence, least_difference, least_sum
from dpbandits.policies.sums import _ROUNDED
from dpbandits.privacy.channels import GAUSSIAN, LAPLACE, Channel, Gaussian, Laplace
from dpbandits.privacy.discrete import raised
from dpbandits.privacy.secure import DeviceNoise


def arrays(batches: list[Batch]) -> Batches:
    return Batches(*np.array(batches, float).T)


def evidence_of(batches: list[Batch], arm: int, noise: Noise) -> Evidence:
    return Evidence.of(arrays(batches).cells(arm, noise), noise)


LAWS = [Noise(0.0, False), Noise(1.5, False), Noise(1.5, True), Noise(20.0, True)]


def played(seed: int, noise: Noise, count: int = 12) -> list[Batch]:
    rng, batches = np.random.default_rng(seed), []
    for i in range(count):
        arm, n = int(rng.integers(2)), int(rng.integers(1, 40))
        total = rng.binomial(n, (0.3, 0.6)[arm]) + noise.scale * rng.normal()
        batches.append(Batch(arm, n, float(total), int(rng.integers(i + 1))))
    return batches


@pytest.mark.parametrize("noise", LAWS)
def test_equals_its_definition(noise: Noise) -> None:
    batches = played(1, noise)
    for arm in (0, 1):
        found = evidence_of(batches, arm, noise)
        for q in (0.0, 1e-3, 0.3, 0.9, 1.0):
            law = noise.scale, noise.is_laplace
            up = definitions.evidence(batches, arm, q, *law, up=True)
            down = definitions.evidence(batches, arm, q, *law, up=False)
            assert found.up.at(1.0 - q)[0] == pytest.approx(math.log(up), abs=1e-9)
            assert found.down.at(q)[0] == pytest.approx(math.log(down), abs=1e-9)
            h = 1e-6
            slope = (found.down.at(q + h)[0] - found.down.at(q - h)[0]) / (2 * h)
            assert found.down.at(q)[1] == pytest.approx(slope, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("noise", LAWS)
def test_ends_are_those_of_the_definition_or_farther_out(noise: Noise) -> None:
    batches, a = played(2, noise, 30), 0.05
    for arm in (0, 1):
        low, high = evidence_of(batches, arm, noise).interval(a)
        law = noise.scale, noise.is_laplace

        def below(q: float, arm: int = arm, law: tuple[float, bool] = law) -> float:
            return definitions.evidence(batches, arm, q, *law, up=False) - 2.0 / a

        def above(q: float, arm: int = arm, law: tuple[float, bool] = law) -> float:
            return 2.0 / a - definitions.evidence(batches, arm, q, *law, up=True)

        exact = definitions.crossing(above, 0.0, 1.0), definitions.crossing(below, 0.0, 1.0)
        assert exact[0] - 1e-7 <= low <= exact[0] + 1e-12
        assert exact[1] - 1e-12 <= high <= exact[1] + 1e-7


@pytest.mark.parametrize("noise", LAWS[:3])
def test_least_sum_is_bounded_from_below(noise: Noise) -> None:
    batches = played(3, noise, 8)
    b, c = (evidence_of(batches, arm, noise) for arm in (1, 0))
    for d in (-0.1, 0.2):
        grid = definitions.difference_below(batches, 1, 0, d, noise.scale, noise.is_laplace)
        assert grid - 0.05 <= least_sum(b, c, d) <= grid
    low, high = least_difference(b, c, 0.025), -least_difference(c, b, 0.025)
    assert low < high
    assert least_sum(b, c, low) >= math.log(40.0) > least_sum(b, c, low + 1e-6)


# Exact enumeration -----------------------------------------------------------------------------


class Case:
    """Two batches of one arm.  Length and tilts of the second depend on the first release."""

    def __init__(self, q: float, channel: Channel, scale: float) -> None:
        self.q, source = q, DeviceNoise(1.0, (0.0, 1.0))
        reach = math.ceil(25 * scale)
        law = source.law(channel, scale, reach).tolist()
        self.noise = dict(zip(range(-reach, reach + 1), law, strict=True))
        # As ``Policy.noise_scale`` has it.
        drawn = raised(scale) if channel.family == GAUSSIAN else scale
        self.law = Noise(drawn + _ROUNDED, channel.family == LAPLACE)

    @staticmethod
    def following(total: int) -> int:
        return 8 if total < 2 else 2

    def growth(self, law: Noise, *, up: bool) -> np.ndarray:
        """The mean of M after the second release, relative to M after the first, by the first."""
        found, q = [], self.q
        for y, likely in definitions.laws(5, q, self.noise).items():
            if likely < 1e-3:
                continue
            first = Batch(0, 5, y, 0)
            n = self.following(y)
            later = definitions.laws(n, q, self.noise)
            before = self.value([first], law, up=up)
            after = [
                p * math.exp(self.value([first, Batch(0, n, z, 1)], law, up=up) - before)
                for z, p in later.items()
                if p > 1e-18
            ]
            found.append(sum(after))
        return np.array(found)

    def value(self, batches: list[Batch], law: Noise, *, up: bool) -> float:
        found = evidence_of(batches, 0, law)
        return found.up.at(1.0 - self.q)[0] if up else found.down.at(self.q)[0]


CASES = [
    pytest.param(Case(q, channel, scale), id=f"{type(channel).__name__}-{q}-{scale}")
    for channel, scale in ((Laplace(1.0), 1.0), (Gaussian(1.0), 1.5))
    for q in (0.05, 0.5)
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("up", [True, False])
def test_is_a_supermartingale(case: Case, up: bool) -> None:
    assert (case.growth(case.law, up=up) <= 1.0 + 1e-9).all()


@pytest.mark.parametrize("case", CASES)
def test_noise_forgotten_fails_the_same_gate(case: Case) -> None:
    growth = [case.growth(Noise(0.0, False), up=up) for up in (True, False)]
    assert (np.array(growth) > 1.0 + 1e-9).any()


def test_tilts_that_see_their_batch_fail_the_same_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    single = Batches.single

    def seeing(batches: Batches, arm: int, noise: Noise) -> mixture.Cells:
        told = single(batches, arm, noise)
        guess = mixture._guess(told.rounds, told.total, noise)
        return told._replace(variance=0.25 / math.sqrt(2.0) ** guess[1:])

    monkeypatch.setattr(Batches, "single", seeing)
    growth = [
        case.values[0].growth(case.values[0].law, up=up) for case in CASES for up in (True, False)
    ]
    assert max(one.max() for one in growth) > 1.0 + 1e-9
