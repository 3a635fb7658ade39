"""E04: files that a program loads."""

from dmlc.diagnostics.code import declare

CANNOT_LOAD = declare(
    "E0401",
    "a file of a const cannot be read",
    """The file is missing, is not a plain file, or may not be read. Its path is relative to the folder of the
    program.""",
    example="""
const w: f32[4] = load("weihgts.npy")

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
    fixed="""
const w: f32[4] = [0.1, 0.2, 0.3, 0.4]

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
)

OUTSIDE_FOLDER = declare(
    "E0402",
    "a file outside of the program's folder",
    """load reads only below the folder of the program, so that compiling a program of someone else cannot read other
    files. Absolute paths, .. and links that lead outside are refused.""",
    example="""
const w: f32[4] = load("../w.npy")

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
    fixed="""
const w: f32[4] = [0.1, 0.2, 0.3, 0.4]

model m(x: f32[4]) -> (y) {
    y = x * w
    return y
}
""",
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
    """A .npz file holds several arrays, so load is told the key: load("w.npz", "key"). A .npy file holds one and has no
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
    "load in a program without a folder",
    """A program that comes from standard input or from a string lies in no folder, so there is nothing that paths could
    be relative to.""",
    example='$ dmlc check - < head.dml\nerror[E0407]: load("prior.npy") needs a folder, and this program has none',
    fixed="$ dmlc check head.dml",
    program=False,
)
