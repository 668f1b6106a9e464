"""A mixture of normal distributions as a scikit-learn density and clustering."""

import warnings
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state
from torch import Tensor

from quoin.errors import UserError, did_you_mean, format_value
from quoin.estimators.given import KINDS, RandomState, as_tensor, check_predict_input, check_range, validate_data
from quoin.models import GaussianMixture, em_with_restarts
from quoin.prob import DiagonalNormals, FullNormals, SphericalNormals, TiedNormals

__all__ = ["GaussianMixtureEM"]

FAMILIES = {"full": FullNormals, "tied": TiedNormals, "diag": DiagonalNormals, "spherical": SphericalNormals}


class GaussianMixtureEM(DensityMixin, BaseEstimator):
    """p(x) = Σ_i φ_i N(x; μ_i, Σ_i) fitted by EM; predicts the component of the largest responsibility for x.

    With variances bounded below EM keeps its promise that the likelihood never falls, which adding to them would break.

    Args:
        covariance_type: "full", "tied", "diag" or "spherical".
        tol: EM stops once a step raises the log-likelihood by no more than this for each row.
        min_variance: No variance falls below this times that of the data, in any direction.
        n_init: Random starts, of which the best is kept.

    >>> GaussianMixtureEM(2, random_state=0).fit([[0.0], [0.2], [5.0], [5.2]]).means_.round(3)
    array([[0.1],
           [5.1]])

    Notes: D6-9, D6-10.
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: Literal["full", "tied", "diag", "spherical"] = "full",
        tol: float = 1e-5,
        min_variance: float = 1e-6,
        max_iter: int = 200,
        n_init: int = 1,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.min_variance = min_variance
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        for name, at_least in (
            ("n_components", 1),
            ("tol", 0.0),
            ("min_variance", 0.0),
            ("max_iter", 1),
            ("n_init", 1),
        ):
            check_range(name, getattr(self, name), at_least=at_least)
        if self.covariance_type not in tuple(FAMILIES):  # a list has no hash
            raise UserError(
                f"there is no covariance_type {format_value(self.covariance_type)}: "
                f"{did_you_mean(str(self.covariance_type), FAMILIES)}"
            )
        rows = as_tensor(np.asarray(validate_data(self, X, dtype=KINDS, ensure_min_samples=2)))
        found = em_with_restarts(
            rows,
            self.n_components,
            FAMILIES[self.covariance_type],
            generator=torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31))),
            num_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            min_variance=self.min_variance,
        )
        self.model_ = GaussianMixture(found.output)
        self.converged_, self.n_iter_ = found.converged, len(found.log_likelihoods) - 1
        self.lower_bound_ = found.log_likelihoods[-1] / len(rows)
        if not found.converged:
            message = (
                f"EM still gained more than tol = {self.tol} a point after {self.max_iter} steps; raise max_iter or tol"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    @property
    def weights_(self) -> np.ndarray:
        return self.model_.weights.numpy()

    @property
    def means_(self) -> np.ndarray:
        return self.model_.means.numpy()

    @property
    def covariances_(self) -> np.ndarray:
        """(k, d, d), (d, d), (k, d) or (k,), by `covariance_type`."""
        return self.model_.covariances.numpy()

    def _rows(self, X: ArrayLike) -> Tensor:
        check_is_fitted(self)
        return check_predict_input(self, X).to(self.model_.means.dtype)

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """ln p(x) of each row."""
        rows = self._rows(X)
        return self.model_.log_prob(rows).numpy()

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The mean of ln p(x)."""
        return float(self.score_samples(X).mean(dtype=np.float64))

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        rows = self._rows(X)
        return self.model_.responsibilities(rows).numpy()

    def predict(self, X: ArrayLike) -> np.ndarray:
        rows = self._rows(X)
        return self.model_.predict(rows).numpy()

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        return self.fit(X).predict(X)

    def sample(self, n_samples: int = 1, *, random_state: RandomState = None) -> np.ndarray:
        """New rows from the fitted distribution."""
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(2**31))
        return self.model_.sample(n_samples, generator=torch.Generator().manual_seed(seed)).numpy()

    def aic(self, X: ArrayLike) -> float:
        """2 p - 2 Σ ln p(x) with p free numbers; lower is better."""
        rows = self._rows(X)
        return self.model_.aic(rows)

    def bic(self, X: ArrayLike) -> float:
        """p ln n - 2 Σ ln p(x); lower is better."""
        rows = self._rows(X)
        return self.model_.bic(rows)
