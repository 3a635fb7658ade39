"""Two or three nodes in a row that ONNX Runtime merges, and that it must not.

Each function is about one file of core/optimizer (releases 1.20 to 1.32). The table of transformers has what was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto

from dmlc.placement.optimizer.view import Copied, Given, GraphView, LookAlike, Summed

_SINGLE_OR_HALF = (TensorProto.FLOAT, TensorProto.FLOAT16)
#: Operators whose results are not negative.
_NOT_NEGATIVE = ("Relu", "Sigmoid", "Abs", "Softmax", "Exp", "Softplus", "HardSigmoid")


def relu_before_clip(view: GraphView) -> Iterator[LookAlike]:
    """FuseReluClip takes a Relu that makes a bound, and types whose minimum it cannot read."""
    for relu in view.of("Relu"):
        clip = view.only_reader(relu, "Clip")
        if clip is None:
            continue
        value = view.nodes[relu].output[0]
        is_bound = view.operand(clip, 0) != value
        if is_bound or view.element(value) not in _SINGLE_OR_HALF:
            why = "the Relu makes a bound" if is_bound else "it reads bounds of f32 and f16 only"
            yield LookAlike("FuseReluClip", "one Clip", clip, why, Copied(value))


def slice_without_axes(view: GraphView) -> Iterator[LookAlike]:
    """EliminateSlice drops a Slice whose axes are absent and whose steps are given: it does not read the steps."""
    for index in view.of("Slice"):
        starts, steps = view.numbers(view.operand(index, 1)), view.operand(index, 4)
        if starts is None or not steps or view.operand(index, 3) or set(view.numbers(steps) or (0,)) == {1}:
            continue
        axes = tuple(range(len(starts)))
        yield LookAlike("EliminateSlice", "nothing", index, "it has steps", Given(index, 3, axes))


def product_that_is_an_output(view: GraphView) -> Iterator[LookAlike]:
    """GemmTransposeFusion removes a product that a Transpose reads, if an operand is a Transpose, an output too."""
    for index in view.of("Gemm", "MatMul"):
        value = view.nodes[index].output[0]
        if value not in view.outputs or not view.readers(value, "Transpose"):
            continue
        if any(view.maker(name, "Transpose") is not None for name in view.nodes[index].input[:2]):
            why = "its result is an output, which is lost"
            yield LookAlike("GemmTransposeFusion", "another Gemm", index, why, Copied(value))


def padded_weights(view: GraphView) -> Iterator[LookAlike]:
    """Pad_Fusion takes a Pad of the weights of a Conv for one of its data."""
    for pad in view.of("Pad"):
        value = view.nodes[pad].output[0]
        for conv in view.readers(value, "Conv"):
            if view.operand(conv, 0) != value:
                yield LookAlike("Pad_Fusion", "a Conv that pads", conv, "the Pad is of the weights", Copied(value))
                break


def padded_pools(view: GraphView) -> Iterator[LookAlike]:
    """Pad_Fusion, up to release 1.31, makes padding of a pool of a Pad by zeros.

    A MaxPool then pads with -infinity, and an AveragePool that rounds its size up counts other elements. The fusion
    takes no Pad with ``axes``.
    """
    for pad in view.of("Pad"):
        value = view.nodes[pad].output[0]
        pool = view.only_reader(pad, "MaxPool", "AveragePool")
        fill = view.operand(pad, 2)
        is_zero = not fill or view.number(fill) in (0, None)
        if pool is None or view.word(pad, "mode") not in ("", "constant") or not is_zero or view.operand(pad, 3):
            continue
        kernel = view.list_attribute(pool, "kernel_shape")
        pads = view.numbers(view.operand(pad, 1)) or view.list_attribute(pad, "pads")
        is_wide = not pads or max(pads) >= min(kernel or (1,))
        is_max = view.is_operator(pool, "MaxPool")
        is_positive = view.maker(view.operand(pad, 0), *_NOT_NEGATIVE) is not None
        if is_wide or (is_max and not is_positive) or (not is_max and view.attribute(pool, "ceil_mode", 0)):
            why = "zeros that are padded count, and padding of a pool does not"
            yield LookAlike("Pad_Fusion", "a pool that pads", pool, why, Copied(value))


def named_axes(view: GraphView) -> Iterator[LookAlike]:
    """TransposeOptimizer reorders pads, scales and sizes of the axes that a Pad or Resize names as if there were one
    for each axis, where a transpose behind the node may cancel the one before it."""
    for index in view.of("Pad", "Resize"):
        value, is_pad = view.operand(index, 0), view.is_operator(index, "Pad")
        if not (view.operand(index, 3) if is_pad else view.list_attribute(index, "axes")) or view.rank(value) is None:
            continue
        if view.maker(value, "Transpose") is not None and _meets_transpose(view, index):
            why = f"the {'pads' if is_pad else 'scales or sizes'} are of the axes that it names"
            node = view.nodes[index].op_type
            yield LookAlike("TransposeOptimizer", f"{node} before the transpose", index, why, Copied(value))


def _meets_transpose(view: GraphView, index: int) -> bool:
    """Return whether the first Transpose behind a node is behind nodes that have one reader each."""
    reader = view.only_reader(index)
    while reader is not None and not view.is_operator(reader, "Transpose"):
        reader = view.only_reader(reader)
    return reader is not None


def range_of_indices(view: GraphView) -> Iterator[LookAlike]:
    """GatherToSliceFusion makes a Slice of a Range of indices: one that crosses 0 then has no elements."""
    for index in view.of("Range"):
        gather = view.only_reader(index, "Gather")
        if gather is None or view.operand(gather, 1) != view.nodes[index].output[0]:
            continue
        start, delta = view.number(view.operand(index, 0)), view.number(view.operand(index, 2))
        if start is None or delta is None or start < 0 or delta < 0:
            why = "the indices may cross 0"
            yield LookAlike("GatherToSliceFusion", "Slice", gather, why, Copied(view.nodes[index].output[0]))


def transposed_matrix_by_vector(view: GraphView) -> Iterator[LookAlike]:
    """MatmulTransposeFusion takes the transpose of a matrix that is multiplied by a vector, through a Cast too."""
    for index in view.of("MatMul"):
        value, vector = view.nodes[index].input
        cast = view.maker(value, "Cast")
        if (
            view.rank(vector) == 1
            and view.maker(value if cast is None else view.operand(cast, 0), "Transpose") is not None
        ):
            yield LookAlike(
                "MatmulTransposeFusion", "FusedMatMul", index, "the right operand is a vector", Copied(value)
            )


def norm_of_a_sum(view: GraphView) -> Iterator[LookAlike]:
    """SkipLayerNormFusion takes the norm of a sum whose scale is not a vector of the last axis."""
    for norm in view.of("LayerNormalization", "SimplifiedLayerNormalization"):
        value = view.operand(norm, 0)
        add = view.maker(value, "Add")
        if add is None:
            continue
        shape, scale = view.shape(value), view.shape(view.operand(norm, 1))
        axis = view.attribute(norm, "axis", -1)
        is_last = axis == -1 or (shape is not None and axis == len(shape) - 1)
        if not is_last or shape is None or scale is None or scale != shape[-1:]:
            why = "the scale is not a vector of the size of the last axis"
            yield LookAlike("SkipLayerNormFusion", "SkipLayerNormalization", norm, why, Summed(add))


def normalized_product(view: GraphView) -> Iterator[LookAlike]:
    """MatMul_BatchNormalization_Fusion, up to release 1.31, looks through nodes that move the channels; in each release
    it removes what lies between, an output too."""
    for norm in view.of("BatchNormalization"):
        value = view.operand(norm, 0)
        between = view.maker(value, "Reshape", "Transpose")
        inner = [value]
        while between is not None:
            inner.append(view.operand(between, 0))
            between = view.maker(inner[-1], "Reshape", "Transpose")
        if len(inner) > 1 and view.maker(inner[-1], "MatMul") is not None:
            why = "the nodes between them may move the channels"
            yield LookAlike("MatMul_BatchNormalization_Fusion", "Gemm", norm, why, Copied(value))


def sum_of_convolutions(view: GraphView) -> Iterator[LookAlike]:
    """ConvAddActivationFusion takes the sum of two convolutions of which one is an output, which is lost."""
    for add in view.of("Add"):
        operands = view.nodes[add].input
        if not view.outputs.isdisjoint(operands) and all(view.maker(name, "Conv") is not None for name in operands):
            why = "a convolution is an output, which is lost"
            yield LookAlike("ConvAddActivationFusion", "FusedConv", add, why, Summed(add))


def shared_half(view: GraphView) -> Iterator[LookAlike]:
    """FastGeluFusion removes ``0.5 * x`` although other nodes read it."""
    for tanh in view.of("Tanh"):
        add = view.only_reader(tanh, "Add")
        product = None if add is None else view.only_reader(add, "Mul")
        if add is None or product is None:
            continue
        half = view.other(product, view.nodes[add].output[0])
        maker = view.maker(half, "Mul")
        if maker is None or not any(view.number(name) == 0.5 for name in view.nodes[maker].input):
            continue
        if len(view.users.get(half, ())) > 1 or half in view.outputs or view.rank(half) == 0:
            why = "the data is a scalar" if view.rank(half) == 0 else "half of the data is read by others"
            yield LookAlike("FastGeluFusion", "FastGelu", product, why, Summed(add))


def activation_of_a_scalar(view: GraphView) -> Iterator[LookAlike]:
    """GeluFusion, FastGeluFusion and QuickGeluFusion lose the axis that a constant gives to a scalar."""
    for index in view.of("Erf", "Sigmoid", "Tanh"):
        value = view.nodes[index].output[0]
        scaled = view.maker(view.operand(index, 0), "Mul", "Div")
        if view.rank(value) != 1 or scaled is None:
            continue
        if any(view.rank(name) == 0 and view.number(name) is None for name in view.nodes[scaled].input):
            name = {"Erf": "Gelu", "Sigmoid": "QuickGelu", "Tanh": "FastGelu"}[view.nodes[index].op_type]
            yield LookAlike(f"{name}Fusion", name, index, "the data is a scalar, and the result is not", Copied(value))
