"""A client of the service: decisions over HTTP, from code that may wait and from code that may not.

``Client`` waits for replies, ``AsyncClient`` has the same methods for ``asyncio``.  Both repeat a
request that got no reply, with the same bytes, and the service recognises it.

>>> client = Client("https://bandits.example", key="dpb_...")
>>> client.experiment("shop")
Experiment('shop', Client('https://bandits.example'))

Importing this package loads neither numba nor NumPy.
"""

from ..errors import MissingExtra

try:
    import httpx as _httpx  # noqa: F401
    import msgspec as _msgspec  # noqa: F401
except ImportError as error:
    raise MissingExtra(
        "dpbandits.client needs httpx and msgspec: pip install 'dpbandits[client]'"
    ) from error

from .clients import AsyncClient, AsyncExperiment, Client, Experiment
from .exchange import Retries, ServiceError
from .messages import Decision, DecisionRequest, RewardReply, RewardRequest
from .methods import ClientMethods, ExperimentMethods

__all__ = [
    "AsyncClient",
    "AsyncExperiment",
    "Client",
    "ClientMethods",
    "Decision",
    "DecisionRequest",
    "Experiment",
    "ExperimentMethods",
    "Retries",
    "RewardReply",
    "RewardRequest",
    "ServiceError",
]
