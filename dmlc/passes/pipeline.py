"""The order of the passes. Passes of some targets or options only are loaded where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dmlc.ir import Graph
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.compose import Compose
from dmlc.passes.cse import Cse
from dmlc.passes.dce import Dce
from dmlc.passes.empty_advice import EmptyAdvice
from dmlc.passes.f16_advice import F16Advice
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.fold_conv import FoldConv
from dmlc.passes.fuse_attention import FuseAttention
from dmlc.passes.fuse_dot import FuseDot
from dmlc.passes.fuse_gemm import FuseGemm
from dmlc.passes.fuse_instance_norm import FuseInstanceNorm
from dmlc.passes.fuse_layer_norm import FuseLayerNorm
from dmlc.passes.fuse_selection import FuseSelection
from dmlc.passes.fuse_softmax import FuseSoftmax
from dmlc.passes.hoist import Hoist
from dmlc.passes.infer_shapes import InferShapes
from dmlc.passes.keep_transposes import KeepTransposes
from dmlc.passes.legalize import Legalize
from dmlc.passes.lower_hardmax import LowerHardmax
from dmlc.passes.manager import FixedPoint, Pass, PassContext, PassManager
from dmlc.passes.options import Options
from dmlc.passes.quantized_advice import QuantizedAdvice
from dmlc.passes.recognize_reduce import RecognizeReduce
from dmlc.passes.repair import Repair
from dmlc.passes.share_prefixes import SharePrefixes
from dmlc.passes.share_reductions import ShareReductions
from dmlc.passes.split_from_slices import SplitFromSlices
from dmlc.passes.stop_repetition import StopRepetition
from dmlc.targets import Target


def run_passes(graph: Graph, options: Options, target: Target) -> PassContext:
    """Run all passes for a target and return what they recorded. Times of lowerings count for the target of the options
    alone. Raises ``DmlcError``."""
    options = options if target is options.target else replace(options, tuner=None)
    context = PassContext(target, options.opset, options, progress=options.progress)
    same = [condition.left - condition.right for condition in graph.conditions if condition.relation == "=="]
    graph.dims.zeros |= {*same, *(-difference for difference in same)}  # a rewrite may rely on what run time checks
    if graph.joined is not None and (options.bind or options.shapes):  # nodes were read before sizes were fixed
        graph.retyped = {node: None for node in graph if node.origin is not None}
    _passes(target, options).run(graph, context)
    return context


def narrowed(graph: Graph, options: Options) -> Graph:
    """Return a copy of the graph that computes in f32 what is f64."""
    from dmlc.passes.narrow_f64 import NarrowF64

    out = graph.clone()
    NarrowF64().run(out, PassContext(options.target, options.opset, options))
    return out


def _passes(target: Target, options: Options) -> PassManager:
    """All passes for a target; none at an opset below its own, for which no pass is made. Where operators are to be
    decomposed, all else stays as it is."""
    if options.decompose:
        from dmlc.passes.decompose import Decompose

        return PassManager((Decompose(),))
    return PassManager(()) if options.opset < target.min_opset else default_pipeline(target, options)


def default_pipeline(target: Target, options: Options) -> PassManager:
    """The passes for a target. With ``lower_hardmax`` NumPy code gets it lowered too. The others are of ``fusions``.

    Hardmax is lowered late. Its parts fold; nothing folds after ``legalize``, which may have put two casts where one
    has no kernel.
    """
    passes: list[Pass] = [*fusions(options)]
    if target.kernels is not None:
        passes += [Compose(), *_first_lowerings(target, options)]
        passes.append(FixedPoint((Cse(), CanonicalizeReduce(), Hoist(), Dce())))
    if target.code != "numpy" or options.lower_hardmax:  # NumPy code says hardmax over any axes
        passes.append(LowerHardmax())
    if _chooses(target, options):
        from dmlc.passes.choose_lowering import ChooseLowering

        # A hardmax that is asked for as argmax and one_hot is that first.
        passes.insert(len(passes) - (not options.lower_hardmax), ChooseLowering())
    if target.provider is not None and target.own_schemas:
        passes.append(FuseAttention())
    if target.code != "numpy" and (target.provider is not None or target.costs is None):
        # A repair may undo another, or the operation that it stands beside. A lowering by costs must stay as it is.
        repairs = () if target.provider is None else (Repair(),)
        again = (FuseGemm(), FoldConstants(), FoldConv(), CanonicalizeReduce(), Hoist(), Cse(), Dce())
        passes.append(FixedPoint((*repairs, *again)))
    if target.kernels is not None:
        passes.append(Legalize())
    passes += [Cse(), Dce()]
    if target.code != "numpy":
        passes += [SplitFromSlices(), KeepTransposes(), StopRepetition()]
    return PassManager((*passes, F16Advice(), QuantizedAdvice()))


def _chooses(target: Target, options: Options) -> bool:
    """Return whether lowerings are chosen: by costs, or by times of the target's device."""
    return target.costs is not None or options.tuner is not None


def _first_lowerings(target: Target, options: Options) -> Sequence[Pass]:
    """Lowerings by costs whose parts the rewrites around them merge with."""
    if not _chooses(target, options):
        return ()
    from dmlc.passes.choose_lowering import FIRST, ChooseLowering

    return (ChooseLowering(groups=FIRST),)


def fusions(options: Options) -> tuple[Pass, ...]:
    """The passes whose result is still a program of the language: what is computed, in as few operations as can be.

    Dead and equal nodes go first, so that "used once" is true where it can be.
    """
    first: list[Pass] = []
    last: list[Pass] = []
    if options.f64:
        from dmlc.passes.narrow_f64 import NarrowF64

        first.append(NarrowF64())
    if options.accumulate:
        from dmlc.passes.accumulate_f32 import AccumulateF32

        last += [AccumulateF32(), Dce()]
    return (
        *first,
        InferShapes(),
        Dce(),
        EmptyAdvice(),
        FixedPoint(_rewrites()),
        *last,
    )


def _rewrites() -> tuple[Pass, ...]:
    """The rewrites that feed each other. What fusions make is folded at once: the passes behind see the last form."""
    return (
        FoldConstants(),
        Cse(),
        FoldConv(),
        CanonicalizeReduce(),
        FuseLayerNorm(),
        FuseInstanceNorm(),
        FuseSoftmax(),
        RecognizeReduce(),
        FuseDot(),
        FuseSelection(),
        FoldConstants(),
        Hoist(),
        CanonicalizeReduce(),
        ShareReductions(),
        SharePrefixes(),
        Dce(),
    )
