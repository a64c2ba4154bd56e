"""The meaning of a budget, in two numbers and in one sentence.

An adversary knows everything except the data of one unit, and thinks two possible values of them
equally likely.  P and Q are the laws of the adversary's observations under either value, and L =
ln(dP / dQ) is the privacy loss.  Both numbers follow from the budget alone, for any mechanism that
keeps it.

**How often a guess is right on average.**  The best guess is right with probability (1 + V) / 2,
where V is the total variation of P and Q.

* epsilon-DP and (epsilon, delta)-DP: V <= (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh
  & Viswanath 2015).
* rho-zCDP, and Renyi DP with epsilon in the place of rho: both Kullback-Leibler divergences are at
  most rho, because Renyi divergences rise with their order.  Let A be the event on which a guess
  of P is right, p = P(A) and q = Q(A), p - q = V.  By data processing the sum of both divergences
  is at least (p - q) (logit p - logit q), which is least where p + q = 1.  So V ln((1 + V) / (1 -
  V)) <= rho.  Each (epsilon, delta)-DP statement that follows bounds V, too; the least one counts.
* mu-GDP: V <= 2 Phi(mu / 2) - 1, which Gaussian noise attains (Dong, Roth & Su 2022).

**How far a belief can rise.**  After an outcome the odds of the true value are e^L.  So a belief of
50 % rises above 1 / (1 + e^-t) with the probability that L > t.

* epsilon-DP: L <= epsilon always.
* (epsilon, delta)-DP: for S = {L > t}, P(S) <= e^epsilon Q(S) + delta <= e^(epsilon - t) P(S) +
  delta.  Hence P(S) <= delta / (1 - e^(epsilon - t)).  That is at most p for t = epsilon - ln(1 -
  delta / p).  (That L > epsilon has a probability of at most delta is false in general.)
* (alpha, epsilon)-RDP: E[e^((alpha - 1) L)] <= e^((alpha - 1) epsilon), hence P(L > epsilon + ln(1
  / p) / (alpha - 1)) <= p, by Markov's inequality.
* rho-zCDP: P(L > rho + 2 sqrt(rho ln(1 / p))) <= p, at the best order (Bun & Steinke 2016).
* mu-GDP: for S = {L > t}, let s = P(S), hence Q(S) <= e^-t s.  To say "P" on S is a test, hence s
  <= Phi(Phi^-1(Q(S)) + mu).  So t <= h(s) with h(s) = ln s - ln Phi(Phi^-1(s) - mu).  h falls in s,
  because the derivative of ln Phi does.  So P(L > h(p)) <= p.

p is 1e-6; under (epsilon, delta)-DP it is 2 delta where that is larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from .budgets import Budget, checked_budget

RARE = 1e-6
_UP = 1.0 + 1e-12  # outweighs rounding


@dataclass(frozen=True)
class Meaning:
    """The meaning of a budget for one unit's data, for any mechanism that keeps it.

    Attributes:
        guess: the largest average rate of right guesses between two values; 1/2 is chance.
        belief: the largest value to which a belief of 1/2 in the true value can rise.
        exception: the probability of all outcomes in which it may rise farther; 0 for none.
        twice_delta: whether that is twice the budget's delta.

    >>> from dpbandits import ZCDP
    >>> found = Meaning.of(ZCDP(0.1))
    >>> round(found.guess, 4), round(found.belief, 4), found.exception
    (0.6109, 0.9206, 1e-06)
    """

    guess: float
    belief: float
    exception: float
    twice_delta: bool = False

    @staticmethod
    def of(budget: Budget | None) -> Meaning:
        """The meaning of a budget; of None everything may be learned."""
        return _meaning(None if budget is None else checked_budget(budget))

    def sentence(self, protects: str = "data", unit: str = "person") -> str:
        """Both numbers in words, rounded up.

        >>> from dpbandits import PureDP
        >>> for part in Meaning.of(PureDP(1.0)).sentence().replace(", ", ". ").split(". "):
        ...     print(part)
        Suppose an adversary knows everything except the data of one person
        The adversary considers two possible values of these data
        and thinks both equally likely
        After all observations
        the adversary guesses right at most 73.2 % of the time (chance: 50 %)
        The adversary's belief in the true value never rises above 73.2 %.
        """
        return (
            f"Suppose an adversary knows everything except the {protects} of one {unit}. The"
            f" adversary considers two possible values of these {protects}, and thinks both equally"
            f" likely. After all observations, the adversary {self.numbers}."
        )

    @property
    def numbers(self) -> str:
        """The part of the sentences that differs between budgets."""
        if self.guess >= 1.0:
            return "may know which one is true"
        belief = percent_up(self.belief)
        above = f"rises above {belief}"
        rises = f"never {above}"
        if belief == "100 %":
            rises = "may come close to certainty"
        elif self.exception > 0.0:
            twice = " (twice delta)" if self.twice_delta else ""
            rises = f"{above} with a probability of at most {one_in(self.exception)}{twice}"
        return (
            f"guesses right at most {percent_up(self.guess)} of the time (chance: 50 %). The"
            f" adversary's belief in the true value {rises}"
        )


def percent_up(share: float) -> str:
    """A share in percent, rounded up to as few decimals as tell it from 100.

    >>> percent_up(0.61091), percent_up(0.99996), percent_up(0.5)
    ('61.1 %', '99.996 %', '50 %')
    """
    for places in range(1, 7):
        percents = math.ceil(round(share * 10 ** (places + 2), 9)) / 10**places
        if percents < 100.0 or share >= 1.0:
            return f"{percents:.{places}f}".rstrip("0").rstrip(".") + " %"
    return "100 %"


def one_in(probability: float) -> str:
    """A small probability, rounded up.

    >>> one_in(1e-6), one_in(0.2), one_in(0.3)
    ('1 in 1,000,000', '1 in 5', '1 in 3')
    """
    return f"1 in {math.floor(1.0 / probability * (1.0 + 1e-9)):,}"


@lru_cache(maxsize=1024)
def _meaning(budget: Budget | None) -> Meaning:
    if budget is None:
        return Meaning(1.0, 1.0, 0.0)
    loss, exception = budget.loss(RARE)
    # Both numbers are promises, so they are rounded up.
    guess = min(1.0, 0.5 * (1.0 + budget.variation()) * _UP)
    belief = 1.0 / (1.0 + math.exp(-min(loss, 700.0)))  # what the loss makes of one half
    twice_delta = 0.0 < exception == 2.0 * budget.failure
    return Meaning(guess, min(1.0, belief * _UP), exception, twice_delta)
