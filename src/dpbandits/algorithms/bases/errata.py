"""Errata of publications: sentences of ``docs/errata.md``, which a test compares."""

from __future__ import annotations

from ...protocol import Erratum

ADAC_OFUL = Erratum(
    "AdaC-OFUL",
    (
        "The experiments are not rho-zCDP.",
        "The proof needs |x| <= 1 and |r| <= 1.",
        "Here both are brought within their bounds; clip=False reproduces the experiments and voids"
        " the guarantee.",
    ),
)
LINPRIV = Erratum(
    "LinPriv",
    (
        "The sum of |x|_{V^-1} is not below 2 d ln(1 + n / (lambda d)); the sum of its squares is.",
        "It needs lambda >= 1, or min(1, .) around each square",
    ),
)
ADVERSARIAL = Erratum(
    "EXP3, HTINF and FTPL on noisy batch losses",
    (
        "Algorithm 4 plays an arg min and resamples until an arg max returns to the same arm.",
        "Corollary 1 divides by log^2(epsilon K T), which vanishes at epsilon K T = 1.",
    ),
)
EXPERTS = Erratum(
    "Expert advice",
    (
        "Advice is not protected.",
        "Theorem 4 is said to hold for the experts' advice as well.",
        "Batches of floor(1 / epsilon) (Theorem 4) make the noise up to twice what the bound takes"
        " it for, and none at all above epsilon = 1.",
        "Theorem 6 has a smaller range than it says.",
    ),
)
ADVERSARIAL_THEOREMS = Erratum(
    "Theorems on adversarial bandits",
    ("Corollary 3 does not follow.", "Theorem 8 drops a factor 9"),
)
SHUFFLED_MESSAGES = Erratum(
    "Shuffle-private linear bandits: Gaussian messages",
    (
        "The lemma says nothing about the experiments.",
        "What is proved there is the level of one message without a shuffler, and enumerating"
        " clones adds nothing.",
    ),
)
SHUFFLED_BITS = Erratum(
    "Shuffle-private linear bandits: sums of bits",
    (
        "Its shuffler would then be missing: the randomiser puts the bits of a person's number"
        " first, ones before zeros, and those of the noise behind: the message shows the number.",
        "Here the device puts its bits in random order",
        "at (10, 0.1) P_Amp does not keep what is claimed, as far as anything is proved.",
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
        "Far more noise than the budget asks for.",
        "At delta = 10⁻⁶ and m = 15 that is so from epsilon = 275 on; up to 200 the claim is"
        " proved.",
    ),
)
REPORTS = Erratum(
    "LinUCB on randomised reports",
    ("Far more noise than the budget asks for.", "guarantee.holds says so for every budget."),
)
GLM_REPORTS = Erratum(
    "Generalised linear bandits on randomised reports",
    (
        "The gradient's bound is not enforced.",
        "Where Gaussian noise is added to the same gradients, in LDP-GLOC, no such cut takes place,"
        " and for linear and Poisson rewards no budget holds at all.",
        "Here gradients are cut on the device in both.",
    ),
)
ANTICIPATING = Erratum(
    "Definitions for generalised linear models",
    (
        "Anticipating joint privacy conditions on the history of actions.",
        "A policy that stores noise fails that whatever it does, because to know a_t as the policy"
        " drew it is to know something of that noise.",
        "Read as an intervention, arms up to then being set by the adversary, it holds.",
    ),
)
