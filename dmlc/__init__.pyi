"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""

# ruff: noqa: A004

from dmlc import api as api
from dmlc import debugging as debugging
from dmlc import std as std
from dmlc import testing as testing
from dmlc import verifying as verifying
from dmlc.api import Program as Program
from dmlc.api import TextSource as Source
from dmlc.api import compile as compile
from dmlc.api.checking import CheckResult as CheckResult
from dmlc.api.checking import check as check
from dmlc.api.decomposition import decompose as decompose
from dmlc.api.fixing import FixedText as FixedText
from dmlc.api.fixing import MadeFix as MadeFix
from dmlc.api.fixing import fix as fix
from dmlc.api.functions import function as function
from dmlc.builder import Graph as Graph
from dmlc.builder import Tensor as Tensor
from dmlc.builder import constant as constant
from dmlc.builder import onnx as onnx
from dmlc.builder import size as size
from dmlc.builder.operations import abs as abs
from dmlc.builder.operations import argmax as argmax
from dmlc.builder.operations import argmin as argmin
from dmlc.builder.operations import argsort as argsort
from dmlc.builder.operations import cast as cast
from dmlc.builder.operations import ceil as ceil
from dmlc.builder.operations import clip as clip
from dmlc.builder.operations import concat as concat
from dmlc.builder.operations import cos as cos
from dmlc.builder.operations import cumprod as cumprod
from dmlc.builder.operations import cumsum as cumsum
from dmlc.builder.operations import elu as elu
from dmlc.builder.operations import erf as erf
from dmlc.builder.operations import exp as exp
from dmlc.builder.operations import expand as expand
from dmlc.builder.operations import flip as flip
from dmlc.builder.operations import floor as floor
from dmlc.builder.operations import full as full
from dmlc.builder.operations import gather as gather
from dmlc.builder.operations import gather_elements as gather_elements
from dmlc.builder.operations import gelu as gelu
from dmlc.builder.operations import hard_sigmoid as hard_sigmoid
from dmlc.builder.operations import hardmax as hardmax
from dmlc.builder.operations import iota as iota
from dmlc.builder.operations import is_inf as is_inf
from dmlc.builder.operations import is_nan as is_nan
from dmlc.builder.operations import layer_norm as layer_norm
from dmlc.builder.operations import leaky_relu as leaky_relu
from dmlc.builder.operations import log as log
from dmlc.builder.operations import log_softmax as log_softmax
from dmlc.builder.operations import lp_norm as lp_norm
from dmlc.builder.operations import matmul as matmul
from dmlc.builder.operations import max as max
from dmlc.builder.operations import mean_variance_norm as mean_variance_norm
from dmlc.builder.operations import min as min
from dmlc.builder.operations import neg as neg
from dmlc.builder.operations import not_ as not_
from dmlc.builder.operations import one_hot as one_hot
from dmlc.builder.operations import pad as pad
from dmlc.builder.operations import pow as pow
from dmlc.builder.operations import reciprocal as reciprocal
from dmlc.builder.operations import reduce_all as reduce_all
from dmlc.builder.operations import reduce_any as reduce_any
from dmlc.builder.operations import reduce_l1 as reduce_l1
from dmlc.builder.operations import reduce_l2 as reduce_l2
from dmlc.builder.operations import reduce_log_sum as reduce_log_sum
from dmlc.builder.operations import reduce_log_sum_exp as reduce_log_sum_exp
from dmlc.builder.operations import reduce_max as reduce_max
from dmlc.builder.operations import reduce_mean as reduce_mean
from dmlc.builder.operations import reduce_min as reduce_min
from dmlc.builder.operations import reduce_prod as reduce_prod
from dmlc.builder.operations import reduce_sum as reduce_sum
from dmlc.builder.operations import reduce_sum_square as reduce_sum_square
from dmlc.builder.operations import relu as relu
from dmlc.builder.operations import reshape as reshape
from dmlc.builder.operations import rms_norm as rms_norm
from dmlc.builder.operations import round as round
from dmlc.builder.operations import scatter_elements as scatter_elements
from dmlc.builder.operations import sigmoid as sigmoid
from dmlc.builder.operations import sign as sign
from dmlc.builder.operations import silu as silu
from dmlc.builder.operations import sin as sin
from dmlc.builder.operations import slice as slice
from dmlc.builder.operations import softmax as softmax
from dmlc.builder.operations import softplus as softplus
from dmlc.builder.operations import softsign as softsign
from dmlc.builder.operations import sort as sort
from dmlc.builder.operations import split as split
from dmlc.builder.operations import sqrt as sqrt
from dmlc.builder.operations import squeeze as squeeze
from dmlc.builder.operations import stack as stack
from dmlc.builder.operations import tanh as tanh
from dmlc.builder.operations import tile as tile
from dmlc.builder.operations import top_k as top_k
from dmlc.builder.operations import transpose as transpose
from dmlc.builder.operations import unsqueeze as unsqueeze
from dmlc.builder.operations import where as where
from dmlc.debugging import BisectResult as BisectResult
from dmlc.debugging import LocatedVerdict as LocatedVerdict
from dmlc.debugging import ModelDiff as ModelDiff
from dmlc.debugging import Repro as Repro
from dmlc.debugging import bisect as bisect
from dmlc.debugging import diff as diff
from dmlc.debugging import locate as locate
from dmlc.debugging import repro as repro
from dmlc.debugging import verify as verify
from dmlc.diagnostics import Diagnostic as Diagnostic
from dmlc.diagnostics import DmlcError as DmlcError
from dmlc.diagnostics import Edit as Edit
from dmlc.diagnostics import Fix as Fix
from dmlc.ir.dtype import DType as DType
from dmlc.ir.dtype import bool_ as bool_
from dmlc.ir.dtype import f16 as f16
from dmlc.ir.dtype import f32 as f32
from dmlc.ir.dtype import f64 as f64
from dmlc.ir.dtype import i8 as i8
from dmlc.ir.dtype import i16 as i16
from dmlc.ir.dtype import i32 as i32
from dmlc.ir.dtype import i64 as i64
from dmlc.ir.dtype import u8 as u8
from dmlc.ir.dtype import u16 as u16
from dmlc.ir.dtype import u32 as u32
from dmlc.ir.dtype import u64 as u64
from dmlc.onnx_schema.metadata import model_facts as model_facts
from dmlc.placement.report import Placement as Placement
from dmlc.verifying.verdict import Verdict as Verdict

__version__: str
bool: DType

__all__ = [
    "BisectResult",
    "CheckResult",
    "DType",
    "Diagnostic",
    "DmlcError",
    "Edit",
    "Fix",
    "FixedText",
    "Graph",
    "LocatedVerdict",
    "MadeFix",
    "ModelDiff",
    "Placement",
    "Program",
    "Repro",
    "Source",
    "Tensor",
    "Verdict",
    "argmax",
    "argmin",
    "argsort",
    "bisect",
    "bool_",
    "cast",
    "ceil",
    "check",
    "clip",
    "concat",
    "constant",
    "cos",
    "cumprod",
    "cumsum",
    "decompose",
    "diff",
    "elu",
    "erf",
    "exp",
    "expand",
    "f16",
    "f32",
    "f64",
    "fix",
    "flip",
    "floor",
    "full",
    "function",
    "gather",
    "gather_elements",
    "gelu",
    "hard_sigmoid",
    "hardmax",
    "i8",
    "i16",
    "i32",
    "i64",
    "iota",
    "is_inf",
    "is_nan",
    "layer_norm",
    "leaky_relu",
    "locate",
    "log",
    "log_softmax",
    "lp_norm",
    "matmul",
    "mean_variance_norm",
    "model_facts",
    "neg",
    "not_",
    "one_hot",
    "onnx",
    "pad",
    "reciprocal",
    "reduce_all",
    "reduce_any",
    "reduce_l1",
    "reduce_l2",
    "reduce_log_sum",
    "reduce_log_sum_exp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reduce_sum_square",
    "relu",
    "repro",
    "reshape",
    "rms_norm",
    "scatter_elements",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "size",
    "softmax",
    "softplus",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "squeeze",
    "stack",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "u8",
    "u16",
    "u32",
    "u64",
    "unsqueeze",
    "verify",
    "where",
]
