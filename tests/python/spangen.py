"""Adds spans to a certificate: docs/proof.md, section 2.

add(rng, text) -> (the text with spans of one of its components, or None; whether it is true, as far as the referee can tell). Weights are shared out at random, and what a span costs at
least is what the referee finds, or one more; so both kinds come up. Nothing here uses a checker.
"""
import itertools
import math
import re

from referee import Bad, Statement, is_true


def split(rng, n):
    """n as a sum."""
    cuts = sorted(rng.sample(range(1, n), rng.randint(0, min(3, n - 1)))) if n > 1 else []
    return [b - a for a, b in itertools.pairwise([0, *cuts, n])]


def places(statement, v):
    return {o: i for i, o in enumerate(itertools.permutations(statement.keep.get(v, range(statement.values[v][1]))))}


def lines(counts, spans, statement):
    """spans: [(ops, least, {(value, order): weight})]"""
    found = [f"spans {counts}"]
    for ops, least, weigh in spans:
        found.append(f"span {len(ops)} {least}")
        for v in sorted({v for v, _ in weigh}):
            at = places(statement, v)
            found.append(" ".join(map(str, ["weigh", v, *itertools.chain(*sorted((at[o], w) for (x, o), w in weigh.items() if x == v))])))
    return "\n".join(found)


def shared(rng, statement, counts, ops, sizes, price):
    """Of each order that several spans name, all of its weight or less, in parts; one is left out now and then."""
    spans, at = [], 0
    for n in sizes:
        named = {e for configs in statement.choices(ops[at:at + n]) for c in configs for e in c}
        spans.append((ops[at:at + n], named, {}))
        at += n
    for e in sorted(set().union(*(named for _, named, _ in spans))):
        have = [w for _, named, w in spans if e in named]
        if len(have) < 2 or rng.random() < 0.1:
            continue
        left = (statement.weight(e[0])[0] + price) * counts + statement.weight(e[0])[1]
        for w in rng.sample(have, len(have))[:-1]:
            w[e] = rng.choice([0, left, left // 2, left // 3])
            left -= w[e]
        next(w for w in have if e not in w)[e] = left
    return [(ops, 0, w) for ops, _, w in spans]


def leasts(statement, counts, spans, limit, ops):
    """What each span costs at least: the most that the referee believes."""
    found = []
    for i in range(len(spans)):
        low, high = 0, 1
        believes = lambda x: all_but_total(statement, counts, [(o, x if k == i else 0, w) for k, (o, _, w) in enumerate(spans)], ops)
        while believes(high):
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if believes(middle) else (low, middle)
        found.append(low)
    return [(o, x, w) for (o, _, w), x in zip(spans, found)]


def all_but_total(statement, counts, spans, ops):
    try:
        statement.check_spans(counts, spans, (-math.inf, 0), ops, 0, False)
        return True
    except Bad:
        return False


def add(rng, text):
    s = Statement(text)
    parts = [k for k, (claim, ops) in enumerate(s.parts) if claim[0] > 0 and len(ops) > 1]
    if s.bytes_first or not parts:
        return None, False
    k = rng.choice(parts)
    claim, ops = s.parts[k]
    counts = rng.choice([1, 10, 1000, 10**6])
    spans = leasts(s, counts, shared(rng, s, counts, ops, split(rng, len(ops)), 0), claim, ops)
    if rng.random() < 0.3:
        i = rng.randrange(len(spans))
        spans[i] = (spans[i][0], spans[i][1] + 1, spans[i][2])
    words = re.sub(rf"^(component {k} .*)$", lambda m: m[1] + "\n" + lines(counts, spans, s), text.split("\ntime\n")[0], count=1, flags=re.M)
    words += text[len(text.split("\ntime\n")[0]):]
    return words, is_true(words)
