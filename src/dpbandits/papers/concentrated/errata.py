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
