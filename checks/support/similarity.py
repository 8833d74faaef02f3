"""Finds submissions that are the same but for names, comments and layout."""

import hashlib
import re

TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*|[^\s\w]", re.DOTALL)
WORDS = set("""auto bool break case catch class const constexpr continue default delete do double else enum explicit false
final float for if int long namespace new noexcept nullptr operator override private protected public return short signed
sizeof static struct switch template this throw true try typename unsigned using virtual void while""".split())


def fingerprint(text):
    """The same for two texts that differ in names, numbers of spaces, line breaks, comments and strings only.

    Names of the CUDA runtime count; all others are numbered by their first appearance."""
    names, parts = {}, []
    for token in TOKEN.findall(text):
        if token.startswith(("//", "/*")):
            continue
        if token[0] in "\"'":
            token = '""'
        elif (token[0].isalpha() or token[0] == "_") and token not in WORDS and not token.startswith(("cuda", "__")):
            token = f"name{names.setdefault(token, len(names))}"
        parts.append(token)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def groups(texts, common=()):
    """Groups of keys, two or more, whose texts are the same in that sense. What is like one of the texts in
    `common`, such as the starter, belongs to nobody."""
    known = {fingerprint(text) for text in common}
    found = {}
    for key, text in texts.items():
        found.setdefault(fingerprint(text), []).append(key)
    return [keys for mark, keys in found.items() if len(keys) > 1 and mark not in known]
