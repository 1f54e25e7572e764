#!/usr/bin/env python3
"""Products with weights in ggml's blocks q4_0 as ggml's CPU code computes them, of the sizes and with names of wye_bench's rows.

quantized_ggml.py [--threads N] [--small]: needs PyPI's libggml-python and numpy. ggml rounds x to 8 bits, which wye does not. The
result is compared with a product in float64 before it is timed; the program fails if it differs.
"""
import argparse
import ctypes
import pathlib
import statistics
import sys
import time

import libggml
import numpy

arguments = argparse.ArgumentParser()
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--small", action="store_true")
options = arguments.parse_args()

folder = pathlib.Path(libggml.__file__).parent / "lib64"
base = ctypes.CDLL(str(folder / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
cpu = ctypes.CDLL(str(folder / "libggml-cpu.so"))
for name in ("ggml_init", "ggml_new_tensor_2d", "ggml_mul_mat", "ggml_new_graph", "ggml_get_data"):
    getattr(base, name).restype = ctypes.c_void_p
base.ggml_quantize_chunk.restype = ctypes.c_size_t
float32, q4_0 = 0, 2  # enum ggml_type


class Memory(ctypes.Structure):  # struct ggml_init_params
    _fields_ = [("bytes", ctypes.c_size_t), ("buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def pointer(value):
    return ctypes.c_void_p(value)


def product_row(name, side, rows):
    random = numpy.random.default_rng(14)
    w = random.random((side, side), numpy.float32) - numpy.float32(0.5)
    x = random.random((rows, side), numpy.float32) - numpy.float32(0.5)
    context = pointer(base.ggml_init(Memory(64 * 2**20 + 8 * rows * side * 4, None, False)))
    sizes = [ctypes.c_int64(side), ctypes.c_int64(side)]
    weights = pointer(base.ggml_new_tensor_2d(context, q4_0, *sizes))
    right = pointer(base.ggml_new_tensor_2d(context, float32, ctypes.c_int64(side), ctypes.c_int64(rows)))
    base.ggml_quantize_chunk(q4_0, w.ctypes.data_as(ctypes.c_void_p), pointer(base.ggml_get_data(weights)),
                             ctypes.c_int64(0), *sizes, None)
    ctypes.memmove(base.ggml_get_data(right), x.ctypes.data, x.nbytes)
    result = pointer(base.ggml_mul_mat(context, weights, right))
    graph = pointer(base.ggml_new_graph(context))
    base.ggml_build_forward_expand(graph, result)

    def once():
        if cpu.ggml_graph_compute_with_ctx(context, graph, options.threads) != 0:
            sys.exit("ggml refused the product.")

    once()
    y = numpy.ctypeslib.as_array((ctypes.c_float * (rows * side)).from_address(base.ggml_get_data(result)))
    exact = x[:2].astype(numpy.float64) @ w.T.astype(numpy.float64)
    error = abs(y.reshape(rows, side)[:2] - exact).max() / abs(exact).max()
    if not error < 0.2:  # 4 bits
        sys.exit(f"{name}: the result differs by {error:.3g} of its largest number.")

    def seconds(times):
        begin = time.perf_counter()
        for _ in range(times):
            once()
        return (time.perf_counter() - begin) / times

    times = max(1, int((0.01 if options.small else 0.3) / seconds(3)))
    taken = statistics.median(seconds(times) for _ in range(5))
    print(f"{name}/ggml {taken * 1e6:>10.0f} us {times:>8}", flush=True)


side = 256 if options.small else 4096
product_row("q4_0_4096_1_row_cpu", side, 1)
product_row("q4_0_4096_512_rows_cpu", side, 512)
