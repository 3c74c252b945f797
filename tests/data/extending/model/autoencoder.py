from typing import Literal

import torch

DATA = "images:side=28,count=1"
SMALL_DATA = "images:side=6,count=3"
FORMATS = {"images": "csr"}


class Autoencoder(torch.nn.Module):
    def __init__(self, pixels, hidden, part):
        super().__init__()
        self.part = part
        self.encoder = torch.nn.Linear(pixels, hidden)
        self.decoder = torch.nn.Linear(hidden, pixels)

    def forward(self, images):
        code = torch.relu(self.encoder(images))
        return code if self.part == "encoder" else self.decoder(code)


def build(data, *, small: bool = False, part: Literal["model", "encoder"] = "model", hidden: int | None = None):
    images = data.features.to_dense()
    return Autoencoder(images.shape[1], hidden or (12 if small else 256), part).eval(), (images,)
