"""Images for autoencoders. Only their number, size and sparsity matter, so their pixels are random."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.random_graphs import random_features

IMAGE_SIDES = {"imagenet": 224, "nih": 1024, "luna16": 512}
"""The side of the square images of ImageNet, NIH ChestX-ray14 and LUNA16, in pixels."""
DEFAULT_COUNT = 5
"""The number of images unless a spec names another."""
DEFAULT_DENSITY = 0.5
"""The density of images unless a spec names another."""


def sample_images(images: int, side: int, density: float, seed: int) -> sparse.csr_array:
    """Return random images as a matrix [images, side^2] in f32. A pixel is nonzero with the probability `density`, and then uniform in
    (0, 1]."""
    return random_features(images, side * side, density, np.random.default_rng(seed))
