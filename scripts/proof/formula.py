"""Sizes as the file writes unknown ones: polynomials of named sizes.

    "N"   "2*N*S+1"   "floor(H/2)"   "ceil((H+1)/2)"   "'a name'"   "?3" (nobody knows)
"""
import re

TOKEN = re.compile(r"\s*(?:(\d+)|'((?:[^'\\]|\\.)*)'|(\?\d+)|([^\W\d][\w.:#$~]*)|(.))")


class Unknown(Exception):
    pass


class Formula:
    def __init__(self, text, symbols, own, world):
        self.words = [m.groups() for m in TOKEN.finditer(text)]
        self.at, self.symbols, self.own, self.world = 0, symbols, own, world

    def peek(self):
        return self.words[self.at][4] if self.at < len(self.words) else None

    def take(self, wanted):
        if self.peek() != wanted:
            raise Unknown
        self.at += 1

    def sum(self):
        negative = self.peek() == "-"
        if negative:
            self.at += 1
        x = -self.term() if negative else self.term()
        while self.peek() in ("+", "-"):
            sign = 1 if self.peek() == "+" else -1
            self.at += 1
            x += sign * self.term()
        return x

    def term(self):
        x = self.factor()
        while self.peek() == "*":
            self.at += 1
            x *= self.factor()
        return x

    def factor(self):
        if self.at >= len(self.words):
            raise Unknown
        number, quoted, fresh, name, sign = self.words[self.at]
        self.at += 1
        if number:
            return int(number)
        if sign == "(":
            x = self.sum()
            self.take(")")
            return x
        if name in ("floor", "ceil") and self.peek() == "(":
            self.at += 1
            x = self.sum()
            self.take("/")
            k = self.factor()
            self.take(")")
            return x // k if name == "floor" else -(-x // k)
        if fresh in self.own:
            return self.own[fresh][self.world]
        found = quoted if quoted is not None else name
        if found is None or ("named", found) not in self.symbols.index:
            raise Unknown
        return self.symbols.number(("named", found), self.world)


def evaluate(text, symbols, own):
    """The size as a pair of numbers, or None where a name in it is not known. own: names of the file that were matched before."""
    try:
        pair = []
        for world in (0, 1):
            f = Formula(text, symbols, own, world)
            pair.append(f.sum())
            if f.at != len(f.words):
                return None
        return tuple(pair)
    except Unknown:
        return None
