"""Sizes as the file writes unknown ones: polynomials of named sizes.

    "N"   "2*N*S+1"   "floor(H/2)"   "ceil((H+1)/2)"   "'a name'"   "?3" (nobody knows)
"""
import re

from .symbols import GUESS

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
        found = fresh or name if quoted is None else quoted
        if self.world == 2 and found is not None:
            return GUESS
        if found in self.own:
            return self.own[found][self.world]
        if found is None or ("named", found) not in self.symbols.index:
            raise Unknown
        return self.symbols.number(("named", found), self.world)


def evaluate(text, symbols, own):
    """The size as a pair of numbers, or None where a name in it is not known. own: names of the file that were matched before."""
    pair = tuple(in_world(text, symbols, own, world) for world in (0, 1))
    return None if None in pair else pair


def is_fresh(text):
    return re.fullmatch(r"\?\d+", text) is not None


def names_in(text):
    return {quoted or name for _, quoted, _, name, _ in (m.groups() for m in TOKEN.finditer(text)) if quoted or name}


def guess(text):
    """The size where all that has a name is what bytes are counted of."""
    return in_world(text, None, {}, 2)


def in_world(text, symbols, own, world):
    try:
        f = Formula(text, symbols, own, world)
        x = f.sum()
        return x if f.at == len(f.words) else None
    except Unknown:
        return None
