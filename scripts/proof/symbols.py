"""Numbers for unknown sizes, and sizes as pairs of them: what a size is in each of two worlds (sizes.py)."""

GUESS = 64
LEAST = 10_007  # no symbol is smaller
APART = 100, 150
WORLDS = 3    # two of primes, and one in which every symbol is GUESS
OTHERS = 0, 1, 2  # numbers for them


def primes(start, count, apart, rest=None):
    """So far apart that none is another one and a little: sizes like N + 2 are no symbol by chance. rest: of a division by 128, if it is asked for."""
    found, n = [], start | 1
    while len(found) < count:
        if rest in (None, n % 128) and all(n % d for d in range(3, int(n ** 0.5) + 1, 2)):
            found.append(n)
            n += apart
        n += 2
    return found


class Symbols:
    """A number for each unknown size, by name, in each world."""

    def __init__(self, others=0, open_=()):
        """open_: (tensor, dim, symbol) of sizes that are taken for unknown, whatever is inferred. others: not the first numbers that are tried, but
        1: such that ceil(N/2), ceil(N/4) ... are odd in one world, and floor(N/2) ... in the other;
        2: in one world multiples of each number up to 8, so that floor(N/3) + 1 is not always ceil(N/3)."""
        self.rests = (1, 63) if others == 1 else (None, None)
        self.times = (1, 840 if others == 2 else 2)
        self.index, self.name, self.open = {}, {}, {x[:2]: x[2] for x in open_}
        self.given = {}    # name -> its numbers in all worlds, where they are others (alike.py)
        self.sure = set()  # tensors whose contents hang on no unknown size
        odd, even = (primes(n, 64, apart, rest) for n, apart, rest in zip((LEAST, 20_011), APART, self.rests))
        self.numbers = [[t * p for p in found] for t, found in zip(self.times, (odd, even))]

    def number(self, name, world):
        i = self.index.setdefault(name, len(self.index))
        if name in self.given:
            return self.given[name][world]
        if world == 2:
            return GUESS
        while i >= len(self.numbers[world]):
            times = self.times[world]
            more = primes(self.numbers[world][-1] // times + APART[world], len(self.numbers[world]), APART[world], self.rests[world])
            self.numbers[world] += [times * p for p in more]
        self.name[world, self.numbers[world][i]] = name
        return self.numbers[world][i]

    def is_untold(self, name, world):
        """Does nothing tell this symbol, not even in terms of others? The smaller or larger of two sizes, and a ratio, are told where both are."""
        if name[0] == "max":  # of numbers of the world that it names
            return any(self.hangs(size, name[1]) for size in name[2])
        if name[0] in ("div", "min", "most"):
            return any(self.hangs(size[world] if isinstance(size, tuple) else size, world) for size in name[1:])
        return name[0] != "named"

    def hangs(self, size, world):
        """Is it a symbol that nothing tells, or a multiple of one?"""
        return size > 0 and any(w == world and size % n == 0 and self.is_untold(name, world) for (w, n), name in list(self.name.items()))


# ---------------------------------------------------------------------------------------------------- pairs

ONE = (1, 1)


def known(d):
    return d[0] == d[1]


def quotient(a, b):
    """a / b, or None where b does not divide a."""
    if b[0] <= 0 or b[1] <= 0 or a[0] % b[0] or a[1] % b[1]:
        return None
    return a[0] // b[0], a[1] // b[1]


def product(dims):
    p, q = 1, 1
    for d in dims:
        p, q = p * d[0], q * d[1]
    return p, q
