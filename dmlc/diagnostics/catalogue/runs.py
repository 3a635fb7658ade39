"""Errors of compiling and running: files of the command line and given data (E04), targets and backends (E05)."""

from dmlc.diagnostics.code import declare

CANNOT_READ = declare(
    "E0420",
    "a file cannot be opened",
    """The file that the command line names is missing, may not be read, or is not a plain file. Folders, pipes,
    sockets and devices are not read (`-` is stdin). Exit code 2.""",
    example="""
$ dmlc check haed.dml
error[E0420]: cannot open haed.dml: no such file or directory
""",
    fixed="$ dmlc check head.dml",
    program=False,
)

CANNOT_WRITE = declare(
    "E0421",
    "a file cannot be written",
    """The output cannot be written. Its folder is missing or may not be written to, or the disk is full. Or the
    output is a folder, a symbolic link to a file, a pipe that nobody reads, or a file with weights of the source.
    Nothing is left half written: the result is first written to another file in the output's folder, which is then
    renamed. Exit code 2.""",
    example="""
$ dmlc compile head.dml -o no/such/folder/head.onnx
error[E0421]: cannot write no/such/folder/head.onnx: no such file or directory
""",
    fixed="$ mkdir -p no/such/folder && dmlc compile head.dml -o no/such/folder/head.onnx",
    program=False,
)

BAD_ARRAY_FILE = declare(
    "E0422",
    "a file holds no array",
    """`--input` takes `.npy` files, and arrays of `.npz` files by their key. The file is cut short, is something else,
    holds Python objects, has no such key, or is compressed and would take more than 1 GiB.""",
    example="""
$ dmlc run head.dml --input x=data.npz:imgae
error[E0422]: data.npz has no array imgae: it has image, label
""",
    fixed="$ dmlc run head.dml --input x=data.npz:image",
    program=False,
)

NOT_CODE = declare(
    "E0448",
    "a Python file is not a function of arrays",
    """`verify` takes `.py` files, such as the NumPy code that `compile -o head.py` writes. The first function of the
    file takes an array for each input of the model, in order, and returns one for each output. The file cannot be run,
    has no function, or its function takes another number of arrays.""",
    example="""
$ dmlc verify head.dml constants.py
error[E0448]: constants.py has no function
""",
    fixed="$ dmlc verify head.dml head.py",
    program=False,
)

INPUT_NAMES = declare(
    "E0423",
    "inputs are missing or unknown",
    """Every input of the model is given, by its name, and nothing else is.""",
    example="""
$ dmlc run head.dml --input imgae=image.npy
error[E0423]: the model has no input imgae
""",
    fixed="$ dmlc run head.dml --input image=image.npy",
    program=False,
)

FED_DTYPE = declare(
    "E0424",
    "given data has another dtype",
    """Arrays are given in the dtype that the model declares; a silent conversion could change values. Python's own
    numbers and lists of them are converted where every value fits.""",
    example="""
program.run({"x": np.zeros((2, 3))})              # f64, the model wants f32
""",
    fixed='program.run({"x": np.zeros((2, 3), np.float32)})',
    program=False,
)

FED_SHAPE = declare(
    "E0425",
    "given data has another shape",
    """The shape of an input has the declared number of axes and the declared sizes. A dim has one value in all
    inputs, within its bounds.""",
    example="""
program.run({"x": np.zeros((2, 3), np.float32)})     # the model wants f32[N, 4]
""",
    fixed='program.run({"x": np.zeros((2, 4), np.float32)})',
    program=False,
)

FED_CONDITION = declare(
    "E0426",
    "the given sizes break a relation",
    """Some relations between sizes cannot be proved while compiling, such as `5 <= N` for `top_k(x, k=5)`; they are
    checked when the sizes are known.""",
    example="""
program.run({"x": np.zeros(4, np.float32)})    # the model takes top_k(x, k=5) of f32[N]
""",
    fixed='program.run({"x": np.zeros(8, np.float32)})    # or declare `dim N in 5..` in the program',
    program=False,
)

NO_RANDOM_SIZES = declare(
    "E0427",
    "no sizes were found for random inputs",
    """`--random` picks a size for every dim within its bounds so that the relations between sizes hold; it tries some
    hundred times.""",
    example="""
$ dmlc run model.dml --random 0
error[E0427]: no sizes were found for N, M that keep 3 * N == 7 * M
""",
    fixed="$ dmlc run model.dml --random 0 --bind N=7 --bind M=3",
    program=False,
)

UNKNOWN_TARGET = declare(
    "E0550",
    "no such target",
    """Targets are directml, cpu, onnx and numpy; `dmlc targets` says what each is.""",
    example="""
$ dmlc compile head.dml --target directx
error[E0550]: there is no target directx
""",
    fixed="$ dmlc compile head.dml --target directml",
    program=False,
)

OPSET_OUT_OF_RANGE = declare(
    "E0551",
    "the target does not take this opset",
    """Each target has a lowest and a highest ONNX opset. Above opset 21 the DirectML execution provider loses kernels
    of basic operators (Reshape, Cast, TopK), so nodes would run on the CPU.""",
    example="""
$ dmlc compile head.dml --opset 23
error[E0551]: target directml takes opsets 11 to 21, not 23
""",
    fixed="$ dmlc compile head.dml --opset 21",
    program=False,
)

NOT_YET = declare(
    "E0552",
    "not available yet",
    """This version does not write the form that is asked for.""",
    example="""
program.artifact("hlsl")
""",
    fixed='program.artifact("dxdispatch")',
    program=False,
)

NO_BACKEND = declare(
    "E0553",
    "the backend is not there",
    """Programs run on dml (ONNX Runtime's DirectML provider, Windows only) or webgpu (its WebGPU provider, a separate
    package, with a GPU). They also run on cpu (ONNX Runtime), numpy (the generated code) and reference. The default
    is dml if it is present, else cpu.""",
    example="""
$ dmlc run head.dml --random 0 --backend dml
error[E0553]: this ONNX Runtime has no DirectML execution provider
""",
    fixed="$ pip install onnxruntime-directml    # on Windows; or: dmlc run head.dml --random 0 --backend cpu",
    program=False,
)

RUNTIME_FAILED = declare(
    "E0554",
    "ONNX Runtime refuses or fails",
    """ONNX Runtime could not make a session of the model, or failed in a node. Where its message names the node, the
    place in the program that it came from is shown. `dmlc check` and `dmlc compile` have the installed one load what
    they compile: where it refuses that and takes the source, the error is this one.""",
    example="""
$ dmlc run head.dml --input i=far.npy
error[E0554]: ONNX Runtime failed: indices element out of data bounds, idx=9
""",
    fixed="$ dmlc run head.dml --input i=near.npy    # or --backend reference, to see what the program itself means",
    program=False,
)

NO_RUNTIME = declare(
    "E0560",
    "ONNX Runtime is missing or broken",
    """Models run on ONNX Runtime. It is not installed in this Python environment, it cannot be imported, or it fails
    on a model of one addition. Often two distributions of it overwrote each other's files: onnxruntime,
    onnxruntime-directml, onnxruntime-gpu. Nothing is concluded about a model then: `verify` answers `not verified`.
    Reinstall one distribution, onnxruntime or on Windows onnxruntime-directml.""",
    example="""
$ dmlc verify model.onnx fused.onnx
error[E0560]: onnxruntime cannot be loaded: No module named 'onnxruntime'
""",
    fixed="""
$ pip install --force-reinstall onnxruntime    # on Windows with a DirectX 12 GPU: onnxruntime-directml
$ dmlc verify model.onnx fused.onnx
""",
    program=False,
)

MODELS_DIFFER = declare(
    "E0564",
    "the models differ",
    """`diff` found a difference between two models or programs: nodes, initializers, inputs, outputs, opsets or
    metadata. The lines before the verdict are a diff of both as text. Names of inner values and the order of nodes are
    not differences.""",
    example="""
$ dmlc diff model.onnx other.onnx
error[E0564]: different: 1 node removed, 1 node added
""",
    fixed="$ dmlc diff model.onnx copy_of_model.onnx",
    program=False,
)
RESULTS_DIFFER = declare(
    "E0562",
    "the results differ",
    """`verify` and `compile --verify` ran both models on the same inputs. An output differs by more than the allowed
    classes of rewrites explain, or one model fails on an input on which the other runs. The lines before the verdict
    show the first difference. `compile --verify` writes nothing then.""",
    example="""
$ dmlc verify model.onnx other.onnx
error[E0562]: different: y on 24 of 24 inputs, seed 0
""",
    fixed="$ dmlc verify model.onnx fused.onnx",
    program=False,
)

NOT_VERIFIED = declare(
    "E0563",
    "nothing could be verified",
    """There is no input on which both models ran and had something to compare. The original itself fails on all of
    them, or the two have other inputs or outputs. That is not evidence for either verdict.""",
    example="""
$ dmlc verify broken.onnx fused.onnx
error[E0563]: not verified: the original runs on none of the inputs
""",
    fixed="$ dmlc verify model.onnx fused.onnx",
    program=False,
)

BAD_BINDING = declare(
    "E0555",
    "a dim cannot be bound so",
    """`--bind N=4` gives a dim of the inputs a fixed size, which is within its bounds.""",
    example="""
$ dmlc compile head.dml --bind batch=65
error[E0555]: batch=65 is out of bounds: batch is 1 to 64
""",
    fixed="$ dmlc compile head.dml --bind batch=64",
    program=False,
)

UNKNOWN_CHOICE = declare(
    "E0556",
    "a choice that does not exist",
    """An option has a few known values: a class of rewrites, a DirectML feature level (1.0 to 6.4), the suffix of a
    file to save. `dmlc compile --list-rules` lists rules. Rules that a target cannot do without cannot be skipped.
    """,
    example="""
program = dmlc.compile("head.dml", allow=("rnage",))
""",
    fixed='program = dmlc.compile("head.dml", allow=("range",))',
    program=False,
)

FEATURE_LEVEL = declare(
    "E0557",
    "the feature level is too low for ONNX Runtime",
    """ONNX Runtime's DirectML execution provider asks for a device of feature level 5.0 or higher.""",
    example="""
$ dmlc compile head.dml --feature-level 4.1
error[E0557]: ONNX Runtime needs DirectML feature level 5.0, not 4.1
""",
    fixed="$ dmlc compile head.dml --feature-level 5.0",
    program=False,
)

BAD_TUNING = declare(
    "E0569",
    "a file of measurements cannot be used",
    """`--tuning` reads a file that `--tune` wrote, `--probed` one of `dmlc doctor --probe`. It is no such file, or
    another execution provider than the target's was measured.""",
    example="""
$ dmlc compile head.dml --tuning head.onnx
error[E0569]: head.onnx has no times of lowerings
""",
    fixed="$ dmlc compile head.dml --tuning head.tuning.json",
    program=False,
)

OUT_OF_MEMORY = declare(
    "E0558",
    "not enough memory to run",
    """A tensor of the program is larger than the memory that is left. Sizes may come from the given arrays or from
    attributes such as the length of `iota`.""",
    example="""
$ dmlc run big.dml --backend numpy
error[E0558]: there is not enough memory to run: Unable to allocate 745. GiB
""",
    fixed="$ dmlc inspect big.dml    # shows the shape of every value",
    program=False,
)

NO_LIBRARY = declare(
    "E0561",
    "a library is missing or broken",
    """dmlc needs numpy and onnx to compile; `pip install` of dmlc brings them. Here one of them, or something that it
    needs itself, is not installed, fails to import, or lacks what dmlc uses of it. Causes are the rest of an
    uninstalled package, and a file in the current folder that has the library's name. `dmlc doctor` needs no library
    and lists them all.
    """,
    example="""
$ dmlc compile head.dml
error[E0561]: onnx cannot be loaded: No module named 'onnx'
""",
    fixed="""
$ pip install --force-reinstall onnx
$ dmlc compile head.dml
""",
    program=False,
)

BROKEN_RANGE = declare(
    "E0445",
    "given data breaks a promised range",
    """The program, or `--range`, promises that every element of an input is within a range and is not NaN, and
    rewrites may rely on it. The given data does not keep the promise. `--trust-ranges` skips the check.""",
    example="""
$ dmlc run head.dml --input score=score.npy       # model head(score: f32[N] in 0.0..1.0) ...
error[E0445]: input score holds 1.5 at [3], and it promises 0.0..1.0
""",
    fixed="$ dmlc run head.dml --input score=clipped.npy",
    program=False,
)

NO_OUTPUT = declare(
    "E0446",
    "no value of that name",
    """`program.run(..., outputs=[...])` gives results, and values inside that the compiled program still has under that
    name. Rewrites take values away, and the result of one may have another name; `--only-rule` and `only_rules=()` keep
    all. A runner gives results alone.""",
    example="""
>>> program.run({"x": x}, outputs=["scroes"])
error[E0446]: the compiled program has no value scroes
""",
    fixed='>>> program.run({"x": x}, outputs=["scores"])',
    program=False,
)
