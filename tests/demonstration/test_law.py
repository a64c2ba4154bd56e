"""Sums that passed three processes: what the service learned, and the law of their noise."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dpbandits.demonstration import parties as module
from dpbandits.demonstration import people as drawing
from dpbandits.demonstration.parties import BATCHES, started
from dpbandits.demonstration.people import People
from dpbandits.policies import Chooser
from dpbandits.shuffle import Analyzer, Messages

PEOPLE, FEATURES, ALPHA = 40, 6, 1e-4


@pytest.mark.long
def test_the_sums_of_three_processes_have_the_law_of_simulations(tmp_path, monkeypatch):
    """Batches of two people, with 27 numbers each.  The noise of one of them would be noticed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(module.__file__).parents[2]))
    monkeypatch.setenv("DPBANDITS_STATE_DIR", str(tmp_path / "own"))
    theta = np.linspace(-0.5, 0.5, FEATURES)
    for name, value in {"FEATURES": FEATURES, "_THETA": theta}.items():
        monkeypatch.setattr(drawing, name, value)
    monkeypatch.setattr(module, "FEATURES", FEATURES)
    people, found, expected = People.drawn(PEOPLE, 5), [], []
    with started(tmp_path, people) as parties:
        policy, protocol = parties.policy, parties.policy.protocol
        device = policy.device()
        for batch in range(BATCHES):
            came = parties.play(batch, lambda _: None)
            total = sum(one.message for one in came) % protocol.modulus
            policy.receive(Messages(total, batch))
            expected.append(
                [record(device, people, 2 * batch + i, one.arm) for i, one in enumerate(came)]
            )
            found.append(Analyzer(protocol).aggregate(Messages(total, batch)))
        told = Chooser.from_json(parties.reader.text("chooser"), like=policy.chooser())
    for name, learned in policy.chooser().public.items():
        assert np.allclose(told.public[name], learned, rtol=1e-9), name
    vectors = np.array(expected)
    noise = np.array(found) - vectors.sum(axis=1)

    def p_values(one):
        """Of the mean of the noise, and of its variance."""
        rng, size = np.random.default_rng(1), noise.size
        shown = vectors[:, : one.batch]
        simulated = np.array(
            [one.simulate_sums(shown, rng) - shown.sum(axis=1) for _ in range(200)]
        )
        mean = noise.mean() / simulated.std() * np.sqrt(size)
        spread = ((noise / simulated.std()) ** 2).mean() - 1.0
        return [2 * stats.norm.sf(abs(z)) for z in (mean, spread * np.sqrt(size / 2))]

    assert min(p_values(protocol)) > ALPHA / 2
    assert p_values(replace(protocol, batch=1))[1] < ALPHA
    assert p_values(replace(protocol, noise=2 * protocol.noise))[1] < ALPHA


def record(device, people, person, arm):
    """What the device of a person makes messages of."""
    x, reward = people.contexts[person, arm], people.rewards[person, arm]
    made: np.ndarray = device._record(arm, x, float(reward)) / device._params.diagonal
    return made
