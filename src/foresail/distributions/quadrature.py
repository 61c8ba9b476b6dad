"""Gauss-Legendre quadrature within a piece: where in it to look, and with what weight."""

from __future__ import annotations

from typing import Final

import numpy as np

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
SHARES: Final = 0.5 * (_NODES + 1.0)
"""Places within a piece, from 0 to 1."""
SHARE_WEIGHTS: Final = 0.5 * _NODE_WEIGHTS
"""Their weights, which add up to 1."""
NORMAL_PIECE: Final = 0.25
"""Width of a piece over a standard normal variable."""
NORMAL_REACH: Final = 9.0
"""How far from its mean (or from where it is cut) a standard normal variable is followed."""
