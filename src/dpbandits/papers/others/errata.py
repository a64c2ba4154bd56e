"""What is wrong in these papers, as cards tell it: sentences of ``docs/errata.md``."""

from ...protocol import Erratum

ADAP_TT = Erratum(
    "AdaP-TT",
    (
        "The threshold of experiments is no bound.",
        "AdaPTT has a threshold that is proved",
    ),
)
DP_SE = Erratum(
    "DP-SE",
    (
        "The noise must be independent for every arm.",
        "One public implementation draws a single Laplace variable for the whole vector, which"
        " cancels in every comparison of arms: it is not private.",
    ),
)
DP_IMED = Erratum("DP-KLUCB and DP-IMED", ("The noise of many sums is taken for that of one.",))
