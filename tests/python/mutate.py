"""Changes to a true certificate after which it is false, or no certificate, whatever the model is.

Each kind below says why; where a change might leave the statement true (other configurations of the same cost, a form that another
form covers), the kind asks of the file what makes that impossible, and finds no place otherwise. Nothing here uses the checker.

    Text(text).mutate(rng) -> (kind, text)
"""
import collections
import itertools
import json
import re

WORD = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')


def numbers(words):
    return [int(w) for w in words]


class Op:
    def __init__(self, at, words):
        self.at, self.words = at, words
        self.pins, self.tokens, self.forms = [], [], []  # (line, content)
        self.fixed = words[2] != "node" or words[-1] == "fixed"
        self.node = words[2] == "node"
        self.choice, self.charge = None, None

    def stands(self):
        return tuple(order for _, (_, _, order) in self.pins)

    def orders(self, form, sequence):
        group, seqs = self.forms[form][1]
        return tuple(tuple(a for g in seq for t in sequence if group[t] == g for a in self.tokens[t][1].get(i, ())) for i, seq in enumerate(seqs))

    def chosen(self):
        return self.stands() if self.choice is None else self.orders(*self.choice[1])

    def forms_differ(self):
        """No two are the same but for groups that no token is in, of which one may be charged."""
        written = [tuple(tuple(g for g in seq if g in group) for seq in seqs) for _, (group, seqs) in self.forms]
        return len(set(written)) == len(written)

    def one_group(self):
        """One form, whose one group is all tokens, some pin having two of them: every way to permute those is needed, and different."""
        return len(self.forms) == 1 and len(set(self.forms[0][1][0])) == 1 and any(len(self.tokens_at(i)) > 1 for i in range(len(self.pins)))

    def tokens_at(self, pin):
        return [k for k, (_, t) in enumerate(self.tokens) if pin in t]

    def crowded(self):
        """Tokens of a pin that has three or more: of their ways, joining or parting two leaves less than one short of all."""
        return sorted({k for i in range(len(self.pins)) if len(self.tokens_at(i)) > 2 for k in self.tokens_at(i)}) if self.one_group() else []


class Text:
    def __init__(self, text):
        self.lines = text.split("\n")[:-1]
        self.ops, self.values, self.parts, self.keeps = [], [], [], []
        self.rate, self.times, self.time_claim = None, [], None  # of the second part
        second = self.lines.index("time") if "time" in self.lines else len(self.lines)
        for i, line in enumerate(self.lines):
            w = WORD.findall(line)
            if i > second:
                if w[0] == "component":
                    self.times.append((i, w))
                elif w[0] == "claim":
                    self.time_claim = (i, w)
            elif w[0] == "rate":
                self.rate = (i, w)
            elif w[0] == "charge":
                self.ops[-1].charge = (i, w)
            elif w[0] == "value":
                self.values.append((i, w))
            elif w[0] == "op":
                self.ops.append(Op(i, w))
            elif w[0] == "pin":
                self.ops[-1].pins.append((i, (int(w[1]), json.loads(w[2]), tuple(numbers(w[3:])))))
            elif w[0] == "token":
                at = {int(x.split(":")[0]): tuple(numbers(x.split(":")[1].split(","))) for x in w[1:]}
                self.ops[-1].tokens.append((i, at))
            elif w[0] == "form":
                group, *seqs = " ".join(w[1:]).split("|")
                self.ops[-1].forms.append((i, (numbers(group.split()), [numbers(s.split()) for s in seqs])))
            elif w[0] == "choose":
                self.ops[int(w[1])].choice = (i, (int(w[2]), numbers(w[3:])))
            elif w[0] == "keep":
                self.keeps.append((i, w))
            elif w[0] == "component":
                self.parts.append((i, w))
            elif w[0] == "claim":
                self.claim = (i, w)
            elif w[0] == "outside":
                self.outside = (i, w)

    def cost(self, instead=None):
        """Conversions and bytes, with other orders at the pins of one op."""
        used = collections.defaultdict(set)
        for k, op in enumerate(self.ops):
            orders = instead[1] if instead and instead[0] == k else op.chosen()
            for (_, (v, _, _)), o in zip(op.pins, orders):
                used[v].add(o)
        size = {v: int(w[w.index("bytes") + 1]) for v, (_, w) in enumerate(self.values)}
        return sum(len(s) - 1 for s in used.values()), sum((len(s) - 1) * size[v] for v, s in used.items())

    def fixed_cost(self, values):
        used = collections.defaultdict(set)
        for op in self.ops:
            if op.fixed or len(op.tokens) < 2:
                for _, (v, _, order) in op.pins:
                    used[v].add(order)
        n = {v: max(0, len(used[v]) - 1) for v in values}
        return sum(n.values()), sum(n[v] * int(self.values[v][1][4]) for v in values)

    # ---- editing

    def put(self, i, words):
        lines = list(self.lines)
        lines[i] = words if isinstance(words, str) else " ".join(map(str, words))
        return lines

    def without(self, i):
        return self.lines[:i] + self.lines[i + 1:]

    def mutate(self, r):
        for _ in range(200):
            kind = r.choice(KINDS)
            lines = kind(self, r)
            if lines is not None and lines != self.lines:
                return kind.__name__, "\n".join(lines) + "\n"
        raise ValueError("no mutation fits")


def pick(r, things):
    things = list(things)
    return r.choice(things) if things else None


def changed(r, number):
    return max(0, number + r.choice([-1, 1, 2, 7, 1000])) if number else number + r.choice([1, 2, 9])


# ---- the file is no certificate any more: a line is missing, doubled, moved or unreadable

def line_missing(t, r):
    """All lines of these kinds are needed: numbers run from 0, the atoms of a pin are covered, the sums need each part."""
    whole = [i for i, s in enumerate(t.lines) if s.split()[0] in ("relayout.proof/1", "objective", "claim", "outside", "end", "value", "op")]
    return t.without(r.choice(whole))


def pin_missing(t, r):
    op = pick(r, [o for o in t.ops if o.pins])
    return op and t.without(r.choice(op.pins)[0])


def token_missing(t, r):
    op = pick(r, [o for o in t.ops if o.tokens])
    return op and t.without(r.choice(op.tokens)[0])


def only_form_missing(t, r):
    op = pick(r, [o for o in t.ops if o.one_group() and o.choice is None])
    return op and t.without(op.forms[0][0])


def line_twice(t, r):
    """A pin, a form or a token that is there twice does not cover its atoms once; but a form may be there twice."""
    i = r.choice([i for i, s in enumerate(t.lines) if s.split()[0] != "form"])
    return t.lines[:i + 1] + t.lines[i:]


def cut_off(t, r):
    text = "\n".join(t.lines) + "\n"
    return text[:r.randrange(len(text) - 1)].split("\n")


def two_spaces(t, r):
    i = r.choice([i for i, s in enumerate(t.lines) if " " in s])
    at = r.choice([m.start() for m in re.finditer(" ", t.lines[i])])
    return t.put(i, t.lines[i][:at] + " " + t.lines[i][at:]) if '"' not in t.lines[i] else None


def no_number(t, r):
    i = r.choice(range(2, len(t.lines)))
    w = WORD.findall(t.lines[i])
    at = pick(r, [k for k, x in enumerate(w) if x.isdigit()])
    if at is None:
        return None
    w[at] = r.choice(["-" + w[at], "+" + w[at], w[at] + ".0", "0" + w[at], "x", w[at] + "e1", "99999999999999999999"])
    return t.put(i, w)


def unknown_word(t, r):
    i = r.randrange(len(t.lines))
    return t.put(i, ["x" + t.lines[i]])


def index_too_large(t, r):
    i = r.choice([i for i, s in enumerate(t.lines) if s.split()[0] in ("pin", "choose", "keep", "value", "op", "component")])
    w = WORD.findall(t.lines[i])
    w[1] = str(int(w[1]) + max(len(t.values), len(t.ops), len(t.parts)))
    return t.put(i, w)


# ---- what is claimed is not what the file adds up to

def claim_changed(t, r):
    i, w = t.claim
    k = r.randrange(1, 5)
    new = list(w)
    new[k] = str(changed(r, int(w[k])))
    return t.put(i, new)


def component_changed(t, r):
    part = pick(r, t.parts)
    if part is None:
        return None
    new, k = list(part[1]), r.choice([2, 3])
    new[k] = str(changed(r, int(new[k])))
    return t.put(part[0], new)


def bound_raised(t, r):
    """Component, bound and cost agree on more than the assignment has."""
    part = pick(r, t.parts)
    if part is None:
        return None
    i, w = t.claim
    new, claim = list(part[1]), list(w)
    new[2] = str(int(new[2]) + 1)
    claim[1], claim[3] = str(int(w[1]) + 1), str(int(w[3]) + 1)
    lines = t.put(part[0], new)
    lines[i] = " ".join(claim)
    return lines


def outside_changed(t, r):
    return t.put(t.outside[0], ["outside", changed(r, int(t.outside[1][1]))])


def component_missing(t, r):
    """Its cost is more than that of the orders which fixed ops name at its values."""
    part = pick(r, [p for p in t.parts if (int(p[1][2]), int(p[1][3])) != t.fixed_cost({v for k in p[1][4:] for _, (v, _, _) in t.ops[int(k)].pins})])
    return part and t.without(part[0])


def component_short(t, r):
    """An op that may move is not looked at."""
    part = pick(r, t.parts)
    if part is None:
        return None
    w = part[1]
    k = pick(r, [k for k in range(4, len(w)) if len(t.ops[int(w[k])].tokens) > 1])
    return k and t.put(part[0], w[:k] + w[k + 1:])


def component_long(t, r):
    part = pick(r, t.parts)
    fixed = [k for k, op in enumerate(t.ops) if op.fixed]
    if part is None:
        return None
    more = r.choice([part[1][-1]] + ([str(r.choice(fixed))] if fixed else []))
    return t.put(part[0], part[1] + [more])


def choice_worse(t, r):
    """Another configuration of the same op, where that changes the cost."""
    k = pick(r, [k for k, o in enumerate(t.ops) if not o.fixed and len(o.tokens) > 1 and o.forms])
    if k is None:
        return None
    op = t.ops[k]
    form = r.randrange(len(op.forms))
    group = op.forms[form][1][0]
    sequence = sorted(range(len(group)), key=lambda x: (group[x], r.random()))
    if t.cost((k, op.orders(form, sequence))) == t.cost():
        return None
    new = " ".join(map(str, ["choose", k, form] + sequence))
    if op.choice:
        return t.put(op.choice[0], new)
    later = [o.choice[0] for o in t.ops[k + 1:] if o.choice]
    last = max(i for i, s in enumerate(t.lines) if s.split()[0] in ("op", "pin", "token", "form", "choose"))
    at = later[0] if later else last + 1
    return t.lines[:at] + [new] + t.lines[at:]


def choice_missing(t, r):
    k = pick(r, [k for k, o in enumerate(t.ops) if o.choice and t.cost((k, o.stands())) != t.cost()])
    return None if k is None else t.without(t.ops[k].choice[0])


def choice_broken(t, r):
    op = pick(r, [o for o in t.ops if o.choice])
    if op is None:
        return None
    i, (form, sequence) = op.choice
    w = WORD.findall(t.lines[i])
    if r.random() < 0.5 or len(sequence) < 2:
        w[2] = str(len(op.forms) + form)
    else:
        w[3] = w[4]
    return t.put(i, w)


# ---- the problem is not the model's

def bytes_changed(t, r):
    i, w = r.choice(t.values)
    new, k = list(w), w.index("bytes") + 1
    new[k] = str(changed(r, int(w[k])))
    return t.put(i, new)


def size_changed(t, r):
    v = pick(r, [x for x in t.values if x[1][-1] != "atoms"])
    if v is None:
        return None
    new, k = list(v[1]), r.randrange(v[1].index("atoms") + 1, len(v[1]))
    new[k] = str(int(new[k]) + r.choice([1, 2, 100])) if new[k].isdigit() else r.choice(["3", '"no such size * 2"'])
    return t.put(v[0], new)


def atom_added(t, r):
    i, w = r.choice(t.values)
    return t.put(i, w + ["2"])


def value_renamed(t, r):
    i, w = r.choice(t.values)
    other = r.choice(t.values)[1][2]
    return t.put(i, w[:2] + [r.choice(['"no such tensor"', other])] + w[3:])


def pin_renamed(t, r):
    op = pick(r, [o for o in t.ops if o.pins])
    i, (v, name, order) = r.choice(op.pins)
    others = {p[1] for o in t.ops for _, p in o.pins} - {name}
    return t.put(i, ["pin", v, json.dumps(r.choice(sorted(others) + ["no such tensor"]))] + list(order))


def pin_of_another_value(t, r):
    op = pick(r, [o for o in t.ops if o.pins])
    i, (v, name, order) = r.choice(op.pins)
    w = pick(r, [x for x in range(len(t.values)) if x != v])
    return None if w is None else t.put(i, ["pin", w, json.dumps(name)] + list(order))


def pin_turned(t, r):
    """Two atoms of a tensor change places in the order in which it stands."""
    op = pick(r, [o for o in t.ops if any(len(p[2]) > 1 for _, p in o.pins)])
    if op is None:
        return None
    i, (v, name, order) = r.choice([x for x in op.pins if len(x[1][2]) > 1])
    a, b = r.sample(range(len(order)), 2)
    order = list(order)
    order[a], order[b] = order[b], order[a]
    return t.put(i, ["pin", v, json.dumps(name)] + order)


def op_renamed(t, r):
    op = r.choice(t.ops)
    return t.put(op.at, op.words[:3] + ['"no such name"'] + op.words[4:])


def op_of_another_type(t, r):
    op = pick(r, [o for o in t.ops if o.node and o.pins])
    return op and t.put(op.at, op.words[:4] + ["Conv" if op.words[4] != "Conv" else "Relu"] + op.words[5:])


def op_of_another_role(t, r):
    op = pick(r, [o for o in t.ops if not o.node])
    if op is None:
        return None
    there = {(o.words[2], o.words[3]) for o in t.ops}
    role = pick(r, [x for x in ("input", "output", "captured", "reads") if (x, op.words[3]) not in there])
    return role and t.put(op.at, op.words[:2] + [role] + op.words[3:])


def op_made_fixed(t, r):
    op = pick(r, [o for o in t.ops if not o.fixed and o.one_group()])
    if op is None:
        return None
    lines = t.put(op.at, op.words + ["fixed"])
    gone = {i for i, _ in op.tokens + op.forms} if op.choice is None else set()
    return [s for i, s in enumerate(lines) if i not in gone]


def op_freed(t, r):
    op = pick(r, [o for o in t.ops if o.node and o.fixed and any(p[2] for _, p in o.pins)])
    return op and t.put(op.at, op.words[:-1])


def tokens_crossed(t, r):
    """Two tokens change places at one pin of several: configurations that hold both of them together are lost."""
    op = pick(r, [o for o in t.ops if o.one_group() and both(o)])
    if op is None:
        return None
    a, b, pin = r.choice(both(op))
    lines = list(t.lines)
    x, y = dict(op.tokens[a][1]), dict(op.tokens[b][1])
    x[pin], y[pin] = y[pin], x[pin]
    for k, at in ((a, x), (b, y)):
        lines[op.tokens[k][0]] = "token" + "".join(f" {p}:{','.join(map(str, at[p]))}" for p in sorted(at))
    return lines


def both(op):
    """(token, token, pin): pins that hold both, where several do."""
    found = []
    for a, b in itertools.combinations(range(len(op.tokens)), 2):
        pins = sorted(set(op.tokens[a][1]) & set(op.tokens[b][1]))
        found += [(a, b, p) for p in pins] if len(pins) > 1 else []
    return found


def tokens_joined(t, r):
    """Two tokens that hold the same pins move only together."""
    op = pick(r, [o for o in t.ops if o.choice is None and together(o)])
    if op is None:
        return None
    a, b = r.choice(together(op))
    lines = list(t.lines)
    x, y = op.tokens[a][1], op.tokens[b][1]
    lines[op.tokens[a][0]] = "token" + "".join(f" {p}:{','.join(map(str, x[p] + y[p]))}" for p in sorted(x))
    group, seqs = op.forms[0][1]
    i = op.forms[0][0]
    lines[i] = " ".join(["form"] + [str(g) for g in group[:-1]] + [f"| {' '.join(map(str, s))}".rstrip() for s in seqs])
    del lines[op.tokens[b][0]]
    return lines


def together(op):
    return [(a, b) for a, b in itertools.combinations(op.crowded(), 2) if set(op.tokens[a][1]) == set(op.tokens[b][1])]


def group_split(t, r):
    """A token stands first at every pin: what has it elsewhere is lost."""
    op = pick(r, [o for o in t.ops if o.choice is None and o.crowded()])
    if op is None:
        return None
    k = r.choice(op.crowded())
    i, (group, seqs) = op.forms[0]
    new = max(group + [g for s in seqs for g in s]) + 1
    group = list(group)
    group[k] = new
    return t.put(i, " ".join(["form"] + list(map(str, group)) + ["| " + " ".join(map(str, [new] + s)) for s in seqs]))


def group_lost(t, r):
    """A token's group does not occur at a pin that has the token."""
    op = pick(r, [o for o in t.ops if o.forms and o.tokens])
    if op is None:
        return None
    i, (group, seqs) = r.choice(op.forms)
    k = r.randrange(len(group))
    group = list(group)
    group[k] = max(group + [g for s in seqs for g in s]) + 1
    return t.put(i, " ".join(["form"] + list(map(str, group)) + ["| " + " ".join(map(str, s)) if s else "|" for s in seqs]))


def keep_broken(t, r):
    keep = pick(r, t.keeps)
    if keep is None:
        return None
    return t.put(keep[0], keep[1] + [r.choice([keep[1][-1], "200"])]) if len(keep[1]) > 2 else t.put(keep[0], keep[1] + ["200"])


def fold_broken(t, r):
    """One image too few, or an order that there is not."""
    i = pick(r, [i for i, s in enumerate(t.lines) if s.startswith("fold ")])
    if i is None:
        return None
    w = t.lines[i].split()
    return t.put(i, r.choice([w[:-1], w + ["0"], w[:-1] + ["9999"]]))


# ---- times

def rate_changed(t, r):
    if t.rate is None:
        return None
    i, w = t.rate
    k = r.choice([1, 2])
    return t.put(i, w[:k] + [str(int(w[k]) + 1)] + w[k + 1:])


def charge_missing(t, r):
    """A file that charges less than the target is not about that target."""
    op = pick(r, [o for o in t.ops if o.charge and o.forms_differ()])
    return op and t.without(op.charge[0])


def charge_changed(t, r):
    """Its bytes, what it is in tenths, or a form that is charged."""
    op = pick(r, [o for o in t.ops if o.charge])
    if op is None:
        return None
    i, w = op.charge
    forms = [4 + op.choice[1][0]] if w[2] == "forms" and op.choice else []  # of the one that is chosen the time is another
    k = r.choice([1, 3] + forms)
    if w[2] == "forms" and k == 3 and op.choice:
        return None  # as it stands it is not chosen, and a form may be the same
    return t.put(i, w[:k] + [str(int(w[k]) + r.choice([1, 5]))] + w[k + 1:])


def charged_tokens_changed(t, r):
    op = pick(r, [o for o in t.ops if o.charge and o.charge[1][2] != "forms"])
    if op is None:
        return None
    i, w = op.charge
    other = pick(r, [str(k) for k in op.tokens_at(0) if str(k) not in w[4:]])
    return other and t.put(i, w[:4] + [other])


def rule_changed(t, r):
    op = pick(r, [o for o in t.ops if o.charge and o.charge[1][2] != "forms"])
    return op and t.put(op.charge[0], op.charge[1][:2] + ["after" if op.charge[1][2] == "last" else "last"] + op.charge[1][3:])


def time_changed(t, r):
    """What a component takes, or its bound alone."""
    part = pick(r, t.times)
    k = r.choice([2, 3])
    return part and t.put(part[0], part[1][:k] + [changed(r, int(part[1][k]))] + part[1][k + 1:])


def time_bound_raised(t, r):
    """Above what the assignment takes, which has no more conversions than the model."""
    part = pick(r, t.times)
    if part is None:
        return None
    now = int(part[1][2]) + 1
    lines = t.put(part[0], part[1][:3] + [str(now)] + part[1][4:])
    i, w = t.time_claim
    lines[i] = " ".join(w[:2] + [str(int(w[2]) + now - int(part[1][3]))])
    return lines


def time_claim_changed(t, r):
    if t.time_claim is None:
        return None
    i, w = t.time_claim
    k = r.choice([1, 2])
    return t.put(i, w[:k] + [changed(r, int(w[k]))] + w[k + 1:])


def time_component_short(t, r):
    part = pick(r, t.times)
    k = part and pick(r, range(5, len(part[1])))
    return part and t.put(part[0], part[1][:k] + part[1][k + 1:])


TIMES = [rate_changed, charge_missing, charge_changed, charged_tokens_changed, rule_changed, time_changed, time_bound_raised, time_claim_changed,
         time_component_short]
KINDS = [line_missing, pin_missing, token_missing, only_form_missing, line_twice, cut_off, two_spaces, no_number, unknown_word, index_too_large,
         claim_changed, component_changed, bound_raised, outside_changed, component_missing, component_short, component_long, choice_worse,
         choice_missing, choice_broken, bytes_changed, size_changed, atom_added, value_renamed, pin_renamed, pin_of_another_value, pin_turned,
         op_renamed, op_of_another_type, op_of_another_role, op_made_fixed, op_freed, tokens_crossed, tokens_joined, group_split, group_lost,
         keep_broken, fold_broken, *TIMES]
