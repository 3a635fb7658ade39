"""Weights stay unread until they are asked for, and references to files are followed only where that is safe."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.importers.weights import byte_size, external, read_external, stored
from dmlc.ir import StoredTensor
from dmlc.onnx_schema.types import DTYPE_OF
from tests.rows import each_row

W = np.arange(6, dtype=np.float32).reshape(2, 3)


def reference(
    location: str = "w.bin", dims: tuple[int, ...] = (2, 3), data_type: int = TensorProto.FLOAT, **keys: object
) -> TensorProto:
    tensor = TensorProto(name="w", dims=dims, data_type=data_type, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **keys}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with ``w.bin`` (16 other bytes, then W), and a file beside the folder."""
    inside = tmp_path / "models"
    inside.mkdir()
    (inside / "w.bin").write_bytes(b"\xff" * 16 + W.tobytes())
    (tmp_path / "secret").write_bytes(W.tobytes())
    return inside


def refused(tensor: TensorProto, folder: Path | None) -> Diagnostic:
    with pytest.raises(DmlcError) as caught:
        stored(tensor, folder)
    assert caught.value.exit_code == 1
    (diagnostic,) = caught.value.diagnostics
    assert "weight w " in diagnostic.message
    return diagnostic


# --- data in the model


def sample(data_type: int) -> np.ndarray:
    dtype = DTYPE_OF[data_type].numpy
    if dtype.kind == "f":
        return np.array([[0.5, -0.0, np.nan], [np.inf, -np.inf, 2.0]], dtype)
    if dtype.kind == "b":
        return np.array([[True, False, True], [False, True, True]])
    info = np.iinfo(dtype)
    return np.array([[info.min, info.max, 0], [1, 2, 3]], dtype)


@each_row("data_type", DTYPE_OF)
@each_row("raw", [True, False])
def test_inline_data_of_every_dtype(data_type: int, raw: bool) -> None:
    array = sample(data_type)
    tensor = numpy_helper.from_array(array, "w")
    if not raw:
        values = array.view(np.uint16).reshape(-1) if array.dtype == np.float16 else array.reshape(-1)
        tensor = onnx.helper.make_tensor("w", data_type, array.shape, values, raw=False)
        assert not tensor.HasField("raw_data")
        if array.dtype == np.float16:  # make_tensor takes the bits of f16 as numbers
            del tensor.int32_data[:]
            tensor.int32_data.extend(values.tolist())
    weight = stored(tensor, None)
    assert str(weight.type) == f"{DTYPE_OF[data_type].name}[2, 3]"
    assert weight.array.dtype == array.dtype
    assert weight.array.tobytes() == array.tobytes()
    assert not weight.array.flags.writeable


def test_the_store_is_the_tensor_of_the_model() -> None:
    tensor = numpy_helper.from_array(W, "w")
    weight = stored(tensor, None)
    assert isinstance(weight, StoredTensor)
    assert weight.store is tensor


@each_row("dims", [(2, 4), (5,), (), (2**40,), (2**40, 2**40), (0,)])
def test_inline_data_that_does_not_fit(dims: tuple[int, ...]) -> None:
    raw = TensorProto(name="w", dims=dims, data_type=TensorProto.FLOAT, raw_data=W.tobytes())
    assert refused(raw, None).code.id == "E0434"
    typed = TensorProto(name="w", dims=dims, data_type=TensorProto.FLOAT, float_data=W.reshape(-1).tolist())
    assert refused(typed, None).code.id == "E0434"


def test_a_negative_size(folder: Path) -> None:
    raw = TensorProto(name="w", dims=(-2, -3), data_type=TensorProto.FLOAT, raw_data=W.tobytes())
    assert "cannot be negative" in refused(raw, None).message
    assert refused(reference(dims=(-2, -3)), folder).code.id == "E0434"


def test_no_data_at_all() -> None:
    assert refused(TensorProto(name="w", dims=(2,), data_type=TensorProto.INT8), None).code.id == "E0434"
    assert stored(TensorProto(name="w", dims=(2, 0), data_type=TensorProto.INT8), None).array.shape == (2, 0)


@each_row(("data_type", "size"), [("INT4", 3), ("UINT2", 2), ("BFLOAT16", 10), ("STRING", None)])
def test_sizes_of_other_types(data_type: str, size: int | None) -> None:
    assert byte_size(TensorProto(dims=(5,), data_type=TensorProto.DataType.Value(data_type))) == size


# --- data in a file


def test_external_data_is_read_when_it_is_asked_for(folder: Path) -> None:
    weight = stored(reference(offset=16, length=24), folder)
    assert str(weight.type) == "f32[2, 3]"
    assert weight.note == "w.bin"
    (folder / "w.bin").write_bytes(b"\0" * 16 + (W + 1).tobytes())  # not read until now
    np.testing.assert_array_equal(weight.array, W + 1)


@each_row("data_type", DTYPE_OF)
def test_external_data_of_every_dtype(data_type: int, tmp_path: Path) -> None:
    array = sample(data_type)
    (tmp_path / "w.bin").write_bytes(array.tobytes())
    weight = stored(reference(data_type=data_type), tmp_path)
    assert weight.array.tobytes() == array.tobytes()
    assert weight.array.dtype == array.dtype


def test_offset_and_length_have_defaults(folder: Path) -> None:
    assert stored(reference(), folder).array.tobytes() == b"\xff" * 16 + W.tobytes()[:8]
    np.testing.assert_array_equal(stored(reference(offset=16), folder).array, W)


def test_a_folder_below_the_models(folder: Path) -> None:
    (folder / "sub" / "more").mkdir(parents=True)
    (folder / "sub" / "more" / "w.bin").write_bytes(W.tobytes())
    np.testing.assert_array_equal(stored(reference("sub/more/w.bin"), folder).array, W)
    np.testing.assert_array_equal(stored(reference("./sub/more/w.bin"), folder).array, W)


@each_row(
    "location",
    ["../secret", "sub/../../secret", "sub/../w.bin", "..\\secret", "/etc/passwd", "C:\\w.bin", "C:w.bin",
     "\\\\host\\w", "", " ", "w\0.bin", "."],
)  # fmt: skip
def test_locations_that_are_not_followed(location: str, folder: Path) -> None:
    assert refused(reference(location), folder).code.id == "E0432"


def test_an_absolute_path_into_the_folder_is_not_followed_either(folder: Path) -> None:
    assert refused(reference(str(folder / "w.bin"), offset=16), folder).code.id == "E0432"


def test_a_model_from_memory_has_no_folder() -> None:
    diagnostic = refused(reference(), None)
    assert (diagnostic.code.id, diagnostic.help) == ("E0432", "give the path of the model")


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_links_are_not_followed(folder: Path) -> None:
    (folder / "link.bin").symlink_to("w.bin")
    (folder / "out").symlink_to(folder.parent)
    (folder / "hard.bin").hardlink_to(folder.parent / "secret")
    assert "symbolic link" in refused(reference("link.bin", offset=16), folder).message
    assert "symbolic link" in refused(reference("out/secret"), folder).message
    assert "hard link" in refused(reference("hard.bin"), folder).message


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_only_plain_files_are_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "sub").mkdir()
    for location in ("pipe", "sub"):
        assert "not a plain file" in refused(reference(location), folder).message


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_the_folder_itself_may_be_reached_by_a_link(folder: Path) -> None:
    (folder.parent / "alias").symlink_to(folder)
    np.testing.assert_array_equal(stored(reference(offset=16), folder.parent / "alias").array, W)


def test_a_missing_file(folder: Path) -> None:
    diagnostic = refused(reference("ww.bin"), folder)
    assert diagnostic.code.id == "E0433"
    assert "no such file" in diagnostic.message
    assert diagnostic.help == 'did you mean "w.bin"?'
    assert refused(reference("no/such/w.bin"), folder).code.id == "E0433"
    assert refused(reference("w.bin/below"), folder).code.id == "E0433"


@each_row(
    ("keys", "words"),
    [
        ({"offset": 17}, "bytes 17 to 41 of w.bin, which has 40"),
        ({"offset": 2**62}, "which has 40"),
        ({"length": 20}, "20 bytes of w.bin, its shape [2, 3] needs 24"),
        ({"length": 40}, "needs 24"),
        ({"offset": -16}, "not a number of bytes"),
        ({"offset": "sixteen"}, "not a number of bytes"),
        ({"offset": ""}, "not a number of bytes"),
        ({"length": "²⁴"}, "not a number of bytes"),
        ({"offset": "9" * 5000}, "not a number of bytes"),
        ({"dims": (2**40,)}, "which has 40"),
        ({"dims": (2**40, 2**40)}, "which has 40"),
    ],
)
def test_parts_that_the_file_does_not_hold(keys: dict[str, object], words: str, folder: Path) -> None:
    diagnostic = refused(reference(**keys), folder)  # type: ignore[arg-type]
    assert diagnostic.code.id == "E0434"
    assert words in diagnostic.message


def test_what_is_read_is_checked_again(folder: Path) -> None:
    weight = stored(reference(offset=16), folder)
    (folder / "w.bin").write_bytes(b"\0" * 20)
    with pytest.raises(DmlcError, match="E0434"):
        _ = weight.array
    (folder / "w.bin").unlink()
    with pytest.raises(DmlcError, match="E0433"):
        _ = weight.array
    (folder / "other").write_bytes(b"\0" * 40)
    (folder / "w.bin").symlink_to("other")
    with pytest.raises(DmlcError):
        _ = weight.array


def test_other_types_need_a_length(folder: Path) -> None:
    strings = reference(data_type=TensorProto.STRING)
    with pytest.raises(DmlcError, match="E0434"):
        external(strings, folder)
    four_bits = reference(dims=(5,), data_type=TensorProto.INT4, offset=16)
    assert read_external(external(four_bits, folder)) == W.tobytes()[:3]


def test_large_external_data_costs_nothing(tmp_path: Path) -> None:
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(2**42)  # sparse
    weight = stored(reference(dims=(2**20, 2**20)), tmp_path)
    assert weight.nbytes == 2**42
    assert weight == weight
    assert weight != stored(reference(dims=(2**20, 2**20)), tmp_path)  # compared without being read
