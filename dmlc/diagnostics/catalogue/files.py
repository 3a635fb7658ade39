"""E04: files that a program loads, and those that hold the weights of a model."""

from dmlc.diagnostics.code import declare

CANNOT_LOAD = declare(
    "E0401",
    "a file of a const or a use line cannot be read",
    """The file is missing, is not a plain file, or may not be read. Its path is relative to the folder of the
    program that names it, then to each --include folder.""",
    example="""
const w: f32[4] = load("weihgts.npy")

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
    slip=('load("weihgts.npy")', "[0.1, 0.2, 0.3, 0.4]"),
)

OUTSIDE_FOLDER = declare(
    "E0402",
    "a file outside of the program's folder",
    """load and use read only below the folder of the program and below --include folders. So a program of someone
    else cannot read other files. Absolute paths, .., symbolic links and hard links are refused.""",
    example="""
const w: f32[4] = load("../w.npy")

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
    slip=('load("../w.npy")', "[0.1, 0.2, 0.3, 0.4]"),
)

NOT_AN_ARRAY = declare(
    "E0403",
    "a file that holds no array",
    """load reads .npy files, and arrays of .npz files by their key, as numpy.save and numpy.savez write them. This file
    is something else, is cut short, or is damaged.""",
    example='const w: f32[4] = load("w.npy")   # w.npy is cut short\nerror[E0403]: w.npy is cut short',
    fixed='numpy.save("w.npy", array)   # write it again',
    program=False,
)

PICKLED = declare(
    "E0404",
    "a file with Python objects",
    """An array of Python objects is stored as a pickle, which can run any code when it is read. It is never
    read.""",
    example='const w: f32[4] = load("w.npy")   # saved from an array of dtype object\nerror[E0404]: w.npy holds ...',
    fixed='numpy.save("w.npy", array.astype("float32"))',
    program=False,
)

WHICH_ARRAY = declare(
    "E0405",
    "no such array in the file",
    """A .npz file holds several arrays, so load needs the key: load("w.npz", "key"). A .npy file holds one and has no
    keys.""",
    example='const w: f32[4] = load("w.npz")\nerror[E0405]: w.npz holds several arrays',
    fixed='const w: f32[4] = load("w.npz", "weight")',
    program=False,
)

LOADED_TYPE = declare(
    "E0406",
    "loaded data has another type than is written",
    """The type of a const says what the file must hold: dtype and shape are compared exactly, nothing is converted or
    broadcast.""",
    example='const w: f32[4] = load("w.npy")   # w.npy is float64\nerror[E0406]: w.npy is f64[4], w is f32[4]',
    fixed='const w: f64[4] = load("w.npy")',
    program=False,
)

NO_FOLDER = declare(
    "E0407",
    "load or use in a program without a folder",
    """A program that is read without a folder has nothing that paths could be relative to. Programs of dmlc.compile and
    of the command line have one: standard input has the current folder, a dmlc.Source the folder of its name.""",
    example='>>> dmlc.text.load(source)\nerror[E0407]: load("prior.npy") needs a folder, and this program has none',
    fixed=">>> dmlc.text.load(source, folder=Path())",
    program=False,
)

# --- weights of ONNX models

WEIGHT_REFERENCE = declare(
    "E0432",
    "a reference to a weight file that is not followed",
    """The weights of an ONNX model may lie in files that it names. Only plain files in the folder of the model, or in
    folders below it, are read. Absolute paths, .., symbolic links, hard links, devices and folders are refused. So a
    model of someone else cannot read other files. A model that comes from memory has no folder.""",
    example="""
$ dmlc compile model.onnx -o out.onnx
error[E0432]: weight w refers to '../../secret.key': .. could leave the folder of the model
""",
    fixed="""
$ cp ../shared/model.onnx.data . && dmlc compile model.onnx -o out.onnx   # the file itself, next to the model
""",
    program=False,
)

WEIGHT_FILE = declare(
    "E0433",
    "a weight file that cannot be read",
    """The model keeps weights in another file, and that file is missing or may not be read. Such models consist of
    two files or more, which are moved and downloaded together.""",
    example="""
$ dmlc compile model.onnx -o out.onnx
error[E0433]: weight w is in model.onnx.data, which cannot be read: no such file or directory
""",
    fixed="$ cp downloads/model.onnx.data . && dmlc compile model.onnx -o out.onnx",
    program=False,
)

WEIGHT_SIZE = declare(
    "E0434",
    "a weight whose data does not fit its shape",
    """A weight has a shape and a type, which say how many bytes it takes. The model holds another number of
    bytes, or refers to a part of a file that is not there. The model or the file was cut short, or they do not
    belong together.""",
    example="""
$ dmlc compile model.onnx -o out.onnx
error[E0434]: weight w refers to bytes 0 to 4096 of model.onnx.data, which has 1000
""",
    fixed="$ cp downloads/model.onnx.data . && dmlc compile model.onnx -o out.onnx   # the whole file",
    program=False,
)

INLINE_TOO_LARGE = declare(
    "E0435",
    "too many weights for one file",
    """A file of an ONNX model holds less than 2 GiB, which is a limit of its format. Larger weights are in another
    file.""",
    example="""
$ dmlc compile large.onnx -o out.onnx --weights inline
error[E0435]: out.onnx would take 4.0 GiB with its weights inside: a model file holds less than 2 GiB
""",
    fixed="$ dmlc compile large.onnx -o out.onnx --weights copy   # the weights go to out.onnx.HASH.data",
    program=False,
)

REFERENCE_ELSEWHERE = declare(
    "E0436",
    "a reference to weights in another folder",
    """A model refers to weight files by a path below its own folder; ONNX Runtime loads no others. So the result can
    refer to the weights of the source only where it is in the same folder.""",
    example="""
$ dmlc compile models/large.onnx -o out.onnx --weights reference
error[E0436]: out.onnx cannot refer to weights in models
""",
    fixed="$ dmlc compile models/large.onnx -o models/out.onnx --weights reference",
    program=False,
)
