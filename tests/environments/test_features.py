"""TF-IDF and principal components against scikit-learn, for matrices that are written out and for
those that are not.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfTransformer

from dpbandits import ArgumentError
from dpbandits.environments.datasets import features
from dpbandits.environments.datasets.features import principal_features, tfidf


def counts(things=60, words=25, seed=1):
    rng = np.random.default_rng(seed)
    table = rng.poisson(0.3 * rng.exponential(size=words), size=(things, words)).astype(float)
    table[7] = 0.0  # a thing without words
    table[:, 3] = 0.0  # a word that nothing has
    return sparse.csr_array(table)


def test_tfidf_is_that_of_scikit_learn():
    ours = tfidf(counts()).toarray()
    assert ours == pytest.approx(TfidfTransformer().fit_transform(counts()).toarray(), abs=1e-12)
    assert not ours[7].any()


def test_repeated_entries_of_counts_add_up():
    """A tag that two users gave is one word that came twice."""
    rows, columns = [0, 0, 0, 1], [0, 0, 1, 1]
    repeated = sparse.csr_array((np.ones(4), (rows, columns)), shape=(2, 2))
    assert tfidf(repeated).toarray() == pytest.approx(
        tfidf(sparse.csr_array([[2.0, 1.0], [0.0, 1.0]])).toarray()
    )


@pytest.mark.parametrize("words", [25, 90])
@pytest.mark.parametrize("dense", [True, False])
def test_components_are_those_of_scikit_learn(dense, words, monkeypatch):
    """More things than words and the other way round, since the solver multiplies by the smaller
    side.
    """
    monkeypatch.setattr(features, "_DENSE", 10**6 if dense else 0)
    matrix = tfidf(counts(words=words))
    ours = principal_features(matrix, 6)
    theirs = PCA(6, svd_solver="full").fit_transform(matrix.toarray())
    theirs /= np.linalg.norm(theirs, axis=1).max()
    for i in range(6):
        sign = np.sign(ours[:, i] @ theirs[:, i])
        assert ours[:, i] == pytest.approx(sign * theirs[:, i], abs=5e-6)
    assert np.linalg.norm(ours, axis=1).max() == pytest.approx(1.0)
    assert ours.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-6)


def test_both_ways_agree_in_sign_too(monkeypatch):
    matrix = tfidf(counts(seed=2))
    dense = principal_features(matrix, 5)
    monkeypatch.setattr(features, "_DENSE", 0)
    assert principal_features(matrix, 5) == pytest.approx(dense, abs=5e-6)
    assert np.array_equal(principal_features(matrix, 5), principal_features(matrix, 5))


def test_equal_things_have_no_components():
    assert not principal_features(sparse.csr_array(np.ones((3, 2))), 2).any()


@pytest.mark.parametrize("bad", [0, 26, 2.0, None])
def test_bad_numbers_of_components_are_refused(bad):
    with pytest.raises(ArgumentError, match="components must be an integer between 1 and 25"):
        principal_features(tfidf(counts()), bad)
