"""Prints the text that `dmlc run examples/more/ctc_greedy/model.dml ... -o decoded.npz` stored."""

from __future__ import annotations

import sys

import numpy as np

with np.load(sys.argv[1] if len(sys.argv) > 1 else "decoded.npz") as decoded:
    for codes, confidence in zip(decoded["text"], decoded["confidence"], strict=True):
        print(f"{confidence:.3f}  {bytes(codes[codes > 0]).decode('ascii')}")
