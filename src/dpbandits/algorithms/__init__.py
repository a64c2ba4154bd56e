"""One file or folder per family of algorithms; each registers its policies."""

from .adap_tt import AdaPTT
from .adversarial import (
    EXP3,
    EXP3IX,
    FTPL,
    HTINF,
    BatchConversion,
    ExpertConversion,
    Learner,
    TsallisINF,
    register_learner,
)
from .dgs import ExactLoss, LinUCBDGS
from .doubling import AdaCUCB, AdaPKLUCB, AdaPKLUCBSDP, AdaPUCB, AdaPUCBSDP
from .elimination import DPSE, DPSEBAI, DPSESDP
from .exp4 import EXP4, BatchedEXP4, FrozenEXP4, LocalEXP4
from .fixed_linucb import FixedLinUCB
from .glm import (
    GLMUCB,
    GLMUCBJDP,
    LDPGLOC,
    LDPSGD,
    GLMThompson,
    GLMThompsonJDP,
    WeightedGLMJDP,
    WeightedGLMLDP,
)
from .halving import SequentialHalving
from .lazy_thompson import LazyDPTS
from .linucb import LinearIMED, LinearThompson, LinUCB, PrivateLinUCB
from .merged import (
    DPIMED,
    DPKLUCB,
    LDPIMED,
    DiscountedIMED,
    MergedIMED,
    MergedIMEDSDP,
    MergedKLUCB,
    MergedThompson,
    MergedTopTwo,
)
from .merged_linear import MergedLinearIMED
from .oful import RSOFUL, AdaCOFUL
from .phased import DPDPE, GOPE, AdaCGOPE, AdaRGOPEVar, HannaGOPE, OutputGOPE
from .private_contexts import (
    AdaCOFULJDP,
    Device,
    LinearIMEDJDP,
    LinearIMEDLDP,
    LinearIMEDSDP,
    LinearThompsonJDP,
    LinearThompsonLDP,
    LinearThompsonSDP,
    LinUCBJDP,
    LinUCBLDP,
    LinUCBSDP,
    WishartLinUCBJDP,
)
from .stepwise import KLUCB, LDPUCB, UCB1, ThompsonSampling
from .thompson import DPTS

__all__ = [
    "DPDPE",
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "DPSEBAI",
    "DPSESDP",
    "DPTS",
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "GLMUCB",
    "GLMUCBJDP",
    "GOPE",
    "HTINF",
    "KLUCB",
    "LDPGLOC",
    "LDPIMED",
    "LDPSGD",
    "LDPUCB",
    "RSOFUL",
    "UCB1",
    "AdaCGOPE",
    "AdaCOFUL",
    "AdaCOFULJDP",
    "AdaCUCB",
    "AdaPKLUCB",
    "AdaPKLUCBSDP",
    "AdaPTT",
    "AdaPUCB",
    "AdaPUCBSDP",
    "AdaRGOPEVar",
    "BatchConversion",
    "BatchedEXP4",
    "Device",
    "DiscountedIMED",
    "ExactLoss",
    "ExpertConversion",
    "FixedLinUCB",
    "FrozenEXP4",
    "GLMThompson",
    "GLMThompsonJDP",
    "HannaGOPE",
    "LazyDPTS",
    "Learner",
    "LinUCB",
    "LinUCBDGS",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinUCBSDP",
    "LinearIMED",
    "LinearIMEDJDP",
    "LinearIMEDLDP",
    "LinearIMEDSDP",
    "LinearThompson",
    "LinearThompsonJDP",
    "LinearThompsonLDP",
    "LinearThompsonSDP",
    "LocalEXP4",
    "MergedIMED",
    "MergedIMEDSDP",
    "MergedKLUCB",
    "MergedLinearIMED",
    "MergedThompson",
    "MergedTopTwo",
    "OutputGOPE",
    "PrivateLinUCB",
    "SequentialHalving",
    "ThompsonSampling",
    "TsallisINF",
    "WeightedGLMJDP",
    "WeightedGLMLDP",
    "WishartLinUCBJDP",
    "register_learner",
]
