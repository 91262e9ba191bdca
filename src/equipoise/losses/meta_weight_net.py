"""Meta-Weight-Net: sample weights as a function of the sample's loss, learned on a meta set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_integer
from equipoise.losses._learned import LearnedLoss, SeenBatch
from equipoise.losses.functional.shared import negative_log_likelihood, reduce_loss


class MetaWeightNetLoss(LearnedLoss):
    """Cross-entropy weighted by a learned function of the sample's loss (Shu et al. 2019).

    A 1-100-1 perceptron with a sigmoid gives the weights; they are divided by their sum over the batch.

    Parameters
    ----------
    class_counts : array of shape (C,)
        Training samples of each class.
    hidden : int
        Units of the weighting network.

    References
    ----------
    Shu et al.: Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting, NeurIPS 2019.

    Examples
    --------
    >>> loss = MetaWeightNetLoss([9, 1])
    >>> sum(p.numel() for p in loss.parameters())
    301
    """

    def __init__(self, class_counts: npt.ArrayLike, *, hidden: int = 100) -> None:
        super().__init__(class_counts, beta=0.0)
        check_integer("hidden", hidden, low=1)
        self.weighting = nn.Sequential(nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid())

    def weights(self, surprise: Tensor) -> Tensor:
        """The weight of a sample whose loss is ``surprise``.

        Parameters
        ----------
        surprise : Tensor of shape (n,)
            The cross-entropy of each sample.

        Returns
        -------
        Tensor of shape (n,)
            The weights, from 0 to 1.
        """
        given = surprise.to(next(self.weighting.parameters()).dtype)
        return self.weighting(given.unsqueeze(-1)).squeeze(-1)

    def forward(self, logits: Tensor, seen: SeenBatch, head_weight: Tensor) -> Tensor:
        surprise = negative_log_likelihood(logits, seen.target)
        weight = self.weights(surprise.detach())
        if seen.weight is not None:
            weight = weight * seen.weight.to(weight.dtype)
        return reduce_loss(surprise, "mean", weight)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The data's own: the weights follow the samples' losses, not their classes.

        Parameters
        ----------
        class_prior : array of shape (C,)
            The class shares of the training data.

        Returns
        -------
        array of shape (C,)
            The same shares.
        """
        return np.asarray(class_prior, dtype=np.float64)
