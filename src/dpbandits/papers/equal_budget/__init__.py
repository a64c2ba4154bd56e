"""Whether any policy has less regret than the defaults at equal budget: a study of this package,
not of a paper.

``panel`` lists the compared policies and instances, ``ranking`` ranks policies, and ``plan`` has
claims and tables.
"""
