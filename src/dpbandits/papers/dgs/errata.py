"""What is wrong in the paper, as cards tell it: sentences of ``docs/errata.md``."""

from ...protocol import Erratum

DGS = Erratum(
    "LinUCB-DGS",
    (
        "The theorem is false where its assumption holds.",
        "A record is in all later nodes.",
        "The tree's argument needs one record to be in log2(T) nodes.",
        "The node sensitivity is another.",
        "Differential privacy has to hold for every sequence of contexts, which are public and not"
        " random in Definition 1.",
        "Delta_t bounds an L2 norm; independent Laplace noise in every coordinate is charged by the"
        " L1 norm, up to sqrt(d) times as large",
    ),
)
