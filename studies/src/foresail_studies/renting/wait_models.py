"""Models of waits that are trees, which come from scikit-learn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foresail.cloud.waiting.kernels.waiting_choice import WaitModel, predict_waits
from foresail.cloud.waiting.learning import WaitRows
from foresail.model.distribution import Floats
from foresail.model.errors import InputError

DEPTH: Final = 114
SEED: Final = 137
_RATE: Final = 0.1
_SMALLEST_LEAF: Final = 5


def forest_waits(
    rows: WaitRows,
    trees: int = 50,
    smallest_leaf: int = _SMALLEST_LEAF,
    parts: int = 1,
) -> WaitModel:
    """A random forest.

    With one part it predicts the mean. With more, it predicts the quantiles in the middle of so
    many equal parts of probability: the average over the trees of the quantiles in the leaf, so
    that a policy can weigh how likely which wait is.

    Raises ``InputError`` if scikit-learn is not installed.
    """
    forest = scikit_learn("ensemble").RandomForestRegressor(
        n_estimators=trees, max_depth=DEPTH, min_samples_leaf=smallest_leaf, random_state=SEED
    )
    inputs = rows.features.astype(np.float32)
    forest.fit(inputs, rows.wait_seconds)
    grown = [each.tree_ for each in forest.estimators_]
    if parts == 1:
        leaves = [tree.value[:, 0, :] / trees for tree in grown]
    else:
        leaves = [
            _leaf_quantiles(tree.apply(inputs), rows.wait_seconds, tree.node_count, parts) / trees
            for tree in grown
        ]
    return _as_arrays(grown, leaves, np.zeros(parts))


def boosted_waits(rows: WaitRows, trees: int = 100, depth: int = DEPTH) -> WaitModel:
    """Gradient boosting of trees."""
    boosting = scikit_learn("ensemble").GradientBoostingRegressor(
        n_estimators=trees,
        max_depth=depth,
        min_samples_leaf=_SMALLEST_LEAF,
        learning_rate=_RATE,
        random_state=SEED,
    )
    boosting.fit(rows.features.astype(np.float32), rows.wait_seconds)
    grown = [each.tree_ for each in boosting.estimators_[:, 0]]
    leaves = [tree.value[:, 0, :] * _RATE for tree in grown]
    return _as_arrays(grown, leaves, np.array([rows.wait_seconds.mean()]))


def predicted_waits(model: WaitModel, features: Floats) -> Floats:
    """Quantiles of the wait (s) by row of features, one column for each part of probability."""
    quantiles = np.empty((features.shape[0], model.base.size))
    predict_waits(model, np.ascontiguousarray(features, dtype=np.float64), quantiles)
    return quantiles


def _leaf_quantiles(leaf: NDArray[np.int64], waits: Floats, nodes: int, parts: int) -> Floats:
    """Quantiles of the waits that fall into each leaf, at the middles of equal parts."""
    order = np.lexsort((waits, leaf))
    ordered = waits[order]
    which, first, count = np.unique(leaf[order], return_index=True, return_counts=True)
    levels = (np.arange(parts) + 0.5) / parts
    quantiles = np.zeros((nodes, parts))
    quantiles[which] = ordered[first[:, None] + (levels * count[:, None]).astype(np.int64)]
    return quantiles


def _as_arrays(trees: Sequence[Any], leaves: Sequence[Floats], base: Floats) -> WaitModel:
    roots = np.concatenate(([0], np.cumsum([tree.node_count for tree in trees])[:-1]))

    def shifted(name: str) -> NDArray[np.int32]:
        return np.concatenate(
            [getattr(tree, name) + root for tree, root in zip(trees, roots, strict=True)]
        ).astype(np.int32)

    return WaitModel(
        base=base,
        weights=np.empty(0),
        roots=roots.astype(np.int64),
        feature=np.concatenate([tree.feature for tree in trees]).astype(np.int32),
        limit=np.concatenate([tree.threshold for tree in trees]).astype(np.float64),
        left=shifted("children_left"),
        right=shifted("children_right"),
        leaves=np.ascontiguousarray(np.concatenate(leaves), dtype=np.float64),
    )


def scikit_learn(module: str) -> Any:
    """A module of scikit-learn, imported when something is really to be learned."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise InputError(
            "learning trees needs the package scikit-learn",
            expected="pip install scikit-learn",
        ) from error
