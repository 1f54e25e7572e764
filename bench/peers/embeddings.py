#!/usr/bin/env python3
"""Embeddings of all-MiniLM-L6-v2 by wye and by onnxruntime, in turns.

embeddings.py PROGRAM MODEL_FOLDER [--rounds N] [--documents N]: PROGRAM is wye_models_bench (bench/models_bench.cpp). Needs PyPI's
numpy, tokenizers, onnxruntime and onnx. First, all vectors of wye are compared with a pass in float64 and with onnxruntime.
Then each round times all rows. The table has the medians over rounds of the ratios.

embeddings.py PROGRAM MODEL_FOLDER --exact [--documents N]: compares the vectors of every precision, of 500 documents unless N is
given, and times nothing. The exit status is 1 if a limit is exceeded. It takes about 5 minutes on two processors.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# The float64 pass alone uses OpenBLAS. On a busy machine, its threads wait for each other in loops.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/models"))
import minilm_reference  # noqa: E402

SHORT = [f"{subject} {verb} the {noun}." for subject in ("The author", "A user", "Each owner", "The court")
         for verb in ("sells", "copies") for noun in ("printed book", "source code", "old licence", "small printer")]


def documents_of_machine(count):
    """Returns the first 16 KiB of licences and copyright files, evenly chosen. If there are too few, the next parts of
    the longer ones count too."""
    paths = sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    paths += sorted(pathlib.Path("/usr/share/doc").glob("*/copyright"))
    files = [path.read_bytes() for path in paths if path.is_file()]

    def parts(begin):
        return [data[begin:begin + 16384].decode("utf-8", "replace") for data in files if len(data) > begin]

    texts = list(dict.fromkeys(parts(0)))
    begin = 16384
    while len(texts) < count and (more := parts(begin)):
        texts = list(dict.fromkeys(texts + more))[:count]
        begin += 16384
    return [texts[i * len(texts) // count] for i in range(min(count, len(texts)))]


class Program:
    def __init__(self, path, *arguments):
        environment = dict(os.environ, WYE_BACKENDS="cpu")
        self.child = subprocess.Popen([path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=environment)

    def run(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            sys.exit(f"The program ended at '{command}'.")
        return float(line)


def check_vectors(program, model, folder):
    """Compares the vectors of every precision. Returns whether all limits hold."""
    good = True
    for precision, cosine in (("float32", 1 - 1e-9), ("float16", 0.99999), ("bfloat16", 0.999), ("q8_0", 0.999)):
        vectors = f"{folder}/{precision}.json"
        program.run(f"vectors {precision} {vectors}")
        print(f"{precision:8} ", end="", flush=True)
        result = minilm_reference.compare(model, vectors, precision == "float32")
        good &= result["cosine"] >= cosine
        good &= precision != "float32" or max(result["float64"], result["onnxruntime"]) <= 1e-5
    print("all limits hold" if good else "a limit is exceeded")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--documents", type=int)
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    model = minilm_reference.Model(options.model)
    documents = documents_of_machine(options.documents or (500 if options.exact else 32))
    with tempfile.TemporaryDirectory() as folder:
        texts, vectors = folder + "/texts.json", folder + "/vectors.json"
        pathlib.Path(texts).write_text(json.dumps({"documents": documents, "short": SHORT}))
        program = Program(options.program, options.model, texts)
        if options.exact:
            print(f"{len(documents)} documents ({sum(len(model.tokens(text)) for text in documents)} tokens), "
                  f"{len(SHORT)} short texts")
            return 0 if check_vectors(program, model, folder) else 1
        program.run("vectors float32 " + vectors)
        minilm_reference.compare(model, vectors, True)
    run = model.session(options.threads)

    def onnx(texts):
        begin = time.perf_counter()
        for text in texts:
            run(model.tokens(text))
        return time.perf_counter() - begin

    rows = {name: [] for name in ("documents", "documents onnxruntime", "short", "short onnxruntime", "batch", "queue")}
    for number in range(options.rounds + 1):
        for name in rows:
            first, _, peer = name.partition(" ")
            seconds = onnx(documents if first == "documents" else SHORT) if peer else program.run(name)
            if number > 0:  # the first round warms both
                rows[name].append(seconds)
    tokens = sum(len(model.tokens(text)) for text in documents)
    print(f"{len(documents)} documents ({tokens} tokens), {len(SHORT)} short texts; {options.threads} threads, "
          f"{options.rounds} rounds")
    for name, seconds in rows.items():
        print(f"  {name:24} {np.median(seconds) * 1e3:9.1f} ms")
    for a, b, bar in (("documents", "documents onnxruntime", 1.25), ("short", "short onnxruntime", None),
                      ("batch", "short", 0.6), ("queue", "short", 0.8)):
        ratios = np.array(rows[a]) / np.array(rows[b])
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        verdict = "" if bar is None else f", limit {bar}: {'holds' if middle <= bar else 'misses'}"
        print(f"  {a} / {b}: {middle:.2f} ({low:.2f} to {high:.2f}){verdict}")


if __name__ == "__main__":
    sys.exit(main())
