"""Which policies stand for all others in ``make test``."""

# One name for each way to be shown something, to learn, to draw, and to release: of the tests that
# compile the loop or the release of every policy, those of other names are long.
KINDS = (
    "AdaCGOPE",  # phases of fixed arms
    "AdaCOFUL",  # contexts, rare releases
    "AdaCUCB",  # episodes of arms
    "EXP4",  # advice
    "HTINF",  # random batches
    "LDPUCB",  # at once, of one arm
    "LinUCBJDP",  # private contexts
    "PrivateLinUCB",  # a running sum
)
