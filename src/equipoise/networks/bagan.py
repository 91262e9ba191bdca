"""BAGAN's players (Mariani et al. 2018), and the normals that its generator draws from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from equipoise.networks.encoders import EncoderDecoder


class ClassGaussians:
    """A full-covariance normal a class in a latent space; BAGAN draws its generator's input from them."""

    def __init__(self, latents: Tensor, codes: Tensor) -> None:
        self.means, self.roots = {}, {}
        z = latents.double()
        ridge = 1e-6 * float(z.var(dim=0).mean()) + 1e-12
        for code in torch.unique(codes).tolist():
            own = z[codes == code]
            self.means[code] = own.mean(dim=0)
            spread = own.T.cov() if len(own) > 1 else torch.zeros(z.shape[1], z.shape[1])
            values, vectors = torch.linalg.eigh(spread.reshape(z.shape[1], z.shape[1]).double())
            self.roots[code] = vectors * (values.clamp_min(0) + ridge).sqrt()

    def draw(self, codes: Tensor) -> Tensor:
        z = torch.empty(len(codes), len(next(iter(self.means.values()))))
        for code in torch.unique(codes).tolist():
            mine = codes == code
            noise = torch.randn(int(mine.sum()), z.shape[1], dtype=torch.float64)
            z[mine] = (self.means[code] + noise @ self.roots[code].T).float()
        return z


class BalancingGAN(nn.Module):
    """BAGAN's players, begun from a trained auto-encoder: its decoder generates, its encoder discriminates."""

    def __init__(self, pair: EncoderDecoder, n_classes: int) -> None:
        super().__init__()
        self.generator, self.n_classes = pair.decoder, n_classes
        self.discriminator = nn.Sequential(
            pair.encoder, nn.LeakyReLU(0.2), nn.Linear(pair.latent, n_classes + 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.discriminator(x)
