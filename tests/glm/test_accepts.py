"""What a device takes from a curator whom it does not trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpbandits import ApproxDP
from dpbandits.glm import LocalGLM
from dpbandits.privacy import Gaussian


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({}, True),
        ({"theta": np.array([0.6, 0.0])}, True),
        ({"theta": np.array([1.1, 0.0])}, False),
        ({"theta": np.array([np.nan, 0.0])}, False),
        ({"noise_channel": Gaussian(1e-4)}, False),
        ({"noise": "simulation", "seed": 7}, False),
        ({"weight": 1e9}, False),
        ({"grid": 1.0}, False),
    ],
)
def test_a_channel_of_another_model_is_not_accepted(change, accepted):
    model = LocalGLM(budget=ApproxDP(1.0, 1e-6), noise="secure")
    channel = replace(model.curator(100, 2).channel(), **change)
    assert LocalGLM(budget=ApproxDP(1.0, 1e-6), noise="secure").accepts(channel) is accepted
