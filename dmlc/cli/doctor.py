"""Report what is installed: versions, packages of ONNX Runtime, execution providers, what is broken or missing.

It runs on Python's standard library alone. The exit code is 1 if a library cannot be used, or if the files of ONNX
Runtime belong to no single package.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TypedDict

from dmlc import __version__
from dmlc.cli.console import Console, UsageError
from dmlc.cli.layout import table
from dmlc.cli.options import add_report_options
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.libraries import LIBRARIES, one_line, package_to_install, require
from dmlc.runtime.directml_device import DirectMLDevice, directml_device
from dmlc.runtime.distributions import RuntimeDistribution, package_folder, plugin_version, runtime_distributions
from dmlc.runtime.webgpu import WebGPUDevice, webgpu_device_facts

_DML, _RUNTIME = "DmlExecutionProvider", "onnxruntime"


class DoctorAnswer(TypedDict):
    """The installation. ``libraries`` are their versions, null if one cannot be used."""

    python: str
    dmlc: str
    system: str
    libraries: dict[str, str | None]
    runtimes: list[RuntimeDistribution]
    cpu_kernels: str
    providers: list[str]
    directml: DirectMLDevice | None
    webgpu: WebGPUDevice | None
    missing: list[str]
    broken: dict[str, str]
    advice: list[str]


def answers() -> tuple[type, ...]:
    """Return the records of the documents."""
    from dmlc.cli.probe_view import ProbeAnswer

    return DoctorAnswer, ProbeAnswer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("probe")
    group.add_argument(
        "--probe",
        nargs="?",
        const="",
        metavar="MODEL",
        help="run each node of a model alone on the device, or each operator of the package's table",
    )
    group.add_argument("--backend", choices=("dml", "webgpu", "cpu"), help="the provider (default: dml, or else cpu)")
    group.add_argument("-o", "--output", metavar="OUT", help="the file of the rows (default: MODEL.probe.json)")
    group.add_argument("--force", action="store_true", help="also run what is known to end the process")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.probe is not None:
        from dmlc.cli.probe_view import show_probe

        return show_probe(args, console)
    if args.force or args.backend or args.output:
        raise UsageError("--backend, -o and --force are options of --probe")
    versions, errors = _libraries()
    runtimes = runtime_distributions()
    providers = [] if _RUNTIME in errors else list(require(_RUNTIME).get_available_providers())
    kernels, problem = _cpu_kernels(errors)
    device = _device() if sys.platform == "win32" else None
    missing = [name for name, error in errors.items() if _is_missing(name, error)]
    broken = {name: _reason(error) for name, error in errors.items() if name not in missing}
    mixed = _mixed(runtimes)
    advice = [*_library_advice(errors, runtimes), *_runtime_advice(runtimes)]
    if _RUNTIME in versions and _DML not in providers:
        advice.append(_directml_advice(runtimes))
    if problem:
        advice.append(f"Target cpu is made for the kernels in the data file: {problem}.")
    rows = [["python", platform.python_version()], ["dmlc", __version__], ["system", platform.platform()]]
    states = versions | dict.fromkeys(missing, "missing") | {name: f"broken: {why}" for name, why in broken.items()}
    rows += [[name, states[name]] for name in LIBRARIES]
    rows += [["runtime package", _runtime_line(each)] for each in runtimes]
    rows += [["target cpu", kernels], ["providers", ", ".join(providers) or "none"]]
    if device is not None:
        rows += _device_rows(device, runtimes)
        advice += device.problems
    webgpu, words = _webgpu(errors)
    rows.append(["WebGPU", words])
    default = "dml" if _DML in providers else "cpu" if providers else None
    rows.append(["dmlc run", f"on {default} by default" if default else "only with --backend numpy or reference"])
    console.result(table(rows) + "".join(f"\n{sentence}\n" for sentence in advice))
    fine = not (missing or broken or mixed)
    answer: DoctorAnswer = {
        "python": platform.python_version(),
        "dmlc": __version__,
        "system": platform.platform(),
        "libraries": {name: versions.get(name) for name in LIBRARIES},
        "runtimes": runtimes,
        "cpu_kernels": kernels,
        "providers": providers,
        "directml": device,
        "webgpu": webgpu,
        "missing": missing,
        "broken": broken,
        "advice": advice,
    }
    console.document(answer, ok=fine)
    return 0 if fine else 1


# --- libraries


def _libraries() -> tuple[dict[str, str], dict[str, DmlcError]]:
    """Return the versions of the libraries that can be loaded, and the errors of the others."""
    versions, errors = {}, {}
    for name in LIBRARIES:
        try:
            with redirect_stdout(sys.stderr):  # a broken library may print
                versions[name] = str(getattr(require(name), "__version__", "of unknown version"))
        except DmlcError as error:
            errors[name] = error
    return versions, errors


def _is_missing(name: str, error: DmlcError) -> bool:
    return isinstance(error.__cause__, ModuleNotFoundError) and error.__cause__.name == name


def _reason(error: DmlcError) -> str:
    """The message without the name of the library."""
    return error.diagnostics[0].message.partition(": ")[2]


def _library_advice(errors: Mapping[str, DmlcError], runtimes: Sequence[RuntimeDistribution]) -> Iterator[str]:
    for name, error in errors.items():
        here = [each.name for each in runtimes if each.imported] if name == _RUNTIME else []
        message = error.diagnostics[0].message
        if len(here) > 1 or (here and _mixed(runtimes)):
            yield message  # the advice on the packages follows
        else:
            yield f"{message}\n  pip install --force-reinstall {here[0] if here else package_to_install(name)}"


def _cpu_kernels(errors: Mapping[str, DmlcError]) -> tuple[str, str]:
    """Return where target ``cpu`` reads its kernels, and why that is not the installed library."""
    needed = [name for name in ("msgspec", "numpy", "onnx") if name in errors]
    if needed:
        return "none", f"reading the kernels of the installed library needs {needed[0]}"
    try:
        from dmlc.runtime.installed_kernels import installed
        from dmlc.targets import kernel_table, load_target

        found = installed()
        table = found.table or kernel_table(load_target("cpu"))
    except Exception as error:  # a library that can be imported may lack anything else
        return "none", one_line(error)
    return ("none" if table is None else table.source), found.problem


def _webgpu(errors: Mapping[str, DmlcError]) -> tuple[WebGPUDevice | None, str]:
    """Return the WebGPU provider's device, and a line about it."""
    if not plugin_version():
        return None, 'missing: pip install "dmlc[webgpu]"'
    if any(name in errors for name in ("msgspec", "numpy", "onnx", _RUNTIME)):
        return None, "not found out: a library is missing"
    try:
        found = webgpu_device_facts()
    except DmlcError as error:
        (diagnostic,) = error.diagnostics
        return None, f"{diagnostic.message}: {diagnostic.help}"
    kind = "a driver that computes on the CPU" if found.software else "a GPU"
    state = ("f32 and f16" if found.f16 else "f32, not f16") if found.runs else "but fails on x + x"
    return found, f"plugin {found.version}, {kind} ({found.vendor}), {state}"


# --- packages of ONNX Runtime


def _runtime_line(each: RuntimeDistribution) -> str:
    if not each.files:
        state = "does not list its files"
    elif each.whole:
        state = f"all {counted(each.files, 'file')} in place"
    else:
        parts = [f"{number} overwritten by {title}" for title, number in each.overwritten.items()]
        parts += [
            f"{number} {word}" for number, word in ((each.changed, "changed"), (each.missing, "missing")) if number
        ]
        state = f"of {counted(each.files, 'file')} {', '.join(parts)}"
    elsewhere = "" if each.imported else f"; in {each.folder}, which Python does not import it from"
    return f"{each.title}: {state}{elsewhere}"


def _mixed(runtimes: Sequence[RuntimeDistribution]) -> bool:
    """Return True if files are damaged: no package of the imported folder has all of its files."""
    here = [each for each in runtimes if each.imported and each.files]
    return bool(here) and not any(each.whole for each in here)


def _runtime_advice(runtimes: Sequence[RuntimeDistribution]) -> Iterator[str]:
    here = [each for each in runtimes if each.imported]
    folder = package_folder()
    if not here and folder is not None:
        yield f"No installed package lists the files of {folder}: they were built there, or are left of an uninstall."
    elif len(here) == 1 and _mixed(here):
        (each,) = here
        again = f"pip install --force-reinstall --no-deps {each.name}=={each.version}"
        yield f"The files of {each.title} are not as installed ({_runtime_line(each)}):\n  {again}"
    elif len(here) > 1:
        whole = [each.title for each in here if each.whole]
        present = f"the files there belong to {' and '.join(whole)}" if whole else "the files there are a mix of them"
        remove = f"pip uninstall -y {' '.join(dict.fromkeys(each.name for each in here))}"
        lines = [
            f"{' and '.join(each.title for each in here)} share one folder, {folder}; {present}. Keep one of them:"
        ]
        lines += [f"  {remove} && pip install --no-deps {each.name}=={each.version}" for each in here]
        yield "\n".join(lines)


# --- DirectML


def _device() -> DirectMLDevice:
    """Ask Windows for its DirectML device, with the library beside ONNX Runtime if it came with one."""
    folder = package_folder()
    return directml_device(bundled=None if folder is None else folder / "capi" / "DirectML.dll")


def _device_rows(device: DirectMLDevice, runtimes: Sequence[RuntimeDistribution]) -> list[list[str]]:
    owners = [each for each in runtimes if each.imported and each.directml]
    owners = [each for each in owners if each.whole] or owners
    bundle = f"bundled with {owners[0].title if owners else 'onnxruntime'}"
    origin = {True: bundle, False: "of the system", None: "missing"}[device.bundled]
    library = ", ".join(filter(None, [device.version, origin, device.path]))
    level = device.feature_level or "not found out"
    return [["DirectML", library], ["adapter", device.adapter or "not found out"], ["feature level", level]]


def _directml_advice(runtimes: Sequence[RuntimeDistribution]) -> str:
    if sys.platform != "win32":
        return "DirectML is missing: it exists on Windows only. Models for it are checked on ONNX Runtime's CPU."
    names = list(dict.fromkeys(each.name for each in runtimes if each.imported)) or [_RUNTIME]
    wanted = package_to_install(_RUNTIME)
    if wanted == _RUNTIME:  # onnxruntime-directml has no wheel for this processor
        wanted = "onnxruntime-windowsml"
    command = f"pip uninstall -y {' '.join(names)} && pip install {wanted}"
    return f"DirectML is missing: this ONNX Runtime was built without it ({', '.join(names)}).\n  {command}"
