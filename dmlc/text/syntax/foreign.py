"""Help for what other languages write: patterns of the text around a token, and what to write instead."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from dmlc.diagnostics import Change, Diagnostic, Help, Label, Proposal, Source, Span, proposal, text_of
from dmlc.diagnostics.catalogue import syntax as codes
from dmlc.diagnostics.fix import is_one_operand
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import attribute_specs
from dmlc.ops.foreign import NEW_AXIS, NO_METHODS, attribute_instead
from dmlc.text.standard_library import writing_call
from dmlc.text.syntax.chain import bare, masked, translated
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token, short

#: Operators that end no line.
_UNENDED = ("INFIX", "STAR", "MINUS", "PIPE", "AS")
_DECLARES, _LOOPS, _BRANCHES = ("let", "var", "val", "auto", "set"), ("for", "while"), {"if", "else", "elif"}
#: The signs for other languages' words and signs.
_SIGNS = {
    r"\bis\s+not\b": "!=", r"\bis\b": "==", r"\band\b": "&", r"\bor\b": "|",
    r"(?<=[\w)\]])\s*&\s*&": "&", r"(?<=[\w)\]])\s*\|\s*\|": "|",
}  # fmt: skip
#: ``not`` and its operand: Python and C bind ``and`` and ``or`` looser.
_NOT = r"\bnot\b\s*(?P<a>.*?)\s*(?=\band\b|\bor\b|&\s*&|\|\s*\||$)"
_WHERE = "where({c}, {a}, {b})"
_CHOICE = r"(?P<a>.+?)\bif\b(?P<c>.+?)\belse\b(?P<b>.+)", _WHERE, "there is no if: where chooses by a condition"
#: Characters that no token begins with: a pattern of the expression around, the text to write instead, and the help.
_STRAY = {
    "~": ("", "!", "not is written !"),
    "?": (r"(?P<c>[^?:]+)\?(?P<a>[^?:]+):(?P<b>[^?:]+)", _WHERE, "there is no ?: where chooses by a condition"),
    "@": (r"(?P<a>{0})\s*@\s*(?P<b>{0})", "matmul({a}, {b})", "a matrix product is matmul with two operands"),
    "\\": ("", "", "a line continues inside brackets and before |>; no sign is needed"),
    "$": ("", "", "a name with other signs is quoted: `$x`"),
    "\r": ("", "", "lines end with \\n or \\r\\n: save the file with one of these"),
}
#: Quotation marks that open a string elsewhere, and those that close it.
_QUOTES = {"'": "'", "\u2018": "\u2019", "\u201c": "\u201d", "\u201e": "\u201c", "\u00ab": "\u00bb"}
#: Suffixes of the files that a program loads or uses.
_SUFFIXES = ("npy", "npz", "dml", "onnx")
_QUOTED = re.compile(r'"[^"\n]*"|`[^`\n]*`|#[^\n]*')
#: One operand, and a call, index or bracket, in masked text.
_ONE = r"[-!]*(?=[\w(\[])[\w.]*(?:[(\[]#*[)\]])*"
_OWNER = re.compile(r"[\w.]*(?:[(\[]#*[)\]])+\s*$")


class Around:
    """The text around a token: the bracket that it is in, and the expression between the commas there.

    ``masked`` is the text without what brackets and quotes in it hold, at the same places.
    """

    def __init__(self, source: Source, first: int, last: int, token: Span) -> None:
        self.source, self.first = source, first
        lines = source.lines[first - 1 : last]
        self.text: str = "\n".join(lines)
        self.at: int = sum(len(line) + 1 for line in lines[: token.line - first]) + token.column - 1
        plain = _QUOTED.sub(lambda found: (" " if found[0][0] == "#" else "_") * len(found[0]), self.text)
        self.plain = plain
        self.begin = self.at - _reach(plain[: self.at][::-1], ")]", "([{")
        self.end: int = self.at + _reach(plain[self.at :], "([", ")]{}")
        self.before: str = plain[: self.begin]
        self.level: str = masked(plain[self.begin : self.end])
        self.is_whole: bool = self.level.count("(") + self.level.count("[") == self.level.count(")") + self.level.count(
            "]"
        )
        apart = re.sub("[=!<>]=", "##", self.level)
        mark = self.at - self.begin
        start = max(apart.rfind(",", 0, mark), apart.rfind("=", 0, mark)) + 1
        ends = [place for sign in ",=" if (place := apart.find(sign, mark)) >= 0]
        returns = re.match(r"\s*return\b", self.level[start:])
        self.start: int = self.begin + start + (returns.end() if returns else 0)
        self.masked: str = self.level[self.start - self.begin : min(ends, default=len(self.level))]

    def span(self, start: int, end: int) -> Span:
        """The span of a part of the text."""
        places = []
        for place in (start, end):
            places += [self.first + self.text.count("\n", 0, place), place - self.text.rfind("\n", 0, place)]
        return Span(self.source, *places)

    def part(self, found: re.Match[str], group: str | int = 0) -> tuple[int, int]:
        """The place of a group of a match in ``masked``, without blanks around it."""
        start, text = self.start + found.start(group), found[group]
        return start + len(text) - len(text.lstrip()), start + len(text.rstrip())

    def written(self, found: re.Match[str], group: str | int = 0) -> str:
        start, end = self.part(found, group)
        return self.text[start:end]

    def marked(self, pattern: str) -> re.Match[str] | None:
        """The match that holds the token, or ends right before it."""
        mark = self.at - self.start
        for found in re.finditer(pattern, self.masked, re.DOTALL):
            if found.start() <= mark and not self.masked[found.end() : mark].strip():
                return found
        return None

    def rewritten(self, pattern: str, new: str, help: str) -> Help:
        """The proposal to write the expression anew; the help alone where it does not have the pattern."""
        found = re.fullmatch(rf"\s*(?:{pattern})\s*", self.masked, re.DOTALL) if self.is_whole else None
        parts = {name: self.written(found, name) for name in found.groupdict()} if found else {}
        if found is None or not all(parts.values()):
            return help
        written = new.format(**parts)
        return proposal(f"write {written}", written, self.span(*self.part(found)), safe=True)

    def chains(self) -> Iterator[tuple[int, int]]:
        """The places of the chains that hold the token, outermost first."""
        places, begin = [self.at], self.begin
        while begin and self.plain[begin - 1] in "([":
            places.append(begin - 1)
            begin -= 1 + _reach(self.plain[: begin - 1][::-1], ")]", "([{")
        for place in reversed(places):
            yield _left(self.plain, place), _right(self.plain, place)


def _left(text: str, place: int) -> int:
    """The place at which the names, points, calls and indices begin that end at a place."""
    while place > 0 and (text[place - 1] in ")]_." or text[place - 1].isalnum()):
        place -= 1
        if text[place] in ")]":
            place -= _reach(text[:place][::-1], ")]", "([{") + 1
    return max(place, 0)


def _right(text: str, place: int) -> int:
    """The place at which the names, points, calls and indices end that begin at a place."""
    while place < len(text) and (text[place] in "([_." or text[place].isalnum()):
        place += 1
        if text[place - 1] in "([":
            place += _reach(text[place:], "([", ")]}") + 1
    return min(place, len(text))


def _reach(text: str, openers: str, closers: str) -> int:
    """The length of a text up to a bracket that closes."""
    depth = 0
    for i, sign in enumerate(text):
        depth += (sign in openers) - (sign in closers)
        if depth < 0:
            return i
    return len(text)


# --- tokens that do not fit


def foreign(
    start: str, tokens: Sequence[Token], place: int, token: Token, accepts: set[str], behind: Sequence[Token]
) -> Help:
    """The way to write what was meant where the token at a place does not fit; empty where no other language explains
    it. ``behind`` is the rest of the block."""
    around = Around(token.source, tokens[0].line, tokens[-1].line, token)
    return (
        _augmented(start, tokens, place, behind)
        or _counted(tokens, behind)
        or _statement(start, tokens, place, token, around)
        or _continued(tokens, place, behind)
        or _translated(around)
        or (_operator(token, around) if start in ("statement", "const") else "")
        or _bracket(tokens, place, token, around)
        or _member(token, accepts, around)
    )


def _augmented(start: str, tokens: Sequence[Token], place: int, behind: Sequence[Token]) -> Help:
    """The help for ``y += x``: a new name, and that name wherever the block reads the old one later."""
    is_one = start == "statement" and place == 1 and len(tokens) > 3 and tokens[2].type == "EQUAL"
    if not is_one or tokens[1].type not in ("INFIX", "STAR", "MINUS") or tokens[0].type != "NAME":
        return ""
    old, sign = tokens[0], tokens[1].text
    value = tokens[3:-1] if tokens[-1].type == "NL" else tokens[3:]
    new = _next_name(old.text, (*tokens, *behind))
    if not new or not value:
        return f"a name is given once, so there is no {sign}=: give the result another name"
    text = text_of(value[0].to(value[-1]))
    written = f"{new} = {old.text} {sign} {text if is_one_operand(text) else f'({text})'}"
    changes = [Change(written, old.to(value[-1])), *[Change(new, read) for read in _reads(old.text, behind)]]
    help = f"a name is given once, so there is no {sign}=; read {new} below, and write {written}"
    return Proposal(help, tuple(changes), safe=True)


def _counted(tokens: Sequence[Token], behind: Sequence[Token]) -> Help:
    """The help for ``x++`` and ``x--``: the sum with 1, under a new name where nothing else is in the line."""
    for i, (name, sign, again) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        is_last = i + 3 == len(tokens) or tokens[i + 3].type in ("NL", *CLOSERS)
        if name.type == "NAME" and sign.text == again.text and sign.text in ("+", "-") and is_last:
            written = f"{name.text} {sign.text} 1"
            if i:
                return proposal(f"write {written}", written, name.to(again), safe=True)
            new = _next_name(name.text, (*tokens, *behind)) or "another name"
            return (
                f"a name is given once, so there is no {2 * sign.text}; read {new} below, and write {new} = {written}"
            )
    return ""


def _next_name(old: str, tokens: Sequence[Token]) -> str:
    """``x_2`` for ``x``, or the first number behind it that no token has; empty for a quoted name."""
    names = {other.text for other in tokens if other.type == "NAME"}
    base, _, number = old.rpartition("_")
    base, first = (base, int(number) + 1) if base and number.isdecimal() else (old, 2)
    if base[0] == "`":
        return ""
    return next(f"{base}_{i}" for i in range(first, first + len(names) + 1) if f"{base}_{i}" not in names)


def _continued(tokens: Sequence[Token], place: int, behind: Sequence[Token]) -> Help:
    """The help for a line that ends with an operator: brackets around the expression."""
    if not place or tokens[place].type != "NL" or tokens[place - 1].type not in _UNENDED:
        return ""
    begin = next((i for i, token in enumerate(tokens) if token.type in ("EQUAL", "RETURN")), None)
    ends = [i for i, token in enumerate(behind) if token.type == "NL" and behind[i - 1].type not in _UNENDED]
    if begin is None or not ends or not ends[0] or any(t.type in ("RETURN", "EQUAL") for t in behind[: ends[0]][:2]):
        return f"write a value behind {tokens[place - 1].text}, or take it away"
    span = tokens[begin + 1].to(behind[ends[0] - 1])
    help = "a line continues inside brackets: put the expression in ( )"
    return Proposal(help, (Change(f"({text_of(span)})", span),), safe=True)


def _reads(name: str, tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a block that mean a value of that name, not an attribute or a method."""
    depth = 0
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        depth += (token.type in OPENERS) - (token.type in CLOSERS)
        is_keyword = depth > 0 and after is not None and after.type == "EQUAL"
        if token.type == "NAME" and token.text == name and not is_keyword and (before is None or before.type != "_DOT"):
            yield token


def _statement(start: str, tokens: Sequence[Token], place: int, token: Token, around: Around) -> Help:
    first = tokens[0].text
    if start == "dim" and token.type == "EQUAL" and place == 2:
        return proposal(f"bounds follow in: dim {tokens[1].text} in 1..64", "in", safe=True)
    if start != "statement" or not place:
        return ""
    if place == 1 and first in _DECLARES and token.type == "NAME":
        gap = Span(token.source, tokens[0].line, tokens[0].column, token.line, token.column)
        return proposal(f"a name is given without {first}: {token.text} = ...", "", gap, safe=True)
    if first in _BRANCHES or any(other.text in _BRANCHES for other in tokens if other.line == token.line):
        return around.rewritten(*_CHOICE)
    if first in _LOOPS:
        return "there are no loops: an operation takes the axes that it works along"
    if place == 1 and token.type == "COLON":
        help, behind = f"a name is given by =: {first} = ...", tokens[2]
        return proposal(help, "=", token.to(behind), safe=True) if behind.type == "EQUAL" else help
    return f"a statement is name = value, such as y = {first}(...)" if place == 1 and token.type == "LPAR" else ""


def _operator(token: Token, around: Around) -> Help:
    line = token.source.line(token.line)
    if found := re.compile(r"\s*/\*(.*?)\*/(\s*$)?").match(line, len(line[: token.column].rstrip(" /*"))):
        new = f"  #{found[1].rstrip()}" if found[2] is not None else ""
        gap = Span(token.source, token.line, found.start() + 1, token.line, found.end() + 1)
        return proposal("a comment runs from # to the end of its line", new, gap, safe=True)
    if token.text == "+" and not re.search(r"[\w)\]`\"+]\s*$", line[: token.column - 1]):
        return proposal("a value has no + before it: take it away", "", token, safe=True)
    is_operand = token.text == "not" or token.type in ("NAME", "NUMBER")
    if any(around.marked(pattern) for pattern in _SIGNS) or (is_operand and around.marked(_NOT)):
        return _with_signs(around)
    if found := around.marked("<\\s*<|>\\s*>"):
        return f"a shift is written a {'*' if found[0][0] == '<' else '//'} 2 ** n"
    return "a block is written def f(x) { return ... }" if around.marked(r"\blambda\b") else ""


def _with_signs(around: Around) -> Help:
    """The help for ``a and not b``: the expression with the signs of the language."""
    parts: list[tuple[int, int, str]] = []
    for pattern, sign in _SIGNS.items():
        found_parts = [(*around.part(found), sign) for found in re.finditer(pattern, around.masked)]
        parts += [part for part in found_parts if not any(part[0] < end for start, end, _ in parts if start <= part[0])]
    signs = {sign for *_, sign in parts}
    for found in re.finditer(_NOT, around.masked):
        (start, _), (first, end) = around.part(found), around.part(found, "a")
        if any(begin < start < until for begin, until, _ in parts):  # is not
            continue
        if start == end or not around.is_whole:
            return "not is written !"
        is_long = re.search(r"[-+*/%<>=!&|^]|\bas\b|\bis\b", found["a"])
        parts += [(start, first, "!(" if is_long else "!"), *([(end, end, ")")] if is_long else [])]
    new, kept, done = "", "", around.start
    for start, end, sign in sorted(parts):
        new += around.text[done:start] + sign
        kept += around.masked[done - around.start : start - around.start]
        done = end
    new += around.text[done : around.start + len(around.masked)]
    kept += around.masked[done - around.start :]
    is_mixed = "^" in kept or (re.search(r"\|(?!>)", kept) and signs - {"|"}) or ("&" in kept and signs & {"==", "!="})
    changes = tuple([Change(sign, around.span(start, end)) for start, end, sign in parts])
    return Proposal(f"write {new.strip()}", changes, safe=not is_mixed)


def _bracket(tokens: Sequence[Token], place: int, token: Token, around: Around) -> Help:
    opener, callee = around.before[-1:], re.search(r"(?!return\b)\b(\w+)\s*\($", around.before)
    if token.type == "_COMMA" and opener == "(" and callee is None:
        return _listed(around)
    is_def = re.search(r"\bdef\s+\w+\s*\($", around.before) is not None
    if token.type == "COLON" and callee is not None and not is_def and (found := around.marked(r"\b\w+\b\s*(?=:)")):
        help, value = f"attributes are given by =: {around.written(found)}=...", tokens[place + 1]
        gap = Span(token.source, token.line, token.column, value.line, value.column)
        return proposal(help, "=", gap, safe=True) if value.line == token.line else help
    if opener and opener in "([" and (found := around.marked(r"\bdim\b")):
        return _axis(found, callee[1] if callee else "", around)
    return around.rewritten(*_CHOICE) if token.text in _BRANCHES else ""


def _listed(around: Around) -> Help:
    """The help for several values in parentheses."""
    outside = around.before[:-1]
    is_returned = re.search(r"\breturn\s*$", outside) is not None
    is_inner = _reach(outside[::-1], ")]", "([{") < len(outside)
    items, new = around.text[around.begin : around.end].strip() or "0, 1", ("", "") if is_returned else ("[", "]")
    help = "results have no parentheses: return a, b" if is_returned else f"a list is written in brackets: [{items}]"
    if around.text[around.end : around.end + 1] != ")" or not (is_returned or is_inner):
        return help
    brackets = around.span(around.begin - 1, around.begin), around.span(around.end, around.end + 1)
    return Proposal(help, (Change(new[0], brackets[0]), Change(new[1], brackets[1])), safe=True)


def _axis(found: re.Match[str], callee: str, around: Around) -> Help:
    """The help for ``dim=1``: the attribute by its name here."""
    names = [spec.name for spec in attribute_specs(OPERATIONS[callee].attributes)] if callee in OPERATIONS else []
    meant = "axis" if "axis" in names and "axes" not in names else "axes"
    start = around.part(found)[0]
    given = re.match(r"dim\s*=\s*([^,]*[^,\s])", around.level[start - around.begin :])
    value = around.text[start + given.start(1) : start + given.end(1)] if given else "1"
    if value.startswith("("):
        value = f"[{value[1:-1]}]"
    help = f"the attribute is called {meant}: {meant}="
    help += value if meant == "axis" or value.startswith("[") else f"[{value}]"
    return proposal(help, f"{meant}={value}", around.span(start, start + given.end()), safe=True) if given else help


# --- attributes and methods


def _translated(around: Around) -> Help:
    """The help for ``x.exp().mean(dim=-1)``, ``x.T`` and ``np.inf``: the whole chain in the language."""
    for start, end in around.chains():
        text = around.text[start:end]
        found = translated(text) if "\n" not in text else None
        if found is not None and found.text != text:
            return writing_call(found.text, around.span(start, end), safe=found.is_same)
    return ""


def _member(token: Token, accepts: set[str], around: Around) -> Help:
    """The help for attributes and methods that have no equal."""
    mark = around.at - around.start
    named = re.search(r"(?P<x>\w+)\s*\.\s*(?P<name>\w+)\s*$", around.masked[:mark])
    if {"LPAR", "_DOT"} <= accepts and named is not None:
        return _attribute(around, around.part(named)[0], around.written(named, "x"), around.part(named, "name"))
    owner = _OWNER.search(around.masked[:mark])
    name = re.compile(r"\.\s*(?P<name>[^\W\d]\w*)\s*(?P<args>\(#*\))?").match(around.masked, mark)
    if token.type != "_DOT" or owner is None or name is None:
        return ""
    start, x = around.part(owner)[0], around.written(owner)
    return NO_METHODS if name["args"] else _attribute(around, start, x, around.part(name, "name"))


def _attribute(around: Around, start: int, x: str, name: tuple[int, int]) -> Help:
    """The help for ``np.newaxis``, ``w.npy`` and an attribute that has no equal."""
    text, span = around.text[name[0] : name[1]], around.span(start, name[1])
    if text == "newaxis":
        return NEW_AXIS
    if text in _SUFFIXES:
        return proposal(f'the name of a file is in quotes: "{x}.{text}"', f'"{x}.{text}"', span, safe=True)
    instead = attribute_instead(text, bare(x))
    return f"{x} has no attributes{instead and f'; write {instead}'}"


# --- characters that no token begins with


def stray(token: Token) -> Diagnostic:
    """A character that no token begins with, or a quote that is never closed."""
    text, code = token.text, codes.UNCLOSED_QUOTE
    name, is_blank = unicodedata.name(text, "") if len(text) == 1 else "", text.isspace()
    help: Help
    if text.startswith("``"):
        message, help = "a quoted name cannot be empty", "put the name between the backticks"
    elif text[0] in '"`':
        what = "string" if text[0] == '"' else "quoted name"
        message, help = f"this {what} is never closed on its line", f"close it with {text[0]}"
        if re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", text):
            message, help = "a control character is between these quotes", "take it out"
    elif len(text) > 1 or text.isalpha():
        code, message = codes.STRAY_CHARACTER, f"{short(text)} is not a name"
        help = proposal(f"a name with such characters is quoted: `{text}`", f"`{text}`")
    else:
        shown = f'"{text}"' if text.isprintable() and text.isascii() else f"U+{ord(text):04X}"
        shown += "" if text.isascii() or not name else f" ({name.lower()})"
        code, message, help = codes.STRAY_CHARACTER, f"{shown} does not belong here", _stray_help(token)
        if not text.isascii() and (is_blank or unicodedata.category(text) == "Cf"):
            help = proposal("replace it by a blank, or take it out", " " if is_blank else "", safe=True)
        elif unicodedata.category(text) == "Pd" or name == "MINUS SIGN":
            help = proposal("minus is written -", "-", safe=True) if text != "-" else help
    return Diagnostic.of(code, message, Label(token), help=help)


def _stray_help(token: Token) -> Help:
    """The help for a character, with the change of the line that it asks for if the line shows it."""
    line, at = token.source.line(token.line), token.column - 1
    if token.text in _QUOTES or unicodedata.name(token.text, "").endswith("QUOTATION MARK"):
        return _string(token, line, at)
    if token.text == ";":
        return _line_end(token, line, at)
    if token.text == "?" and re.search(r"[\[,]\s*$", line[:at]):
        return proposal("a dynamic size has a name, such as N", "N")
    pattern, new, help = _STRAY.get(token.text, ("", "", ""))
    if pattern:
        return Around(token.source, token.line, token.line, token).rewritten(pattern.replace("{0}", _ONE), new, help)
    return proposal(help, new, safe=True) if new else help


def _line_end(token: Span, line: str, at: int) -> Help:
    """Take a semicolon away, or put the statement behind it on the next line."""
    blanks = re.compile(r"[;\s]*").match(line, at)
    assert blanks is not None
    rest, indent = line[blanks.end() :], line[: len(line) - len(line.lstrip())]
    new = "" if not rest else "  " if rest.startswith("#") else "\n" if rest.startswith("}") else "\n" + indent
    gap = Span(token.source, token.line, at + 1, token.line, blanks.end() + 1)
    return proposal("a statement ends with its line; no sign is needed", new, gap, safe=True)


def _string(token: Span, line: str, start: int) -> Help:
    """Put double quotes around a string that has other ones."""
    help, end = 'strings are in double quotes: "..."', line.find(_QUOTES.get(line[start], "\n"), start + 1)
    if end < 0 or '"' in line[start:end] or "\\" in line[start:end]:
        return help
    places = [Span(token.source, token.line, place + 1, token.line, place + 2) for place in (start, end)]
    return Proposal(help, tuple([Change('"', place) for place in places]), safe=True)
