"""Model `detection_head` as NumPy code, written by dmlc; it needs NumPy 1.26 or newer."""

import numpy as np


def detection_head(logits: np.ndarray, image: np.ndarray) -> tuple[np.ndarray, ...]:
    """Model `detection_head`.

    Parameters
    ----------
    logits : float32, shape (batch, anchors, 80)
    image : float16, shape (batch, 3, H, W)

    Returns
    -------
    cls : uint32, shape (batch, anchors, 1)
    peak : uint32, shape (batch, 1, 1, 1)
    top_p : float32, shape (batch, 5, 80)
    top_i : uint32, shape (batch, 5, 80)
    focus : float16, shape (batch, 3, H, W)
    spread : float32, shape (batch, 1, 1)

    Notes
    -----
    1 <= batch <= 64
    8 <= anchors <= 8400
    H >= 1
    W >= 1
    """
    _check("logits", logits, np.float32, ("batch", "anchors", 80))
    batch, anchors, _ = logits.shape
    _check("image", image, np.float16, (batch, 3, "H", "W"))
    _, _, H, W = image.shape
    _require(1 <= batch <= 64, f"batch (axis 0 of logits) must be 1 to 64, not {batch}")
    _require(8 <= anchors <= 8400, f"anchors (axis 1 of logits) must be 8 to 8400, not {anchors}")
    _require(H >= 1, f"H (axis 2 of image) must be 1 or more, not {H}")
    _require(W >= 1, f"W (axis 3 of image) must be 1 or more, not {W}")
    with np.errstate(all="ignore"):
        p = _softmax((logits + _PRIOR) * 0.125, axes=2)
        cls = np.argmax(p, axis=2, keepdims=True).astype(np.uint32)
        peak = np.expand_dims(_arg(image, axes=(1, 2, 3), largest=True, last=True), (1, 2, 3))
        peak = peak.astype(np.uint32)
        top_p, top_i = _top_k(p, k=5, axis=1, largest=True, dtype=np.uint32)
        focus = _hardmax(image, axes=(2, 3))
        pow_ = (p - np.mean(p, axis=(1, 2), keepdims=True)) ** 2
        spread = np.sqrt(np.mean(pow_, axis=(1, 2), keepdims=True) + 1e-06)
    return cls, peak, top_p, top_i, focus, spread


def _check(name: str, array: np.ndarray, dtype: type, shape: tuple[int | str, ...]) -> None:
    """Refuse another dtype or shape, and masks; a word in the shape stands for any size."""
    if not isinstance(array, (np.ndarray, np.generic)) or isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if array.dtype != dtype:
        raise TypeError(f"{name} must have dtype {np.dtype(dtype)}, not {array.dtype}")
    sizes = zip(shape, array.shape, strict=False)
    if len(shape) != array.ndim or any(not isinstance(a, str) and a != b for a, b in sizes):
        wanted = ", ".join([str(size) for size in shape])
        raise ValueError(f"{name} must have shape [{wanted}], not {list(array.shape)}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _rows(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """The elements of each group along one last axis, row-major over the axes."""
    kept = [i for i in range(x.ndim) if i not in axes]
    length = int(np.prod([x.shape[i] for i in axes]))
    return x.transpose(*kept, *axes).reshape([x.shape[i] for i in kept] + [length])


def _arg(x: np.ndarray, axes: tuple[int, ...], largest: bool, last: bool) -> np.ndarray:
    """The row-major index over the axes of the largest or smallest element.

    Of equal elements it is the first or the last; the axes are dropped.
    """
    rows = _rows(x, axes)
    rows = rows[..., ::-1] if last else rows
    index = np.argmax(rows, axis=-1) if largest else np.argmin(rows, axis=-1)
    return rows.shape[-1] - 1 - index if last else index


def _top_k(
    x: np.ndarray, k: int, axis: int, largest: bool = True, dtype: type = np.int64
) -> tuple[np.ndarray, np.ndarray]:
    """The k largest or smallest elements in order, and their indices; ties by ascending index."""
    if largest:
        # A stable ascending sort of the reversed axis, read backwards.
        backwards = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = np.take(order, np.arange(k), axis=axis)
    return np.take_along_axis(x, indices, axis=axis), indices.astype(dtype)


def _hardmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """1 at the first maximum over the axes together, 0 elsewhere."""
    rows = _rows(x, axes)
    hot = np.zeros_like(rows)
    np.put_along_axis(hot, np.argmax(rows, axis=-1)[..., np.newaxis], 1, axis=-1)
    order = [i for i in range(x.ndim) if i not in axes] + list(axes)
    return hot.reshape([x.shape[i] for i in order]).transpose(np.argsort(order))


def _softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """exp(x) over its sum, over the axes together; the maximum is taken out first."""
    powers = np.exp(x - np.max(x, axis=axes, keepdims=True, initial=-np.inf))
    return powers / np.sum(powers, axis=axes, keepdims=True)


# fmt: off
_PRIOR = np.array([
    0.0, 0.01242252, 0.024692612, 0.036813974, 0.048790164, 0.06062462, 0.07232066, 0.08388148,
    0.09531018, 0.10660973, 0.11778303, 0.12883288, 0.13976194, 0.15057285, 0.16126814, 0.17185026,
    0.18232156, 0.19268434, 0.20294084, 0.21309322, 0.22314355, 0.23309389, 0.24294618, 0.25270236,
    0.26236427, 0.2719337, 0.28141245, 0.2908022, 0.3001046, 0.30932125, 0.31845373, 0.32750356,
    0.33647224, 0.34536117, 0.3541718, 0.3629055, 0.37156355, 0.3801473, 0.388658, 0.39709687,
    0.4054651, 0.4137639, 0.42199442, 0.43015772, 0.43825492, 0.4462871, 0.45425528, 0.46216044,
    0.47000363, 0.47778577, 0.48550782, 0.49317068, 0.5007753, 0.5083225, 0.5158132, 0.52324814,
    0.53062826, 0.5379543, 0.54522705, 0.5524473, 0.5596158, 0.56673324, 0.57380044, 0.580818,
    0.5877867, 0.59470713, 0.60157996, 0.60840595, 0.6151856, 0.6219197, 0.62860864, 0.6352532,
    0.64185387, 0.6484113, 0.65492594, 0.6613985, 0.6678294, 0.6742192, 0.6805684, 0.68687755,
], dtype=np.float32)
# fmt: on
