#!/usr/bin/env python3
"""Embeddings of all-MiniLM-L6-v2 by wye and by onnxruntime, in turns.

embeddings.py PROGRAM MODEL_FOLDER [--rounds N] [--documents N]: PROGRAM is wye_models_bench (bench/models_bench.cpp). Needs PyPI's
numpy, tokenizers, onnxruntime and onnx. First, all vectors of wye are compared with a pass in float64 and with onnxruntime.
Then each round times all rows. The table has the medians over rounds of the ratios.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/models"))
import minilm_reference  # noqa: E402

SHORT = [f"{subject} {verb} the {noun}." for subject in ("The author", "A user", "Each owner", "The court")
         for verb in ("sells", "copies") for noun in ("printed book", "source code", "old licence", "small printer")]


def documents_of_machine(count):
    """Returns the texts of licences and copyright files, evenly chosen."""
    paths = sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    paths += sorted(pathlib.Path("/usr/share/doc").glob("*/copyright"))
    texts = [path.read_bytes()[:16384].decode("utf-8", "replace") for path in paths if path.is_file()]
    texts = list(dict.fromkeys(texts))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--documents", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    model = minilm_reference.Model(options.model)
    documents = documents_of_machine(options.documents)
    with tempfile.TemporaryDirectory() as folder:
        texts, vectors = folder + "/texts.json", folder + "/vectors.json"
        pathlib.Path(texts).write_text(json.dumps({"documents": documents, "short": SHORT}))
        program = Program(options.program, options.model, texts)
        program.run("vectors " + vectors)
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
    main()
