"""ONNX Runtime: one session for a model, on the DirectML execution provider or on the CPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, Label, Source, Span, fail, option
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.libraries import no_directml, require
from dmlc.ir import Array
from dmlc.runtime.feeds import FeedChecker

if TYPE_CHECKING:
    from onnx import ModelProto

_DML, _CPU = "DmlExecutionProvider", "CPUExecutionProvider"
#: The first opset that ONNX Runtime has kernels for (onnxruntime, docs/Versioning.md).
_FIRST_OPSET = 7
#: Key of the folder with the external data of a model given as bytes (onnxruntime_session_options_config_keys.h).
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"


def onnxruntime() -> Any:
    """Import ONNX Runtime. Raises ``DmlcError`` E0560 if it is missing or broken."""
    return require("onnxruntime")


def has_directml() -> bool:
    """Return True if this ONNX Runtime has the DirectML execution provider. Raises what ``onnxruntime`` raises."""
    return _DML in onnxruntime().get_available_providers()


def session_options(
    backend: str, *, folder: Path | None = None, dims: Mapping[str, int] | None = None, threads: int | None = None
) -> tuple[Any, list[str]]:
    """The options and the providers of a session on ``dml`` or ``cpu``.

    ``folder`` is where external data lies, ``dims`` fixes free dimensions by name, ``threads`` are those of a node.
    Raises ``DmlcError`` E0553 where the provider is missing, E0560 where ONNX Runtime is.
    """
    library = onnxruntime()
    if backend == "dml" and not has_directml():
        raise no_directml()
    options = library.SessionOptions()
    if folder is not None:
        options.add_session_config_entry(_WEIGHTS_FOLDER, str(folder.absolute()))
    if threads is not None:
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # errors are raised; a second report on stderr would only confuse
    for name, size in (dims or {}).items():
        options.add_free_dimension_override_by_name(name, size)
    if backend != "dml":
        return options, [_CPU]
    # the provider demands both: https://onnxruntime.ai/docs/execution-providers/DirectML-ExecutionProvider.html
    options.enable_mem_pattern = False
    options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    return options, [_DML, _CPU]


def open_session(model: ModelProto, options: Any, providers: Sequence[str]) -> Any:
    """ONNX Runtime's session of a model. Raises what ONNX Runtime raises."""
    return onnxruntime().InferenceSession(model.SerializeToString(), options, providers=list(providers))


def opset_help(model: ModelProto, message: str) -> str:
    """The help for a model that ONNX Runtime refuses for its opset; empty where the opset is not the reason."""
    opset = max([entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")], default=0)
    if 0 < opset < _FIRST_OPSET and "Could not find an implementation" in message:
        return (
            f"the model is of opset {opset}, and ONNX Runtime has kernels from opset {_FIRST_OPSET} on: export it anew"
        )
    newest = re.search(r"is till opset (\d+)", message)
    return f"this ONNX Runtime reads models up to opset {newest[1]}: install a newer one" if newest else ""


class Session:
    """A model loaded into ONNX Runtime.

    Making it is slow; running it costs what ONNX Runtime costs and a few microseconds for the checks. Inputs and
    outputs are handed over as NumPy arrays: IO binding was measured (2026-11, CPU) to add time to a call whose data
    comes from NumPy and goes back there. ``dims`` fixes free dimensions by name while the
    session is made, which lets the DirectML provider fuse what it otherwise compiles anew for every shape.
    Raises ``DmlcError``: E0553 where the provider is missing, E0554 where ONNX Runtime refuses the model,
    E0560 where it is missing or broken itself.
    """

    def __init__(
        self,
        artifact: Artifact,
        backend: str,
        *,
        dims: Mapping[str, int] | None = None,
        threads: int | None = None,
    ) -> None:
        self.backend = backend
        self.checker = FeedChecker(artifact.signature)
        self._locations = artifact.locations
        self._outputs = [name for name, _ in artifact.signature.outputs]
        options, providers = session_options(backend, folder=artifact.folder, dims=dims, threads=threads)
        try:
            self._session = open_session(artifact.payload, options, providers)
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise self._failure("ONNX Runtime refuses the model", error, artifact.payload) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises ``TypeError``."""
        raise TypeError("a session of ONNX Runtime cannot be copied or pickled: copy or pickle the program")

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name, or those of ``names``.

        Raises what ``FeedChecker.check`` raises, and E0554 where ONNX Runtime fails."""
        arrays = self.checker.check(feeds)
        try:
            wanted = list(dict.fromkeys(names or self._outputs))  # ONNX Runtime takes none for all
            results = self._session.run(wanted, arrays)
        except Exception as error:  # as above
            raise self._failure("ONNX Runtime failed", error) from None
        return dict(zip(wanted, results, strict=True))

    def _failure(self, what: str, error: Exception, model: ModelProto | None = None) -> DmlcError:
        text = " ".join(str(error).split())
        message = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
        labels = [Label(span, "this node") for span in (self._place(text),) if span]
        help = option("dmlc verify SRC", "program.verify()") + " reports whether the model fails as it is"
        if self._locations:  # a program: the reference may lack an operator of a model
            help = option("--backend reference", "backend='reference'") + " shows what it means"
        help = (model is not None and opset_help(model, message)) or help
        return fail(codes.RUNTIME_FAILED, f"{what}: {message}", *labels, help=help)

    def _place(self, text: str) -> Span | None:
        """Return the source location of the first node that the message names."""
        for quoted, bracketed in re.findall(r"'([^']+)'|\(([^()]+)\)", text):
            location = self._locations.get(quoted or bracketed)
            if location:
                name, line, column = location.rsplit(":", 2)
                return Span(Source.python(name), int(line), int(column), int(line), int(column) + 1)
        return None
