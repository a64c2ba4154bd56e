"""The service behind ``dpbandits serve``: private decisions over HTTP, durable and within budget.

* ``declaration``: what an experiment is.
* ``experiment``: a policy, and what the service remembers around it.
* ``owner``: the thread that has all policies, and commits many requests at once.
* ``app``: addresses, keys and problem details.
* ``console``: pages for operators.
"""
