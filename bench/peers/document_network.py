#!/usr/bin/env python3
"""The main job, examples/document_network, with NumPy, SciPy, scikit-learn, networkx and matplotlib.

document_network.py [--documents-limit N] [--out DIR] [--neighbours FILE]: reads the same documents
of this machine, makes the same synthetic ones, and prints the processor time of each step. FILE is
what wye's --neighbours wrote for the same N: the program fails if the neighbours differ, other than
in which of equally similar documents they are. Groups are Louvain's and the layout is networkx's;
neither is compared.
cmake/wheels.sh peers fetches the packages: PYTHONPATH=build/wheels/peers. Once,
`python3 -m compileall -q build/wheels/peers` writes their byte code, as an installation does.
"""
import argparse
import codecs
import json
import os
import pathlib
import re
import stat
import sys
import time

import matplotlib
import networkx
import numpy
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402: after the choice of a backend
from matplotlib.collections import LineCollection  # noqa: E402

arguments = argparse.ArgumentParser()
arguments.add_argument("--documents-limit", type=int)
arguments.add_argument("--out", default="document_network_report")
arguments.add_argument("--neighbours")
options = arguments.parse_args()

COLUMNS, NEAREST, SHARPNESS, PARTS, BLOCK, MAP_SIDE, SHOWN = 512, 8, 10.0, 32.0, 16 << 20, 1200, 400
LETTERS = "A-Za-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u1FFF\uA000-\uDFFF\uF900-\uFDFF"
WORD = re.compile(f"[\u3040-\u9FFF\U00020000-\U0003FFFF]|[{LETTERS}]+")
steps = [("start", time.process_time())]


def step(name):
    steps.append((name, time.process_time()))


# --- Documents


def regular_files(paths):
    """Each file once, under its own name rather than a link's, ordered by path."""
    seen, files = set(), []
    for path in sorted(paths, key=lambda path: (os.path.islink(path), os.fsencode(path))):
        try:
            about = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(about.st_mode) and (about.st_dev, about.st_ino) not in seen:
            seen.add((about.st_dev, about.st_ino))
            files.append(path)
    return sorted(files, key=os.fsencode)


def even_sample(files, limit):
    return files if len(files) <= limit else [files[i * len(files) // limit] for i in range(limit)]


def words_of(path):
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError:
        return []
    controls = sum(data.count(byte) for byte in range(32) if byte not in b"\t\n\r\f\x1b\b")
    if len(data) > 8 << 20 or b"\0" in data or controls > len(data) // 20:
        return []
    text = data.decode(errors="latin").lower()
    return [word for word in WORD.findall(text) if 2 <= len(word) <= 40 or ord(word[0]) >= 0x3040]


def random_number(document, index):
    mask = (1 << 64) - 1
    x = (document * 8 + index + 1) * 0x9E3779B97F4A7C15 & mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return x ^ x >> 31


def synthetic(texts, read, number):
    words = []
    for passage in (0, 3):
        source = texts[random_number(number, passage) % read][:4096]
        length = min(len(source), 40 + random_number(number, passage + 1) % 120)
        first = random_number(number, passage + 2) % (len(source) - length + 1)
        words += source[first:first + length]
    return words


codecs.register_error("latin", lambda e: (e.object[e.start:e.end].decode("latin-1"), e.end))
limit = options.documents_limit or 400
licences = regular_files(str(p) for p in pathlib.Path("/usr/share/common-licenses").rglob("*"))[:limit]
copyrights = regular_files(str(p / "copyright") for p in pathlib.Path("/usr/share/doc").iterdir())
paths, texts, dates = [], [], []
for path in licences + even_sample(copyrights, limit - len(licences)):
    if words := words_of(path):
        paths.append(path)
        texts.append(words)
        dates.append(int(os.stat(path).st_mtime))
read = len(texts)
for number in range(limit - read if options.documents_limit else 0):
    texts.append(synthetic(texts, read, number))
    paths.append(f"synthetic/{number}")
    dates.append(dates[random_number(number, 0) % read])
count = len(texts)
step("read")

# --- Vectors: (1 + ln tf) ln((1 + n) / df), of the words that contribute most to rows of unit length

vectorizer = CountVectorizer(analyzer=lambda words: words)
counts = vectorizer.fit_transform(texts).astype(numpy.float64)
uses = numpy.bincount(counts.indices, minlength=counts.shape[1])
counts.data = (1 + numpy.log(counts.data)) * numpy.log((1 + count) / uses)[counts.indices]
worth = numpy.asarray(normalize(counts).sum(axis=0)).ravel()
best = numpy.lexsort((vectorizer.get_feature_names_out(), -worth))[:COLUMNS]
vectors = normalize(counts[:, best].astype(numpy.float32).toarray())
step("tf-idf")

# --- The nearest of each, with their attention

rows = max(1, min(count, BLOCK // count))
nearest, similar, weights = (numpy.zeros((count, min(NEAREST, count)), t) for t in (numpy.int64, numpy.float32, numpy.float32))
for first in range(0, count, rows):
    block = vectors[first:first + rows] @ vectors.T
    own = numpy.arange(len(block))
    block[own, first + own] = -1
    few = numpy.argpartition(block, -nearest.shape[1], axis=1)[:, -nearest.shape[1]:]
    values = numpy.take_along_axis(block, few, axis=1)
    order = numpy.argsort(-values, axis=1, kind="stable")
    nearest[first:first + rows] = numpy.take_along_axis(few, order, axis=1)
    similar[first:first + rows] = numpy.take_along_axis(values, order, axis=1)
    block[own, first + own] = 1
    block *= SHARPNESS  # of at most 1: no overflow
    numpy.exp(block, out=block)
    chosen = numpy.take_along_axis(block, nearest[first:first + rows], axis=1)
    weights[first:first + rows] = chosen / block.sum(axis=1, keepdims=True)
step("similarity and attention")

# --- Ranks and groups

graph = networkx.DiGraph()
graph.add_nodes_from(range(count))
undirected = networkx.Graph()
undirected.add_nodes_from(range(count))
for document in range(count):
    kept = similar[document] > 0
    total = max(float(weights[document][kept].sum()), 1e-30)
    for to, weight in zip(nearest[document][kept].tolist(), weights[document][kept].tolist()):
        graph.add_edge(document, to, weight=max(1, round(PARTS * weight / total)))
        before = undirected.get_edge_data(document, to, {"weight": 0})["weight"]
        undirected.add_edge(document, to, weight=before + weight)
rank = numpy.array(list(networkx.pagerank(graph, tol=1e-7 / count).values()))
step("pagerank")
groups = sorted(networkx.community.louvain_communities(undirected, seed=1), key=len, reverse=True)
step("groups")

# --- Dates

dates = numpy.array(dates, numpy.float64)
ages = (dates.max() - dates) / max(dates.max() - dates.min(), 1)
importance = rank / rank.max() * numpy.exp(-2 * ages)
step("timeline")

# --- Pictures

os.makedirs(options.out, exist_ok=True)
order = numpy.concatenate([sorted(group) for group in groups])
side = min(count, MAP_SIDE)
bands = numpy.arange(count) * side // count
means = scipy.sparse.csr_matrix((numpy.ones(count, numpy.float32), (bands, order)), shape=(side, count)) @ vectors
means /= numpy.bincount(bands, minlength=side)[:, None]
figure, axes = pyplot.subplots(figsize=(16.4, 14.8))
figure.colorbar(axes.imshow(means @ means.T, vmin=0, vmax=1, interpolation="nearest"))
axes.set_title(f"Similarity of all pairs of {count} documents")
figure.savefig(os.path.join(options.out, "similarity.png"), dpi=100)
step("map")

shown = numpy.argsort(-rank, kind="stable")[:SHOWN]
part = undirected.subgraph(shown.tolist())
places = networkx.spring_layout(part, seed=1)
step("layout")

figure, axes = pyplot.subplots(figsize=(16.4, 13.3))
axes.add_collection(LineCollection([(places[a], places[b]) for a, b in part.edges], colors="#6a707d40", linewidths=1.1))
points = numpy.array([places[document] for document in shown.tolist()])
axes.scatter(points[:, 0], points[:, 1], s=2000 * rank[shown] / rank.max(), c=numpy.sqrt(rank[shown]), zorder=2)
for document in shown[:45].tolist():
    axes.annotate(pathlib.Path(paths[document]).parent.name, places[document], zorder=3)
axes.set_title(f"The nearest neighbours of {count} documents")
figure.savefig(os.path.join(options.out, "network.png"), dpi=100)

figure, axes = pyplot.subplots(figsize=(16.4, 12.5))
for lane, group in enumerate(groups[:7]):
    members = numpy.array(sorted(group))
    axes.scatter(dates[members] / 86400 / 365.25 + 1970, numpy.full(len(members), lane), s=900 * importance[members], alpha=0.5)
axes.set_title("Most important today")
figure.savefig(os.path.join(options.out, "timeline.png"), dpi=100)
step("draw")

# --- The check

if options.neighbours:
    with open(options.neighbours, encoding="utf-8") as file:
        wye = json.load(file)
    if wye["documents"] != paths:
        sys.exit(f"The documents differ: {len(wye['documents'])} of wye's, {len(paths)} here.")
    places_differ = 0
    for document, links in enumerate(wye["neighbours"]):
        mine = similar[document][similar[document] > 0]
        theirs = numpy.array([similarity for _, similarity in links], numpy.float32)
        true = numpy.array([vectors[document] @ vectors[to] for to, _ in links], numpy.float32)
        if len(mine) != len(theirs) or (abs(mine - theirs) > 1e-5).any() or (abs(true - theirs) > 1e-5).any():
            sys.exit(f"The neighbours of '{paths[document]}' differ: {mine} here, {theirs} of wye's, whose documents have {true}.")
        places_differ += [to for to, _ in links] != nearest[document][:len(links)].tolist()
    print(f"The neighbours of all {count} documents are wye's; of {places_differ}, equally similar ones are in another order.")
for (_, begin), (name, end) in zip(steps, steps[1:]):
    print(f"{name:<26}{end - begin:>8.2f} s of processor time")
print(f"{'all, with the imports':<26}{steps[-1][1]:>8.2f} s of processor time")
