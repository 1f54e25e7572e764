#!/usr/bin/env python3
"""Attention as PyTorch does it, the sizes and rows of wye_bench's: scaled_dot_product_attention as it chooses, and by each of its
backends that takes the numbers: FlashAttention, cuDNN, memory-efficient, plain. And its product of half precision.

attention_torch.py [--device cuda|cpu] [--small]: on the CPU, and small, to see that it runs. tests/gpu/run.sh runs it where there is
PyTorch. Each is held against a softmax in float64 before it is timed; it fails where one gives something else.
"""
import argparse
import math
import statistics
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention as attention

try:
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError:  # before 2.3: only as it chooses
    SDPBackend = sdpa_kernel = None

arguments = argparse.ArgumentParser()
arguments.add_argument("--device", default="cuda")
arguments.add_argument("--small", action="store_true")
options = arguments.parse_args()
device, wrong = torch.device(options.device), 0


def numbers(*shape, seed):
    """Random ones from 1 to 2, the same each time."""
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 1


def settle():
    if device.type == "cuda":
        torch.cuda.synchronize()


def left_out(name, why):
    print(f"{name:<58} left out: {str(why).splitlines()[0].split('. ')[0]}", flush=True)


def row(name, once, operations, is_right):
    """Times `once`, waited for each time: the median of five repetitions."""
    global wrong
    try:
        result = once()
        settle()
    except RuntimeError as error:  # not for these numbers, or not on this card
        return left_out(name, error)
    if not is_right(result):
        wrong += 1
        return print(f"{name:<58} ERROR OCCURRED: 'the result is something else'", flush=True)

    def seconds(times):
        begin = time.perf_counter()
        for _ in range(times):
            once()
            settle()
        return (time.perf_counter() - begin) / times

    seconds(3)
    times = max(1, int((0.01 if options.small else 0.3) / seconds(3)))
    taken = statistics.median(seconds(times) for _ in range(5))
    print(f"{name:<58} {taken * 1e6:>10.0f} us {times:>8} items_per_second={operations / taken / 1e12:.4g}T/s", flush=True)


def near(result, expected, bound):
    """Whether numbers are the reference's, to `bound` of the largest."""
    return bool((result.double().cpu() - expected).abs().max() <= bound * expected.abs().max())


def attention_rows(name, dtype, bound):
    heads, length, size = (2, 70, 64) if options.small else (16, 4096, 64)
    # Queries are small, so that no key has all the weight.
    q, k, v = ((numbers(1, heads, length, size, seed=9 + i) / (16 if i == 0 else 1)).to(dtype) for i in range(3))
    rows = [0, length // 3, length - 1]
    scores = q[:, :, rows].double() @ k.double().transpose(2, 3) / math.sqrt(size)
    expected = torch.softmax(scores, dim=3) @ v.double()
    q, k, v = q.to(device), k.to(device), v.to(device)

    def timed(by):
        row(f"{name}/torch{by}", lambda: attention(q, k, v), 4 * heads * length * length * size,
            lambda result: near(result[:, :, rows], expected, bound))

    timed("")
    for by in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
        backend = getattr(SDPBackend, by, None)
        label = "_" + by.split("_")[0].lower()
        if backend is None:
            left_out(f"{name}/torch{label}", "this PyTorch has it not, or lets nobody choose")
            continue
        with sdpa_kernel(backend):
            timed(label)


def product_row(name, dtype, bound):
    side = 96 if options.small else 4096
    a, b = numbers(side, side, seed=7).to(dtype), numbers(side, side, seed=8).to(dtype)
    expected = a[:2].double() @ b.double()
    a, b = a.to(device), b.to(device)
    row(f"{name}/torch", lambda: torch.matmul(a, b), 2 * side**3, lambda result: near(result[:2], expected, bound))


on = f"on {torch.cuda.get_device_name()}" if device.type == "cuda" else "on the CPU, which says nothing of a card"
print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}, {on}")
with torch.inference_mode():
    attention_rows("cuda_attention_16x4096x64", torch.float32, 1e-4)
    attention_rows("cuda_attention_half_16x4096x64", torch.float16, 4e-3)
    product_row("cuda_matmul_half_4096", torch.float16, 2e-3)
sys.exit(1 if wrong else 0)
