#!/usr/bin/env python3
"""Records in the processes of Python's ProcessPoolExecutor, beside wye_records_bench.

    bench/peers/records_python.py build/bench/wye_records_bench [--rounds 3]

100,000 records of 64 bytes in batches of 128, two processes, no work to speak of: processor time of a batch, with the
processes and their start. wye's figure is the first row of wye_records_bench, which runs in turns with the pool.
"""
import argparse
import concurrent.futures
import os
import re
import resource
import statistics
import subprocess

RECORDS, BYTES, BATCH = 100_000, 64, 128


def score(batch):
    return [batch[at] for at in range(0, len(batch), BYTES)]


def processor_seconds():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def python_batch():
    """Returns the microseconds of a batch."""
    records = os.urandom(RECORDS * BYTES)
    batches = [records[at : at + BATCH * BYTES] for at in range(0, len(records), BATCH * BYTES)]
    before = processor_seconds()
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        scores = [one for batch in pool.map(score, batches) for one in batch]
    assert len(scores) == RECORDS and scores[7] == records[7 * BYTES]
    return (processor_seconds() - before) / len(batches) * 1e6


def wye_batch(program):
    text = subprocess.run([program, "1"], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"over a ring +([0-9.]+)", text)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pairs = [(wye_batch(options.program), python_batch()) for _ in range(options.rounds)]
    wye, python = (statistics.median(column) for column in zip(*pairs))
    print(f"wye {wye:.1f} us, ProcessPoolExecutor {python:.1f} us: {wye / python:.3f}")


main()
