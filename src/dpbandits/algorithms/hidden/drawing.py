"""Random choices of devices, from bytes: JavaScript makes the same choices of the same bytes.

Policies draw their choices from generators, as they always did.  A ``Chooser`` draws them from
bytes of the operating system: ``exact.standard_normal`` makes every normal variate of them.
"""

from __future__ import annotations

from ...policies import Kernels
from ...privacy.exact import Source, standard_normal
from .kernels import nothing_known, prepare_coins, prepare_sample, shape_sample
from .model import Params, Public


def draw(kernels: Kernels, params: Params, public: Public, take: Source) -> bool:
    """Draw from bytes what ``prepare`` draws from a generator, in the same order.

    Returns:
        Whether these kernels draw at all.
    """
    if kernels.prepare is prepare_sample:
        noise = public.sample[params.n_models]
        for m in range(params.n_models):
            for i in range(params.dimension):
                public.sample[m, i], noise[i] = standard_normal(take), standard_normal(take)
            shape_sample(params, public, m)
    elif kernels.prepare is prepare_coins and nothing_known(public):
        for m in range(params.n_models):
            public.sample[m] = [standard_normal(take) for _ in range(params.dimension)]
    return kernels.prepare in (prepare_sample, prepare_coins)
