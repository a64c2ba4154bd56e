"""What is wrong in the paper, as cards tell it: sentences of ``docs/errata.md``."""

from ...protocol import Erratum

ADAC_GOPE = Erratum(
    "AdaC-GOPE",
    (
        "Line 12 under-noises an approximate design.",
        "Here the norm is computed from the realised V.",
        "The experiments' rewards have standard normal noise and are not clipped, where the proof"
        " needs |r| <= 1.",
    ),
)
ADAC_UCB = Erratum(
    "AdaC-UCB",
    (
        "Noise is drawn once per released mean.",
        "Eq. (14) writes the index as mean + noise + bonus, which invites drawing the noise"
        " whenever the index is evaluated.",
        "Section E of the appendix uses sqrt(2 ln(1.25 / delta)) / epsilon, whose proof needs"
        " epsilon <= 1.",
        "Some of the paper's experiments add N(0, 1) noise to rewards, which no sensitivity bound"
        " covers.",
    ),
)
ADAP_UCB = Erratum(
    "AdaP-UCB and AdaP-KLUCB",
    (
        "The parallel composition lemma prints an average over 1 / (j - i) rounds of an episode"
        " from i to j; it has j - i + 1.",
    ),
)
