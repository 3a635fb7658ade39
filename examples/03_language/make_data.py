"""Writes digits.npz from scikit-learn's copy of the UCI digits (needs `pip install '.[examples]'`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits


def main() -> None:
    """Split the 1,797 scans: every third one is a query, the others are the labelled references."""
    digits = load_digits()
    images = digits.images.astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    query = np.arange(len(images)) % 3 == 0
    np.savez_compressed(
        Path(__file__).with_name("digits.npz"),
        known=images[~query],
        known_labels=labels[~query],
        scans=images[query],
        truth=labels[query],
    )


if __name__ == "__main__":
    main()
