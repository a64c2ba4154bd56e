"""Errata of publications: sentences of ``docs/errata.md``, which a test compares."""

from __future__ import annotations

from ...protocol import Erratum

ADAC_OFUL = Erratum(
    "AdaC-OFUL",
    (
        "The paper's experiments are not rho-zCDP.",
        "The proof needs |x| <= 1 and |r| <= 1.",
        "In 80 % of rounds of the experiments a record contributes more than the noise covers.",
        "Here |x| and |r| are brought within their bounds; clip=False reproduces the experiments"
        " and voids the guarantee.",
    ),
)
LINPRIV = Erratum(
    "LinPriv",
    (
        "2 d ln(1 + n / (lambda d)) bounds the sum of the squares |x|_{V^-1}^2, but not the sum of"
        " |x|_{V^-1}.",
        "The correction by Azize & Basu (2024) needs lambda >= 1, or min(1, .) around each square",
    ),
)
ADVERSARIAL = Erratum(
    "EXP3, HTINF and FTPL on noisy batch losses",
    (
        "Algorithm 4 plays an arg min, but its resampling compares the arm with an arg max.",
        "Here both are arg min.",
        "Corollary 1 divides by log^2(epsilon K T), which is 0 at epsilon K T = 1.",
    ),
)
EXPERTS = Erratum(
    "Expert advice",
    (
        "The paper says that Theorem 4 protects advice, but it does not.",
        "Here advice is public, and guarantees say this.",
        "With batches of floor(1 / epsilon) rounds (Theorem 4), the noise is up to twice as large"
        " as the bound assumes. With an epsilon above 1 a batch would have no round at all.",
        "Here 1 / epsilon is rounded up.",
        "Theorem 6 holds for a smaller range of epsilon than it says.",
    ),
)
ADVERSARIAL_THEOREMS = Erratum(
    "Theorems on adversarial bandits",
    (
        "Corollary 3 does not follow from its proof.",
        "Theorem 8 drops a factor 9 of the variance of its noise.",
    ),
)
SHUFFLED_MESSAGES = Erratum(
    "Shuffle-private linear bandits: Gaussian messages",
    (
        "Lemma B.4 (amplification by shuffling) does not cover the paper's experiments.",
        "In the experiments, only the privacy of one unshuffled message is proved.",
    ),
)
SHUFFLED_BITS = Erratum(
    "Shuffle-private linear bandits: sums of bits",
    (
        "Remark 3.7 and Corollaries C.2 and C.3 claim that a message is private even before it"
        " reaches the shuffler.",
        "But without a shuffler the message shows a person's value: the randomiser writes a"
        " value of k as k 1-bits, followed by 0-bits and then the noise bits.",
        "Here the device puts its bits in random order",
    ),
)
SHUFFLED_THEOREMS = Erratum(
    "Theorems on private contexts",
    (
        "Corollary 3.3 is void for Gaussian messages.",
        "Proposition F.3 leaves out d√T, which Lemma A.4 and Proposition 4.3 have.",
    ),
)
JOINT = Erratum(
    "LinUCB with private features",
    (
        "The published noise is far larger than the budget needs.",
        "The paper also offers Wishart noise, which only WishartLinUCBJDP uses.",
        "With delta = 10⁻⁶ and a record in 15 sums, the paper's claim is proved up to epsilon ="
        " 200, and false from 275 on.",
    ),
)
REPORTS = Erratum(
    "LinUCB on randomised reports",
    (
        "The published noise is far larger than the budget needs.",
        'With calibration="paper", guarantee.holds is the budget that it really keeps.',
    ),
)
GLM_REPORTS = Erratum(
    "Generalised linear bandits on randomised reports",
    (
        "The published code does not enforce the bound on gradients.",
        "LDP-GLOC adds Gaussian noise to these gradients without clipping, so no budget holds for"
        " linear and Poisson rewards.",
        "Here devices clip gradients in LDPSGD and LDPGLOC.",
    ),
)
ANTICIPATING = Erratum(
    "Definitions for generalised linear models",
    (
        "The paper defines anticipating joint privacy conditionally on the history of actions.",
        "No policy that stores noise meets this definition, because an arm that the policy drew"
        " itself reveals something about the noise.",
        "Guarantees here claim it in another form: the adversary sets all arms up to and including"
        " the protected round.",
    ),
)
