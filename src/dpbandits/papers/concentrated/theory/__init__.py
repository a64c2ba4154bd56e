"""Azize & Basu (2024), *Concentrated Differential Privacy for Bandits*: Theorems 1, 4 to 11, 16 and
17, Tables I and II, and LinPriv as they correct it.

Every formula was compared with its proof.  Differences are marked, and listed in docs/errata.md.
Bounds "after" the papers have constants that are derived here, in the modules that have them.
"""

from .arms import (
    adac_ucb,
    adac_ucb_minimax,
    adap_ucb,
    adap_ucb_converted,
    adap_ucb_converted_minimax,
    arms_zcdp,
    rho_of,
)
from .linear import (
    adac_gope,
    adac_gope_expected,
    adac_oful,
    gope,
    hanna_converted,
    linear_zcdp,
    linear_zcdp_sharp,
    linpriv,
    linpriv_printed,
    private_contexts,
)
from .privacy import group_actions, group_renyi, kl_bandits, kl_product, kl_transport, table_delta

__all__ = [
    "adac_gope",
    "adac_gope_expected",
    "adac_oful",
    "adac_ucb",
    "adac_ucb_minimax",
    "adap_ucb",
    "adap_ucb_converted",
    "adap_ucb_converted_minimax",
    "arms_zcdp",
    "gope",
    "group_actions",
    "group_renyi",
    "hanna_converted",
    "kl_bandits",
    "kl_product",
    "kl_transport",
    "linear_zcdp",
    "linear_zcdp_sharp",
    "linpriv",
    "linpriv_printed",
    "private_contexts",
    "rho_of",
    "table_delta",
]
