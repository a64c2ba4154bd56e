"""Published policies whose papers have no room of their own.

* DP-SE (Sajed & Sheffet 2019), through a shuffler (Chowdhury & Zhou 2023), and as a search for the
  best arm: ``elimination``
* AdaP-TT (Azize, Jourdan, Al Marjani & Basu 2023): ``adap_tt``
* DP-TS and Lazy-DP-TS (Hu & Hegde 2022): ``thompson``
* DP-IMED and DP-KLUCB (Azize, Wu, Honda, Orabona, Ito & Basu 2025): ``dp_imed``
* LDP-GLOC (Han, Liang, Wang & Zhang 2021): ``gloc``
* LDP-UCB-L (Ren, Zhou, Liu & Shroff 2020): ``ldp_ucb``
* LinUCB on fixed arms (Abbasi-Yadkori, Pál & Szepesvári 2011): ``fixed_linucb``

Bounds on DP-SE and on searches are in ``theory``.
"""

from ...rooms import lazily
from .adap_tt import AdaPTT
from .dp_imed import DPIMED, DPKLUCB
from .elimination import DPSE, DPSEBAI, DPSESDP
from .fixed_linucb import FixedLinUCB
from .gloc import LDPGLOC
from .ldp_ucb import LDPUCB
from .thompson import DPTS, LazyDPTS

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "DPSEBAI",
    "DPSESDP",
    "DPTS",
    "LDPGLOC",
    "LDPUCB",
    "AdaPTT",
    "FixedLinUCB",
    "LazyDPTS",
]
__getattr__ = lazily(__name__, {"theory": "theory"})
