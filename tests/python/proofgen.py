"""Small certificates made by hand, with their least cost by trying every assignment; and mutations that make a true file false.

make(rng) -> Made: the text of a certificate that holds, and the parts to write another claim with.
"""
import dataclasses
import itertools
import json


@dataclasses.dataclass
class Made:
    values: list     # (bytes, number of atoms)
    ops: list        # (fixed, pins [(value, order)], tokens, forms [(group, seqs)])
    bytes_first: bool
    sequence: list   # the ops that may move, as the table takes them
    best: tuple      # (conversions, bytes)
    choice: list     # per op: (form, tokens), or None
    rest: tuple      # conversions and bytes of values that no op that may move holds

    def text(self, cost=None, bound=None, choice=None):
        cost, bound = cost or self.best, bound or self.best
        lines = ["relayout.proof/1", "objective bytes" if self.bytes_first else "objective nodes"]
        for v, (size, n) in enumerate(self.values):
            lines.append(f'value {v} "v{v}" bytes {size} atoms' + " 2" * n)
        for k, (fixed, pins, tokens, forms) in enumerate(self.ops):
            lines.append(f'op {k} input "v{pins[0][0]}"' if fixed == "input" else f'op {k} node "n{k}" Some' + (" fixed" if fixed else ""))
            lines += [f"pin {v} {json.dumps(f't{k}.{i}')}" + "".join(f" {a}" for a in order) for i, (v, order) in enumerate(pins)]
            if fixed:
                continue
            lines += ["token" + "".join(f" {i}:{','.join(map(str, a))}" for i, a in enumerate(t) if a) for t in tokens]
            lines += ["form" + "".join(f" {g}" for g in group) + "".join(" |" + "".join(f" {g}" for g in s) for s in seqs) for group, seqs in forms]
        for k, c in enumerate(self.choice if choice is None else choice):
            if c:
                lines.append(f"choose {k} {c[0]}" + "".join(f" {t}" for t in c[1]))
        if self.sequence:
            part = (bound[0] - self.rest[0], bound[1] - self.rest[1])
            lines.append("component 0 {} {}".format(*part) + "".join(f" {k}" for k in self.sequence))
        lines += ["outside 0", "claim {} {} {} {}".format(*cost, *bound), "end", ""]
        return "\n".join(lines)


def orders_of(tokens, group, seqs, perm):
    return tuple(tuple(a for g in seq for t in perm if group[t] == g for a in tokens[t][i]) for i, seq in enumerate(seqs))


def configs_of(op):
    fixed, pins, tokens, forms = op
    found = {tuple(o for _, o in pins): None}
    if fixed:
        return found
    for f, (group, seqs) in enumerate(forms):
        for perm in itertools.permutations(range(len(tokens))):
            if [group[t] for t in perm] == sorted(group):
                found.setdefault(orders_of(tokens, group, seqs, perm), (f, perm))
    return found


def random_op(r, values):
    """Some pins that share tokens; a pin may lack tokens, a token may be a run of atoms; one or two groups."""
    npin = r.choice([1, 2, 2, 2, 3])
    picked = [r.randrange(len(values)) for _ in range(npin)]
    most = max(values[v][1] for v in picked)
    ntoken = r.randint(1, most)
    tokens = [[()] * npin for _ in range(ntoken)]
    for i, v in enumerate(picked):
        atoms = r.sample(range(values[v][1]), values[v][1])
        if len(atoms) == 0:
            continue
        has = sorted(r.sample(range(ntoken), min(ntoken, r.randint(1, len(atoms)))))
        cuts = sorted(r.sample(range(1, len(atoms)), len(has) - 1))
        for t, a, b in zip(has, [0] + cuts, cuts + [len(atoms)]):
            tokens[t][i] = tuple(atoms[a:b])
    tokens = [tuple(t) for t in tokens if any(t)]
    forms = []
    for _ in range(r.choice([1, 1, 2])):
        group = [r.randrange(r.choice([1, 2])) for _ in tokens]
        names = sorted(set(group))
        forms.append((group, [r.sample(names, len(names)) for _ in range(npin)]))
    stands = [tuple(r.sample(range(values[v][1]), values[v][1])) for v in picked]
    if len(tokens) < 2:
        stands = [tokens[0][i] if tokens else () for i in range(npin)]
    return (False, list(zip(picked, stands)), tokens, forms)


def make(r):
    values = [(r.choice([0, 8, 24, 96, 1000]), r.choice([1, 2, 2, 3])) for _ in range(r.randint(1, 4))]
    ops = [("input", [(v, tuple(range(n)))], [], []) for v, (_, n) in enumerate(values)]
    for v, (_, n) in enumerate(values):
        if r.random() < 0.5:
            ops.append((True, [(v, tuple(r.sample(range(n), n)))], [], []))
    ops += [random_op(r, values) for _ in range(r.randint(1, 4))]
    configs = [configs_of(op) for op in ops]
    sequence = [k for k, op in enumerate(ops) if not op[0] and len(op[2]) > 1]
    r.shuffle(sequence)
    bytes_first = r.random() < 0.3
    rank = lambda cost: cost[::-1] if bytes_first else cost
    best, config = min(((price(values, ops, c), c) for c in itertools.product(*configs)), key=lambda x: rank(x[0]))
    held = {v for k in sequence for v, _ in ops[k][1]}
    idle = [op for k, op in enumerate(ops) if k not in sequence]
    rest = price(values, idle, [tuple(o for _, o in op[1]) for op in idle], held)
    return Made(values, ops, bytes_first, sequence, best, [c[o] for c, o in zip(configs, config)], rest)


def price(values, ops, config, without=()):
    """Conversions and bytes of an assignment, at all values but those."""
    used = {}
    for op, orders in zip(ops, config):
        for (v, _), o in zip(op[1], orders):
            used.setdefault(v, set()).add(o)
    extra = {v: len(u) - 1 for v, u in used.items() if v not in without}
    return sum(extra.values()), sum(n * values[v][0] for v, n in extra.items())
