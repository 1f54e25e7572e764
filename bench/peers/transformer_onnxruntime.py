#!/usr/bin/env python3
"""Blocks of a decoder as onnxruntime computes them on the CPU, of the sizes and with names of wye_bench's rows decoder_*.

transformer_onnxruntime.py [--threads N] [--small]: needs PyPI's onnxruntime, onnx and numpy. The result is compared with float64
before it is timed; the program fails if it differs.
"""
import argparse
import statistics
import sys
import time

import numpy
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

arguments = argparse.ArgumentParser()
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--small", action="store_true")
options = arguments.parse_args()

WIDTH, HEADS, KEY_HEADS, SIZE, HIDDEN, BASE, EPSILON = 576, 9, 3, 64, 1536, 10000.0, 1e-5
MATRICES = {"query": (HEADS * SIZE, WIDTH), "key": (KEY_HEADS * SIZE, WIDTH), "value": (KEY_HEADS * SIZE, WIDTH),
            "output": (WIDTH, HEADS * SIZE), "gate": (HIDDEN, WIDTH), "up": (HIDDEN, WIDTH), "down": (WIDTH, HIDDEN)}
wrong = 0


def weights_of(block):
    """Rows with a length of about 1."""
    random = numpy.random.default_rng(21 + block)
    return {name: ((2 * random.random(shape, numpy.float32) - 1) * numpy.float32((3 / shape[1])**0.5))
            for name, shape in MATRICES.items()}


def turns(positions):
    """Cosines and sines of the angles of all pairs."""
    angles = numpy.outer(positions, BASE**(-2.0 * numpy.arange(SIZE // 2) / SIZE))
    return numpy.cos(angles), numpy.sin(angles)


def model_of(blocks, capacity):
    """The graph of blocks: the norm is SimplifiedLayerNormalization, rotation and attention are GroupQueryAttention."""
    nodes, numbers, inputs, outputs = [], [], [], []

    def constant(name, value):
        numbers.append(numpy_helper.from_array(numpy.ascontiguousarray(value), name))
        return name

    def node(kind, operands, results, domain="", **attributes):
        nodes.append(helper.make_node(kind, operands, results, domain=domain, **attributes))
        return results[0]

    def state(name, kind, shape, to):
        to.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    x = state("x", TensorProto.FLOAT, ["batch", "rows", WIDTH], inputs)
    lengths = state("lengths", TensorProto.INT32, ["batch"], inputs)
    total = state("total", TensorProto.INT32, [], inputs)
    cosines, sines = (constant(n, t.astype(numpy.float32)) for n, t in zip(("cos", "sin"), turns(numpy.arange(capacity))))
    ones = constant("ones", numpy.ones(WIDTH, numpy.float32))
    for b in range(blocks):
        weights = {name: constant(f"{name}_{b}", w.T) for name, w in weights_of(b).items()}

        def times(a, name):
            return node("MatMul", [a, weights[name]], [f"{name}_{b}_product"])

        h = node("SimplifiedLayerNormalization", [x, ones], [f"h_{b}"], axis=-1, epsilon=EPSILON)
        past = [state(f"past_{n}_{b}", TensorProto.FLOAT, ["batch", KEY_HEADS, "past", SIZE], inputs) for n in ("key", "value")]
        now = [state(f"now_{n}_{b}", TensorProto.FLOAT, ["batch", KEY_HEADS, "now", SIZE], outputs) for n in ("key", "value")]
        attended = node("GroupQueryAttention",
                        [times(h, "query"), times(h, "key"), times(h, "value"), *past, lengths, total, cosines, sines],
                        [f"attended_{b}", *now], "com.microsoft", num_heads=HEADS, kv_num_heads=KEY_HEADS, do_rotary=1)
        y = node("Add", [x, times(attended, "output")], [f"y_{b}"])
        h = node("SimplifiedLayerNormalization", [y, ones], [f"h2_{b}"], axis=-1, epsilon=EPSILON)
        gate = times(h, "gate")
        silu = node("Mul", [gate, node("Sigmoid", [gate], [f"sigmoid_{b}"])], [f"silu_{b}"])
        gated = node("Mul", [silu, times(h, "up")], [f"gated_{b}"])
        x = node("Add", [y, times(gated, "down")], [f"x_{b}"])
    outputs.append(helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "rows", WIDTH]))
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, numbers)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9).SerializeToString(), x


def exact_block(x, weights, past_keys, past_values):
    """One sequence in float64; keys of the past are rotated."""
    def norm(rows):
        return rows / numpy.sqrt((rows * rows).mean(1, keepdims=True) + EPSILON)

    def rotated(heads, first):
        cosines, sines = (t[:, None] for t in turns(numpy.arange(first, first + len(heads))))
        a, b = heads[..., :SIZE // 2], heads[..., SIZE // 2:]
        return numpy.concatenate([a * cosines - b * sines, a * sines + b * cosines], 2)

    w = {name: matrix.astype(numpy.float64) for name, matrix in weights.items()}
    cached, rows, h = len(past_keys), len(x), norm(x)
    q = rotated((h @ w["query"].T).reshape(rows, HEADS, SIZE), cached)
    k = numpy.concatenate([past_keys, rotated((h @ w["key"].T).reshape(rows, KEY_HEADS, SIZE), cached)])
    v = numpy.concatenate([past_values, (h @ w["value"].T).reshape(rows, KEY_HEADS, SIZE)])
    k, v = (numpy.repeat(n, HEADS // KEY_HEADS, 1) for n in (k, v))
    scores = numpy.einsum("qhs,khs->hqk", q, k) / SIZE**0.5
    scores[:, numpy.arange(len(k))[None] > cached + numpy.arange(rows)[:, None]] = -numpy.inf
    scores = numpy.exp(scores - scores.max(2, keepdims=True))
    attended = numpy.einsum("hqk,khs->qhs", scores / scores.sum(2, keepdims=True), v).reshape(rows, HEADS * SIZE)
    y = x + attended @ w["output"].T
    h = norm(y)
    gate = h @ w["gate"].T
    return y + (gate / (1 + numpy.exp(-gate)) * (h @ w["up"].T)) @ w["down"].T


def row(name, sequences, tokens, cached, blocks):
    global wrong
    random = numpy.random.default_rng(20)
    text, result = model_of(blocks, cached + tokens)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(text, settings, providers=["CPUExecutionProvider"])
    feed = {"x": 2 * random.random((sequences, tokens, WIDTH), numpy.float32) - 1,
            "lengths": numpy.full(sequences, cached + tokens - 1, numpy.int32),
            "total": numpy.array(cached + tokens, numpy.int32)}
    for b in range(blocks):
        for n in ("key", "value"):
            feed[f"past_{n}_{b}"] = 2 * random.random((sequences, KEY_HEADS, cached, SIZE), numpy.float32) - 1

    got = session.run([result], feed)[0]
    exact = feed["x"].astype(numpy.float64)
    for b in range(blocks):
        past = [feed[f"past_{n}_{b}"].astype(numpy.float64).transpose(0, 2, 1, 3) for n in ("key", "value")]
        exact = numpy.stack([exact_block(exact[s], weights_of(b), past[0][s], past[1][s]) for s in range(sequences)])
    error = numpy.abs(got - exact).max() / max(1.0, numpy.sqrt((exact**2).mean()))
    if not error < 1e-3:
        wrong += 1
        return print(f"{name:<40} ERROR OCCURRED: 'the result is {error:.1e} from float64'", flush=True)

    def seconds(times):
        begin = time.perf_counter()
        for _ in range(times):
            session.run([result], feed)
        return (time.perf_counter() - begin) / times

    times = max(1, int((0.01 if options.small else 0.5) / seconds(3)))
    taken = statistics.median(seconds(times) for _ in range(5))
    print(f"{name:<40} {taken * 1e6:>10.0f} us {times:>8}  error {error:.1e}", flush=True)


print(f"onnxruntime {onnxruntime.__version__}, {options.threads} threads")
row("decoder_1_token_cpu/onnxruntime", 1, 1, 127, 2 if options.small else 12)
row("decoder_8_requests_cpu/onnxruntime", 8, 1, 127, 2 if options.small else 12)
row("decoder_512_tokens_cpu/onnxruntime", 1, 20 if options.small else 512, 0, 1)
sys.exit(1 if wrong else 0)
