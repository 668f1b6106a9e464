"""Random features of the Gaussian kernel as a scikit-learn transformer, to stand before a linear model."""

from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from quoin.errors import UserError, did_you_mean, format_value
from quoin.estimators.given import KINDS, RandomState, check_predict_input, check_range, validate_data
from quoin.layers import (
    fourier_features_definition,
    gaussian_random_matrix,
    orthogonal_random_matrix,
    positive_features_definition,
)

__all__ = ["RandomKernelFeatures"]

PROJECTIONS = {"gaussian": gaussian_random_matrix, "orthogonal": orthogonal_random_matrix}


class RandomKernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """X ↦ Ψ with Ψ Ψᵀ near the kernel matrix (e^{-γ‖x_i-x_j‖²})_ij, so that a linear model on Ψ is near one with the
    kernel.

    Args:
        n_components: Columns of Ψ; the error of the kernel falls as one over their root.
        gamma: γ.
        feature_map: "fourier", cosines of random waves, or "positive", exponentials, of large variance for rows far
            from zero.
        projection: Rows of the random projection: "gaussian", that is independent, or "orthogonal".

    >>> rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> found = RandomKernelFeatures(20_000, gamma=0.5, random_state=0).fit_transform(rows)
    >>> abs((found @ found.T)[0, 1] - np.exp(-0.5)) < 0.04  # four standard deviations of such an estimate are 0.027
    np.True_

    Notes: D4.1-13, D4.1-14, X14.
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        gamma: float = 1.0,
        feature_map: Literal["fourier", "positive"] = "fourier",
        projection: Literal["gaussian", "orthogonal"] = "gaussian",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.feature_map = feature_map
        self.projection = projection
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        check_range("n_components", self.n_components, at_least=1)
        check_range("gamma", self.gamma, above=0.0)
        _one_of("feature_map", self.feature_map, ("fourier", "positive"))
        _one_of("projection", self.projection, tuple(PROJECTIONS))
        rows = np.asarray(validate_data(self, X, dtype=KINDS))
        generator = torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31)))
        self.projection_ = PROJECTIONS[self.projection](self.n_components, rows.shape[1], generator=generator).numpy()
        self.phases_ = 2 * np.pi * torch.rand(self.n_components, generator=generator, dtype=torch.float64).numpy()
        self._n_features_out = self.n_components
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        rows = check_predict_input(self, X)
        projection = torch.from_numpy(self.projection_).to(rows)
        if self.feature_map == "positive":
            return positive_features_definition(rows, projection, self.gamma).numpy()
        return fourier_features_definition(
            rows, projection, torch.from_numpy(self.phases_).to(rows), self.gamma
        ).numpy()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UserError(
            f"expected {name} among {', '.join(known)}, got {format_value(value)}: {did_you_mean(str(value), known)}"
        )
