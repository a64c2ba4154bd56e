"""The leak of EXP3 without noise: the paper's Figure 1."""

from __future__ import annotations

import math

import numpy as np

from ...plotting.numbers import number
from ...report.claims import Claim, Expectation
from ...report.exhibits import Exhibit, Panel, Series
from ...report.means import Estimate
from ..plans import Findings, Results, Size, spoken
from .section import PAPER, Section

LEAK = "What EXP3 leaks without noise"


def leaked(rate: float, rounds: int) -> np.ndarray:
    """P_t(2) of EXP3 without noise on two sequences of losses that differ in their first round;
    shape (2, rounds).

    Eta and gamma are ``rate``.  Both arms lose 1 in all rounds, except arm 2 in the first round of
    the first sequence, which loses nothing.  The arms 2, 1, 2, 1, ... are played, independently of
    their probabilities (Appendix G.1).
    """
    found = np.empty((2, rounds))
    for row, first in zip(found, (0.0, 1.0), strict=True):
        lead, loss = 0.0, first  # log weight of arm 2 less that of arm 1; loss of arm 2
        for t in range(rounds):
            p = (1.0 - rate) * 0.5 * (1.0 + math.tanh(lead / 2.0)) + rate / 2.0
            row[t] = p
            if t % 2 == 0:
                lead -= rate * loss / p
                loss = 1.0
            else:
                lead += rate / (1.0 - p)
    return found


def leak(size: Size) -> Section:
    """Two neighbouring sequences of losses, and their effect on the probabilities."""
    rate = 1e-3 if size.quick else 1e-4
    rounds = round(100 / rate)

    def assess(results: Results) -> Findings:
        p = leaked(rate, rounds)
        loss = np.maximum(*(np.abs(np.log(q[0] / q[1])) for q in (p, 1.0 - p)))
        return Findings(_leaks(rate, rounds, p, loss), [_leak_figure(rate, rounds, p, loss)])

    note = "The leakage of EXP3 is computed and not simulated, so its intervals have no width."
    return Section([], assess, [note])


def _leaks(rate: float, rounds: int, p: np.ndarray, loss: np.ndarray) -> list[Claim]:
    def claim(statement: str, value: float, expected: Expectation) -> Claim:
        found = Estimate(value, value, value)
        return Claim(statement, f"{PAPER}, Appendix G.1", LEAK, found, expected)

    end = f"after {spoken(rounds)} rounds with η = γ = {rate:g}"
    return [
        claim(
            f"P(2) tends to 1 − γ/2 where arm 2 lost nothing in round 1. Measured: P(2) {end}.",
            float(p[0, -1]),
            Expectation(low=0.99),
        ),
        claim(
            f"P(2) tends to γ/2 where it lost 1. Measured: P(2) {end}.",
            float(p[1, -1]),
            Expectation(high=0.01),
        ),
        claim(
            "The leakage of a single choice about round 1 is not bounded by 2η, as it is with"
            " full information. Measured: the largest log ratio of the probabilities of one"
            " choice, over 2η.",
            float(loss.max() / (2.0 * rate)),
            Expectation(low=1.0, strict=True),
        ),
        claim(
            "The leakage of a single choice grows with time. Measured: the log ratio after"
            f" {spoken(rounds)} rounds over that after {spoken(rounds // 100)}.",
            float(loss[-1] / loss[rounds // 100]),
            Expectation(low=1.0, strict=True),
        ),
    ]


def _leak_figure(rate: float, rounds: int, p: np.ndarray, loss: np.ndarray) -> Exhibit:
    t = np.unique(np.geomspace(2, rounds, 400).round().astype(int))
    nothing = np.full(t.size, np.nan)
    names = ("arm 2 lost nothing in round 1", "arm 2 lost 1 in round 1")
    chances = [
        Series(name, t, row[t - 1], nothing, nothing, dashed=bool(i))
        for i, (name, row) in enumerate(zip(names, p, strict=True))
    ]
    ratios = [Series("log ratio", t, loss[t - 1], nothing, nothing)]
    title = "Privacy loss of one choice"
    revealed = Panel(title, "round t", "log ratio", ratios, y_scale="log", line=2.0 * rate)
    return Exhibit(
        "figure-leak",
        "What one loss does to EXP3 without noise",
        "Two sequences of losses differ in round 1 only; the same arms 2, 1, 2, 1, ... are"
        f" played, η = γ = {rate:g}. Left: the probability of arm 2. Right: the larger of the"
        " two log ratios of probabilities; dotted: 2η. In the end a single choice tells the two"
        f" sequences apart with odds of e^{number(float(loss.max()))}. The reason is that the"
        " loss of one round enters the probabilities by which all later losses are divided:"
        " EXP3's own randomness protects nobody, however small η. Noise has to be added before"
        " losses are divided. Numbers computed from noisy batches afterwards, even"
        " probabilities, reveal no more than the batches do.",
        "Probability of arm 2 under two neighbouring sequences, and their log ratio, over rounds.",
        [Panel("Probability of arm 2", "round t", "P(2)", chances), revealed],
    )
