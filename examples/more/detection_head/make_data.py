"""Writes image.npy, logits.npy and prior.npy from a photograph (needs `pip install '.[examples]'`).

The head scores 225 windows ("anchors") of the photograph against 80 classes. The classes are 80 kinds of texture,
found by k-means among the windows of the full-size photograph; a logit is minus the squared distance of a window
from the centre of a kind, and the prior is the logarithm of how often each kind was seen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from skimage import data, transform
from sklearn.cluster import KMeans

SIDE, WINDOW, STEP, CLASSES = 64, 8, 4, 80


def windows(photo: np.ndarray) -> np.ndarray:
    """[rows, columns, 3] -> [anchors, WINDOW * WINDOW * 3], one window every STEP pixels."""
    view = np.lib.stride_tricks.sliding_window_view(photo, (WINDOW, WINDOW), axis=(0, 1))
    return view[::STEP, ::STEP].reshape(-1, 3 * WINDOW * WINDOW)


def main() -> None:
    """Cluster the windows of the photograph at 256 x 256, score those of it at 64 x 64."""
    photo = data.astronaut() / 255.0
    small = transform.resize(photo, (SIDE, SIDE), anti_aliasing=True)
    kinds = KMeans(CLASSES, n_init=1, random_state=0).fit(windows(transform.resize(photo, (256, 256))))
    seen = np.bincount(kinds.labels_, minlength=CLASSES)
    far = ((windows(small)[:, None] - kinds.cluster_centers_[None]) ** 2).sum(axis=2)
    folder = Path(__file__).parent
    np.save(folder / "image.npy", small.transpose(2, 0, 1)[None].astype(np.float16))
    np.save(folder / "logits.npy", -far[None].astype(np.float32))
    np.save(folder / "prior.npy", np.log(seen / seen.sum()).astype(np.float32))


if __name__ == "__main__":
    main()
