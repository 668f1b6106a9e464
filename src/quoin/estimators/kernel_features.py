"""Random features of the Gaussian kernel as a scikit-learn transformer, to stand before a linear model."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from quoin.errors import Mistake, nearest, shown
from quoin.estimators.given import KINDS, given_rows, hold
from quoin.layers import (
    fourier_features_definition,
    gaussian_directions,
    orthogonal_directions,
    positive_features_definition,
)

__all__ = ["KernelFeatures"]

LAWS = {"gaussian": gaussian_directions, "orthogonal": orthogonal_directions}


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """X ↦ Ψ with Ψ Ψᵀ near the kernel matrix (e^{-γ‖x_i-x_j‖²})_ij, so that a linear model on Ψ is near one with the kernel.

    `features` is "fourier" (cosines of random waves) or "positive" (exponentials, of large variance for rows far from zero);
    `directions` are "gaussian", that is independent, or "orthogonal".

    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> found = KernelFeatures(20_000, gamma=0.5, random_state=0).fit_transform(rows)
    >>> abs((found @ found.T)[0, 1] - np.exp(-0.5)) < 0.04  # four standard deviations of such an estimate are 0.027
    np.True_

    Notes: D4.1-13, D4.1-14, X14.
    """

    def __init__(self, n_components=100, *, gamma=1.0, features="fourier", directions="gaussian", random_state=None):
        self.n_components = n_components
        self.gamma = gamma
        self.features = features
        self.directions = directions
        self.random_state = random_state

    def fit(self, X, y=None):
        hold("n_components", self.n_components, at_least=1)
        hold("gamma", self.gamma, above=0.0)
        _one_of("features", self.features, ("fourier", "positive"))
        _one_of("directions", self.directions, tuple(LAWS))
        rows = np.asarray(validate_data(self, X, dtype=KINDS))
        generator = torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31)))
        self.directions_ = LAWS[self.directions](self.n_components, rows.shape[1], generator=generator).numpy()
        self.phases_ = 2 * np.pi * torch.rand(self.n_components, generator=generator, dtype=torch.float64).numpy()
        self._n_features_out = self.n_components
        return self

    def transform(self, X) -> np.ndarray:
        check_is_fitted(self)
        rows = given_rows(self, X)
        directions = torch.from_numpy(self.directions_).to(rows)
        if self.features == "positive":
            return positive_features_definition(rows, directions, self.gamma).numpy()
        return fourier_features_definition(rows, directions, torch.from_numpy(self.phases_).to(rows), self.gamma).numpy()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise Mistake(f"expected {name} among {', '.join(known)}, came {shown(value)}: {nearest(str(value), known)}")
