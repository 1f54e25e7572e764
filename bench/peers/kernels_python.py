#!/usr/bin/env python3
"""Kernels as onnxruntime and SciPy compute them on the CPU, of the sizes and with names of wye_bench's rows.

kernels_python.py [--threads N] [--small]: needs PyPI's onnxruntime, onnx, scipy and numpy. SciPy has one thread. MatMulNBits
rounds x to 8 bits, as wye does with int8_x. Each result is compared with float64 before it is timed; the program fails if it
differs.
"""
import argparse
import statistics
import sys
import time

import numpy
import onnxruntime
import scipy
import scipy.sparse
from onnx import TensorProto, helper, numpy_helper

arguments = argparse.ArgumentParser()
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--small", action="store_true")
options = arguments.parse_args()
random = numpy.random.default_rng(46)


def row(name, once, error, most):
    if not error < most:
        sys.exit(f"{name}: the result differs from float64 by {error:.3g}.")

    def cpu_seconds(times):
        begin = time.process_time()
        for _ in range(times):
            once()
        return (time.process_time() - begin) / times

    times = max(1, int((0.01 if options.small else 0.5) / cpu_seconds(2)))
    taken = statistics.median(cpu_seconds(times) for _ in range(7))
    print(f"{name:<44} {taken * 1e6:>10.0f} us of CPU {times:>8}  error {error:.1e}", flush=True)


def session_of(node, x, numbers, y):
    """A model of one node, with x and y in place: returns what runs it."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, a.shape) for name, a in (("x", x), ("y", y))]
    constants = [numpy_helper.from_array(a, name) for name, a in numbers.items()]
    graph = helper.make_graph([node], "kernel", values[:1], values[1:], constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, numpy.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, numpy.float32, y.shape, y.ctypes.data)

    def once():
        session.run_with_iobinding(binding)

    once()
    return once


def layer_norm_row(side):
    x = random.standard_normal((side, side), numpy.float32) + 1
    w, b = random.standard_normal((2, side), numpy.float32)
    y = numpy.empty_like(x)
    node = helper.make_node("LayerNormalization", ["x", "w", "b"], ["y"], axis=-1, epsilon=1e-12)
    once = session_of(node, x, {"w": w, "b": b}, y)
    some = x[:64].astype(numpy.float64)
    exact = (some - some.mean(1, keepdims=True)) / some.std(1, keepdims=True) * w + b
    row("layer_norm_4096x4096_cpu/onnxruntime", once, abs(y[:64] - exact).max(), 1e-4)


def product_row(name, side, rows):
    """Weights of 4 bits in blocks of 32, as onnxruntime stores them: element 2 i in the low bits of byte i."""
    blocks = side // 32
    q = random.integers(0, 16, (side, blocks, 32), numpy.uint8)
    scales = (random.random((side, blocks), numpy.float32) + 1) / numpy.float32(8)
    x = random.standard_normal((rows, side), numpy.float32)
    y = numpy.empty((rows, side), numpy.float32)
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=side, N=side, bits=4,
                            block_size=32, accuracy_level=4)
    once = session_of(node, x, {"w": q[:, :, ::2] | q[:, :, 1::2] << 4, "s": scales.ravel()}, y)
    weights = ((q.astype(numpy.float64) - 8) * scales[:, :, None]).reshape(side, side)
    exact = x[:2].astype(numpy.float64) @ weights.T
    row(name, once, abs(y[:2] - exact).max() / abs(exact).max(), 0.02)


def pagerank_row(nodes, links, iterations):
    """Random links; nodes without links divide their rank among all."""
    sources, targets = random.integers(0, nodes, (2, links))
    degrees = numpy.bincount(sources, minlength=nodes)
    parts = (1 / numpy.maximum(degrees, 1))[sources]
    matrix = scipy.sparse.csr_matrix((parts, (targets, sources)), (nodes, nodes))
    narrow, alone = matrix.astype(numpy.float32), degrees == 0

    def ranks(a, number):
        damping, r = number(0.85), numpy.full(nodes, number(1 / nodes))
        for _ in range(iterations):
            r = damping * (a @ r) + (damping * r[alone].sum() + 1 - damping) / number(nodes)
        return r

    error = abs(ranks(narrow, numpy.float32) - ranks(matrix, numpy.float64)).sum()
    row("pagerank_1M_links_cpu/scipy", lambda: ranks(narrow, numpy.float32), error, 1e-5)


print(f"onnxruntime {onnxruntime.__version__}, {options.threads} threads; SciPy {scipy.__version__}")
side = 256 if options.small else 4096
layer_norm_row(side)
product_row("q4_0_int8_4096_1_row_cpu/onnxruntime", side, 1)
product_row("q4_0_int8_4096_512_rows_cpu/onnxruntime", side, 512)
pagerank_row(1000 if options.small else 100_000, 10_000 if options.small else 1_000_000, 20)
