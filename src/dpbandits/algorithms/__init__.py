"""One file or folder per family of algorithms; each registers its policies."""

from ..rooms import PAPERS, lazily
from .adversarial.adversarial import EXP3, FTPL, HTINF, Adversarial, BatchConversion
from .adversarial.learners import register_learner
from .adversarial.learning import Learner
from .arms.arms import (
    Arms,
    ArmsShuffled,
    DiscountedIMED,
    MergedIMED,
    MergedIMEDSDP,
    MergedKLUCB,
    MergedThompson,
)
from .arms.local import LDPIMED, ArmsLocal
from .exp4.experts import EXP4, ExpertConversion, Experts, ExpertsLocal, FrozenEXP4, LocalEXP4
from .glm.joint import GLMUCBJDP, GLMThompsonJDP, HiddenGLM
from .glm.local import LDPSGD, HiddenGLMLocal
from .glm.public import GLM, GLMUCB, GLMThompson
from .hidden.choosing_devices import Device
from .hidden.joint import HiddenLinear
from .hidden.local import HiddenLinearLocal
from .hidden.presets import (
    AdaCOFULJDP,
    LinearIMEDJDP,
    LinearIMEDLDP,
    LinearIMEDSDP,
    LinearThompsonJDP,
    LinearThompsonLDP,
    LinearThompsonSDP,
    LinUCBJDP,
    LinUCBLDP,
    LinUCBSDP,
)
from .hidden.shuffled import HiddenLinearShuffled
from .linear.fixed import FixedLinear, MergedLinearIMED
from .linear.policy import (
    RSOFUL,
    AdaCOFUL,
    Linear,
    LinearIMED,
    LinearThompson,
    LinUCB,
    PrivateLinUCB,
    RSLinearIMED,
)
from .search.best_arm import (
    BestArm,
    BestArmShuffled,
    MergedTopTwo,
    MergedTopTwoSDP,
    SequentialHalving,
    SequentialHalvingSDP,
)
from .search.local import LDPTopTwo
from .stepwise import KLUCB, UCB1, ThompsonSampling

__all__ = [
    "EXP3",
    "EXP3IX",
    "EXP4",
    "FTPL",
    "GLM",
    "GLMUCB",
    "GLMUCBJDP",
    "HTINF",
    "KLUCB",
    "LDPIMED",
    "LDPSGD",
    "RSOFUL",
    "UCB1",
    "AdaCOFUL",
    "AdaCOFULJDP",
    "Adversarial",
    "Arms",
    "ArmsLocal",
    "ArmsShuffled",
    "BatchConversion",
    "BatchedEXP4",
    "BestArm",
    "BestArmShuffled",
    "Device",
    "DiscountedIMED",
    "ExpertConversion",
    "Experts",
    "ExpertsLocal",
    "FixedLinear",
    "FrozenEXP4",
    "GLMThompson",
    "GLMThompsonJDP",
    "HiddenGLM",
    "HiddenGLMLocal",
    "HiddenLinear",
    "HiddenLinearLocal",
    "HiddenLinearShuffled",
    "LDPTopTwo",
    "Learner",
    "LinUCB",
    "LinUCBJDP",
    "LinUCBLDP",
    "LinUCBSDP",
    "Linear",
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
    "MergedTopTwoSDP",
    "PrivateLinUCB",
    "RSLinearIMED",
    "SequentialHalving",
    "SequentialHalvingSDP",
    "ThompsonSampling",
    "TsallisINF",
    "register_learner",
]
_OF_PAPERS = dict.fromkeys(("BatchedEXP4", "EXP3IX", "TsallisINF"), "adversarial")
__getattr__ = lazily(__name__, _OF_PAPERS, within=PAPERS)
