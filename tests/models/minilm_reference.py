#!/usr/bin/env python3
"""Embeddings of all-MiniLM-L6-v2 in float64: makes minilm_vectors.txt, and compares vectors of other programs.

minilm_reference.py MODEL_FOLDER            writes the vectors of TEXTS to minilm_vectors.txt, a line for each
minilm_reference.py MODEL_FOLDER FILE       FILE has a JSON array of [text, vector]: prints the largest difference
minilm_reference.py MODEL_FOLDER FILE onnx  the same, also to onnxruntime with a graph made of the same weights

Needs PyPI's numpy and tokenizers, and for the last form onnxruntime and onnx.
"""
import json
import math
import pathlib
import struct
import sys

import numpy as np
from tokenizers import Tokenizer

TEXTS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "",
    "The licence permits copying and distributing verbatim copies.",
    "May I sell copies?",
    "Grüße aus Köln, 你好, καλημέρα!",
    "GPU",
    "one two three four five six seven eight nine ten " * 40,
]


def weights_of(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    kinds = {"F32": "<f4", "I64": "<i8"}
    return {
        name: np.frombuffer(data[slice(*about["data_offsets"])], kinds[about["dtype"]]).reshape(about["shape"])
        for name, about in header.items() if name != "__metadata__"
    }


class Erf:
    """Computes erf of an array in float64, to one unit in the last place of 1: Taylor series at the nearest 64th.
    Source: Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.19."""
    STEPS, END, TERMS = 64, 6, 8  # erf(6) is 1 in float64

    def __init__(self):
        self.places = np.arange(-self.END * self.STEPS, self.END * self.STEPS + 1) / self.STEPS
        slope = 2 / math.sqrt(math.pi) * np.exp(-self.places**2)
        before, hermite, factor = np.zeros_like(self.places), np.ones_like(self.places), 1.0
        self.terms = [np.array([math.erf(x) for x in self.places])]
        for n in range(self.TERMS):
            factor /= n + 1
            self.terms.append((-1)**n * hermite * slope * factor)
            before, hermite = hermite, 2 * self.places * hermite - 2 * n * before

    def __call__(self, x):
        x = np.clip(x, -self.END, self.END)
        at = np.rint(x * self.STEPS).astype(np.int64) + self.END * self.STEPS
        away = x - self.places[at]
        value = self.terms[-1][at]
        for term in self.terms[-2::-1]:
            value = value * away + term[at]
        return value


erf = Erf()


class Model:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.weights = weights_of(folder / "model.safetensors")
        self.wide = {name: value.astype(np.float64) for name, value in self.weights.items()}
        self.config = json.loads((folder / "config.json").read_text())
        self.known = {}
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
        self.tokenizer.enable_truncation(limit)

    def tokens(self, text):
        return self.tokenizer.encode(text).ids

    def exact(self, tokens):
        """Returns the vector in float64, computed once for equal tokens."""
        if tuple(tokens) not in self.known:
            self.known[tuple(tokens)] = self.compute(tokens)
        return self.known[tuple(tokens)]

    def compute(self, tokens):
        w = self.wide
        heads, epsilon = self.config["num_attention_heads"], self.config["layer_norm_eps"]

        def norm(x, name):
            centred = x - x.mean(-1, keepdims=True)
            return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * w[name + ".weight"] \
                + w[name + ".bias"]

        def product(x, name):
            return x @ w[name + ".weight"].T + w[name + ".bias"]

        x = w["embeddings.word_embeddings.weight"][tokens] + \
            w["embeddings.position_embeddings.weight"][:len(tokens)] + \
            w["embeddings.token_type_embeddings.weight"][0]
        x = norm(x, "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}."
            q, k, v = (product(x, at + "attention.self." + name).reshape(len(tokens), heads, -1).transpose(1, 0, 2)
                       for name in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
            mixed = (scores @ v).transpose(1, 0, 2).reshape(len(tokens), -1)
            x = norm(x + product(mixed, at + "attention.output.dense"), at + "attention.output.LayerNorm")
            h = product(x, at + "intermediate.dense")
            h = h / 2 * (1 + erf(h / math.sqrt(2)))
            x = norm(x + product(h, at + "output.dense"), at + "output.LayerNorm")
        mean = x.mean(0)
        return mean / np.linalg.norm(mean)

    def session(self, threads=0):
        """Returns a function from tokens to the vector that onnxruntime computes in float32."""
        import onnxruntime
        from onnx import TensorProto, helper, numpy_helper
        nodes, constants = [], {}

        def constant(name, value):
            constants[name] = numpy_helper.from_array(value, name)
            return name

        def node(kind, *inputs, name=None, **attributes):
            name = name or f"n{len(nodes)}"
            nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
            return name

        w, width = self.weights, self.config["hidden_size"]
        heads = self.config["num_attention_heads"]

        def norm(x, name):
            return node("LayerNormalization", x, constant(name + ".w", w[name + ".weight"]),
                        constant(name + ".b", w[name + ".bias"]), epsilon=self.config["layer_norm_eps"])

        def product(x, name):
            made = node("MatMul", x, constant(name + ".w", np.ascontiguousarray(w[name + ".weight"].T)))
            return node("Add", made, constant(name + ".b", w[name + ".bias"]))

        positions = w["embeddings.position_embeddings.weight"] + w["embeddings.token_type_embeddings.weight"][0]
        split = constant("split", np.array([0, heads, width // heads], np.int64))
        join = constant("join", np.array([0, width], np.int64))
        x = node("Add", node("Gather", constant("words", w["embeddings.word_embeddings.weight"]), "tokens"),
                 node("Gather", constant("positions", positions), "places"))
        x = norm(x, "embeddings.LayerNorm")
        for layer in range(self.config["num_hidden_layers"]):
            at = f"encoder.layer.{layer}."
            q, k, v = (node("Transpose", node("Reshape", product(x, at + "attention.self." + name), split),
                            perm=[1, 2, 0] if name == "key" else [1, 0, 2]) for name in ("query", "key", "value"))
            scale = constant("scale", np.array(1 / math.sqrt(width // heads), np.float32))
            scores = node("Softmax", node("Mul", node("MatMul", q, k), scale), axis=-1)
            mixed = node("Reshape", node("Transpose", node("MatMul", scores, v), perm=[1, 0, 2]), join)
            x = norm(node("Add", x, product(mixed, at + "attention.output.dense")),
                     at + "attention.output.LayerNorm")
            h = product(x, at + "intermediate.dense")
            erf = node("Erf", node("Mul", h, constant("root", np.array(1 / math.sqrt(2), np.float32))))
            h = node("Mul", node("Mul", h, constant("half", np.array(0.5, np.float32))),
                     node("Add", erf, constant("one", np.array(1, np.float32))))
            x = norm(node("Add", x, product(h, at + "output.dense")), at + "output.LayerNorm")
        axes = constant("axes", np.array([0], np.int64))
        node("ReduceMean", x, axes, name="mean", keepdims=0)
        graph = helper.make_graph(
            nodes, "encoder",
            [helper.make_tensor_value_info(name, TensorProto.INT64, ["n"]) for name in ("tokens", "places")],
            [helper.make_tensor_value_info("mean", TensorProto.FLOAT, [width])], list(constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings,
                                               providers=["CPUExecutionProvider"])

        def run(tokens):
            mean, = session.run(None, {"tokens": np.array(tokens, np.int64),
                                       "places": np.arange(len(tokens), dtype=np.int64)})
            return mean / np.linalg.norm(mean)

        return run


def compare(model, file, with_onnx):
    """Prints the largest differences and the lowest cosine, and returns them."""
    run = model.session(1) if with_onnx else None
    worst = {"float64": 0.0, "onnxruntime": 0.0}
    cosine, count = 1.0, 0
    for text, vector in json.loads(pathlib.Path(file).read_text()):
        vector, tokens = np.array(vector), model.tokens(text)
        exact = model.exact(tokens)
        count += 1
        worst["float64"] = max(worst["float64"], abs(vector - exact).max())
        cosine = min(cosine, vector @ exact / np.linalg.norm(vector))
        if run:
            worst["onnxruntime"] = max(worst["onnxruntime"], abs(vector - run(tokens)).max())
    print(f"{count} texts; largest difference to float64 {worst['float64']:.2e}, lowest cosine 1 - {1 - cosine:.1e}" +
          (f"; largest difference to onnxruntime {worst['onnxruntime']:.2e}" if run else ""))
    return {**worst, "cosine": cosine}


def main():
    model = Model(sys.argv[1])
    if len(sys.argv) > 2:
        compare(model, sys.argv[2], len(sys.argv) > 3)
        return
    lines = []
    for text in TEXTS:
        vector = model.exact(model.tokens(text))
        lines.append(json.dumps(text) + "\t" + " ".join(f"{value:.9g}" for value in vector))
    pathlib.Path(__file__).with_name("minilm_vectors.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
