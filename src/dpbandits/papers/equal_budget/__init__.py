"""Whether any policy has less regret than the defaults at equal budget: a study of this package,
not of a paper.

What is compared with what stands in ``panel``, who is the best in ``ranking``, claims and tables in
``plan``.
"""
