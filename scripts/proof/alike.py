"""Numbers for unknown sizes with which the model runs.

The inputs of a Concat have the same sizes off its axis, and those of a MatMul along what is summed. Where two of them differ in the worlds (sizes.py), some symbol has a number that no run
gives it, and gets another one:

    A against H                    A gets the number of H
    H against 2*ceil(H/2)          H gets twice a prime: no less will do, so nothing more than that H is even is then found of it
    ceil(H/2) against 2*ceil(H/4)  H gets a prime that is 3 more than a multiple of 8; in the other world, four times a prime

A remainder is followed where it comes out different in two worlds (windows: H + (7 - H%7)%7). Where it does not, a symbol of the inputs gets other primes.

Only what runs whenever the model does says something: nodes of the main graph, not of bodies, and those that an output hangs on.
"""
from .sizes import Sizes
from .symbols import GUESS, WORLDS, known, primes, quotient

ROUNDS = 8
MOST = 64       # a multiple of more is not tried
INPUTS = 16     # symbols of the inputs that are tried
PRIMES = 8      # that each is tried with, for remainders
START = 30_011  # these primes are nobody else's: a symbol's numbers in two worlds are never the same
APART = 200


def differences(graph, sizes):
    """{(result, input, dim): the two sizes in all worlds}, of those that should be equal; numbers say nothing of symbols."""
    found = {}

    def note(place, pair):
        if pair[0][:2] != pair[1][:2] and not any(map(known, pair)):
            found[place] = pair

    for n in graph.nodes:
        if n.op not in ("Concat", "MatMul") or n.domain:
            continue
        types = [[w.type.get(x, (0, None))[1] for w in sizes.worlds] for x in n.input]
        if n.op == "MatMul":
            if all(t and all(t) for t in types):
                note((n.out(0), 1, 0), [tuple(d[-1] for d in types[0]), tuple(d[-2:][0] for d in types[1])])
            continue
        if any(d is None or len(d) != len(types[0][0]) for t in types for d in t if types[0][0] is not None) or types[0][0] is None:
            continue
        axis = n.attr("axis", 1) % max(1, len(types[0][0]))
        for k, t in enumerate(types[1:], 1):
            for d in range(len(t[0])):
                if d != axis:
                    note((n.out(0), k, d), [tuple(w[d] for w in x) for x in (types[0], t)])
    return found


def divided(pair, by):
    return tuple(size and tuple(x // by for x in size) for size in pair)


def families(taken):
    """(numbers for one world, numbers for the other), each from what says least to what says most: odd ones, of which one more or one less
    is a multiple of 2, 4 ..., and multiples; the other world has those first. taken: numbers that another symbol has."""
    step = [2 ** j for j in range(1, MOST.bit_length())]
    odd = [(m, side) for m in step for side in (1, -1)]
    found = [None, None]
    for world in (0, 1):
        some = primes(START * (1 + world), 40 * MOST, APART)
        near = [next((p for p in some if (p + side) % (2 * m) == m and p not in taken), None) for m, side in odd]
        multiples = [m * next(p for p in some[1:] if m * p not in taken) for m in step]
        found[world] = [x for x in (near + multiples, multiples + near)[world] if x]
    return list(zip(*found))


class Worlds:
    """Looks for the numbers, one symbol after the other."""

    def __init__(self, graph, symbols):
        self.graph, self.symbols = graph, symbols
        self.multiples = set()  # symbols that have numbers by `restrict`
        self.infer()

    def infer(self):
        self.seen = {}  # (symbol, numbers) -> what differs: places that nothing helps ask the same of each
        self.sizes = Sizes(self.graph, self.symbols)
        self.differ = differences(self.graph, self.sizes)

    def search(self):
        """The sizes with what was found."""
        hopeless = set()
        for _ in range(ROUNDS * ROUNDS):
            place = next((k for k in self.differ if k not in hopeless), None)
            if place is None:
                break
            if not self.rename(place) and not self.restrict(place):
                hopeless.add(place)
        self.part_remainders()
        return self.sizes

    def part_remainders(self):
        """Other primes for symbols of the inputs, with which more remainders differ, and no sizes that did not."""
        others = list(zip(*(primes(k * START, PRIMES, APART) for k in (6, 7)))) if self.sizes.chance else []
        for name in self.inputs() if others else ():
            for numbers in others:
                if not self.sizes.chance:
                    return
                if numbers + (GUESS,) in self.symbols.given.values():
                    continue
                given, sizes, differ = self.symbols.given, self.sizes, self.differ
                self.keep(name, numbers + (GUESS,))
                if len(self.sizes.chance) < len(sizes.chance) and not self.differ.keys() - differ.keys():
                    self.symbols.name.update({(world, numbers[world]): name for world in (0, 1)})
                else:
                    self.symbols.given, self.sizes, self.differ = given, sizes, differ

    def inputs(self):
        """The symbols of their sizes, but for those that have numbers by `restrict`."""
        named = {self.named(d) for n in self.graph.inputs for d in self.sizes.dims.get(n) or () if not known(d)}
        return sorted((x for x in named if x and x not in self.multiples), key=str)[:INPUTS]

    def named(self, size):
        name = self.symbols.name.get((0, size[0]))
        return name if name is not None and name == self.symbols.name.get((1, size[1])) else None

    def tried(self, name, numbers):
        """What differs where the symbol has these."""
        if (name, numbers) not in self.seen:
            given = self.symbols.given
            self.symbols.given = self.given_with(name, numbers)
            self.seen[name, numbers] = differences(self.graph, Sizes(self.graph, self.symbols))
            self.symbols.given = given
        return self.seen[name, numbers]

    def keep(self, name, numbers):
        self.symbols.given = self.given_with(name, numbers)
        self.infer()

    def given_with(self, name, numbers):
        """The numbers of all, where this symbol has these: so have those that were found to be equal to it."""
        was = tuple(self.symbols.number(name, w) for w in range(WORLDS))
        return {**{other: numbers if had == was else had for other, had in self.symbols.given.items()}, name: numbers}

    def without(self, name):
        """What differs where the symbol has numbers that nothing else has."""
        return self.tried(name, (primes(4 * START, 1, APART)[0], primes(5 * START, 1, APART)[0], GUESS))

    def rename(self, place):
        """A symbol that meets a size which does not hang on it is that size; and of four times a symbol and eight times a size, twice that."""
        by = self.common(self.differ[place])
        pair = divided(self.differ[place], by)
        rank = {"unknown": 0, "named": 2}
        for _, i in sorted((rank.get(self.named(x)[0], 1), i) for i, x in enumerate(pair) if self.named(x)):
            name, size = self.named(pair[i]), pair[1 - i]
            free = name not in self.multiples and divided(self.without(name).get(place, (None, None)), by)[1 - i] == size
            if free and place not in self.tried(name, size):
                self.keep(name, size)
                return True
        return False

    def renames(self, place, name):
        """Is what differs there another symbol, which will be given the size that it meets?"""
        return any(self.named(x) not in (None, name) for x in self.differ.get(place, ()))

    def common(self, pair):
        """The largest number that a symbol is taken times in one of the two, where it divides both."""
        symbols = [tuple(self.symbols.number(name, w) for w in (0, 1)) for name in list(self.symbols.index)]
        times = [q[0] for size in pair for n in symbols if (q := quotient(size, n)) and known(q)]
        return max((t for t in times if not any(x % t for size in pair for x in size)), default=1)

    def restrict(self, place):
        """Numbers for a symbol of the inputs with which nothing differs that hangs on it."""
        for name in self.inputs():
            other = self.without(name)
            mine = {k for k in {**self.differ, **other} if self.differ.get(k) != other.get(k) and not (k != place and self.renames(k, name))}
            found, taken = [None, None], {n for numbers in self.symbols.given.values() for n in numbers}
            for numbers in families(taken) if place in mine else ():
                differ = self.tried(name, numbers + (GUESS,))
                for world in (0, 1):  # a place that did not differ may have been right by chance
                    if found[world] is None and all(a[world] == b[world] for k, (a, b) in differ.items() if k in mine or k not in self.differ):
                        found[world] = numbers[world]
                if None not in found:
                    self.multiples.add(name)
                    self.symbols.name.update({(world, found[world]): name for world in (0, 1)})
                    self.keep(name, (*found, GUESS))
                    return True
        return False


def sizes_of(graph, symbols):
    return Worlds(graph, symbols).search()
