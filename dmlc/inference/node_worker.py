"""ONNX's own inference of one node, in a process with limits: the one place that calls it.

Some nodes end the process of who asks, or fill its memory (onnx 1.23 reads behind the ends of arrays and makes shapes
without end). It is asked about operators that no rule knows, and its answer is a claim.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from typing import BinaryIO

from onnx import ModelProto, shape_inference

#: The address space of the process, in bytes.
_MEMORY = 4 << 30


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes: for a serialized model one with inferred types, None where that fails."""
    while True:
        try:
            data = pickle.load(requests)
        except EOFError:
            return
        answer = None
        with contextlib.suppress(Exception):  # ONNX raises what it likes, protobuf's own errors among it
            answer = shape_inference.infer_shapes(ModelProto.FromString(data), data_prop=True).SerializeToString()
        answers.write(pickle.dumps(answer, protocol=5))
        answers.flush()


def main() -> None:
    """Serve on stdin and stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of native code must not come between the answers
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    serve(sys.stdin.buffer, answers)
