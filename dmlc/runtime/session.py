"""ONNX Runtime: one session for a model, on the DirectML execution provider or on the CPU."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, Label, Source, Span, fail, option
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.libraries import no_provider, require
from dmlc.ir import Array
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.ort_model import OrtModel, options_of, plain_message
from dmlc.runtime.runnable import RunFailed
from dmlc.workers.sessions import ProviderMissing, session_settings, webgpu_device

if TYPE_CHECKING:
    from onnx import ModelProto

#: The first opset that ONNX Runtime has kernels for (onnxruntime, docs/Versioning.md).
_FIRST_OPSET = 7


def onnxruntime() -> Any:
    """Import ONNX Runtime. Raises ``DmlcError`` E0560 if it is missing or broken."""
    return require("onnxruntime")


def has_directml() -> bool:
    """Return True if this ONNX Runtime has the DirectML execution provider. Raises what ``onnxruntime`` raises."""
    return "DmlExecutionProvider" in onnxruntime().get_available_providers()


def has_webgpu() -> bool:
    """Return True if the WebGPU execution provider has a device. Raises what ``onnxruntime`` raises."""
    try:
        webgpu_device(onnxruntime())
    except ProviderMissing:
        return False
    return True


def session_options(
    backend: str, *, folder: Path | None = None, model: ModelProto | None = None
) -> tuple[Any, list[Any]]:
    """The options and the providers of a session on ``dml``, ``webgpu`` or ``cpu`` with ONNX Runtime's defaults, and
    what the metadata of the model asks for.

    ``folder`` is where external data lies. Raises ``DmlcError`` E0553 if the provider is missing, E0560 if ONNX Runtime
    is.
    """
    try:
        given = {} if model is None else options_of(model, backend)
        settings = {"backend": backend, "folder": folder and str(folder.absolute()), "provider_options": given}
        return session_settings(onnxruntime(), settings)
    except ProviderMissing as missing:
        raise no_provider(str(missing)) from None


def open_session(model: ModelProto, options: Any, providers: Sequence[Any]) -> Any:
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
        self.checker: FeedChecker = FeedChecker(artifact.signature)
        self._locations = artifact.locations
        self._outputs = [name for name, _ in artifact.signature.outputs]
        try:
            self._model = OrtModel(artifact.payload, artifact.folder, backend=backend, dims=dims, threads=threads)
        except RunFailed as error:
            raise self._failure("ONNX Runtime refuses the model", error, artifact.payload) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises ``TypeError``."""
        raise TypeError("a session of ONNX Runtime cannot be copied or pickled: copy or pickle the program")

    def run(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name: ``names``, or all.

        Raises what ``FeedChecker.check`` raises, and E0554 where ONNX Runtime fails."""
        arrays = self.checker.check(feeds)
        try:
            return self._model.run(arrays, names or self._outputs)
        except RunFailed as error:
            raise self._failure("ONNX Runtime failed", error) from None

    def _failure(self, what: str, error: RunFailed, model: ModelProto | None = None) -> DmlcError:
        text, message = " ".join(str(error).split()), plain_message(error)
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
