"""The quadratic basis."""

import numpy as np

from compiled import compiled
from foresail.predictors.kernels.basis import basis_size, expand


def test_twenty_features_give_231_terms():
    """Spec section 5."""
    assert basis_size(20) == 231


def test_terms_are_one_features_and_products():
    """Every product of two features occurs once, squares included."""
    features = np.array([2.0, 3.0, 5.0])
    basis = np.full(basis_size(3), np.nan)
    compiled(expand)(features, basis)
    assert basis.tolist() == [1, 2, 3, 5, 4, 6, 10, 9, 15, 25]
