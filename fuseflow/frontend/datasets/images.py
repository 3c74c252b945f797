"""Images for autoencoders: only their number, size and sparsity matter, so they are sampled."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fuseflow.frontend.datasets.random_graphs import random_features

IMAGE_SIDES = {"imagenet": 224, "nih": 1024, "luna16": 512}
"""Of the square images of ImageNet, NIH ChestX-ray14 and LUNA16."""
DEFAULT_COUNT = 5
DEFAULT_DENSITY = 0.5


def sample_images(images: int, side: int, density: float, seed: int) -> sparse.csr_array:
    """[images, side^2], in f32: pixels are nonzero with probability `density`, uniform in (0, 1]."""
    return random_features(images, side * side, density, np.random.default_rng(seed))
