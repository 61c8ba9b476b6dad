"""A model of waits that is a forest, which comes from scikit-learn."""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.waiting_choice import WaitModel, predict_wait
from foresail.cloud.waiting.simulating import WaitRows
from foresail.kernels.compile import bare_kernel
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

DEPTH: Final = 114
SEED: Final = 137
_SMALLEST_LEAF: Final = 5


def forest_waits(rows: WaitRows, trees: int = 30) -> WaitModel:
    """A random forest, which predicts the mean.

    Raises ``InputError`` if scikit-learn is not installed.
    """
    forest = scikit_learn("ensemble").RandomForestRegressor(
        n_estimators=trees, max_depth=DEPTH, min_samples_leaf=_SMALLEST_LEAF, random_state=SEED
    )
    forest.fit(rows.features.astype(np.float32), rows.wait_seconds)
    grown = [each.tree_ for each in forest.estimators_]
    roots = np.concatenate(([0], np.cumsum([tree.node_count for tree in grown])[:-1]))

    def shifted(name: str) -> NDArray[np.int32]:
        return np.concatenate(
            [getattr(tree, name) + root for tree, root in zip(grown, roots, strict=True)]
        ).astype(np.int32)

    leaves = np.concatenate([tree.value[:, 0, :] / trees for tree in grown])
    return WaitModel(
        base=np.zeros(1),
        weights=np.empty(0),
        roots=roots.astype(np.int64),
        feature=np.concatenate([tree.feature for tree in grown]).astype(np.int32),
        limit=np.concatenate([tree.threshold for tree in grown]).astype(np.float64),
        left=shifted("children_left"),
        right=shifted("children_right"),
        leaves=np.ascontiguousarray(leaves, dtype=np.float64),
    )


@bare_kernel
def _predict_waits(model: WaitModel, features: Floats, quantiles: Floats) -> None:
    """Predict as ``predict_wait``, for a row of features and of quantiles per job."""
    for i in range(features.shape[0]):
        predict_wait(model, features[i], quantiles[i])


def predicted_waits(model: WaitModel, features: Floats) -> Floats:
    """Quantiles of the wait (s) by row of features, one column for each part of probability."""
    quantiles = np.empty((features.shape[0], model.base.size))
    _predict_waits(model, np.ascontiguousarray(features, dtype=np.float64), quantiles)
    return quantiles


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn, imported when something is really to be learned."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise InputError(
            "learning trees needs the package scikit-learn", expected="pip install scikit-learn"
        ) from error
