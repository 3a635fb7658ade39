"""``scores.dml`` in Python."""

import dmlc

g = dmlc.Graph("scores")
q = g.input("q", dtype="float16", shape=("B", "T", 64))
k = g.input("k", dtype="float16", shape=("B", "T", 64))
scale = g.input("scale", dtype="float16", shape=(64,))

a, b = dmlc.rms_norm(q, scale), dmlc.rms_norm(k, scale)
s = dmlc.matmul(a, dmlc.transpose(b, perm=(0, 2, 1))) * 64**-0.5
g.output("top", dmlc.reduce_max(s, axes=[-1]))
g.output("mean", dmlc.reduce_mean(s, axes=[-1]))
g.output("spread", dmlc.std.standard_deviation(s, axes=[-1]))

if __name__ == "__main__":
    dmlc.compile(g, accumulate="f32").save("scores.onnx")
