"""lark's parser errors as messages for people: what was found, what would be legal there."""

from __future__ import annotations

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from qgpu_ptx.diagnostics import PtxSyntaxError, SourceText

# What each terminal of ptx.lark is called in a message.
TERMINAL_NAMES = {
    "VERSION": "'.version'",
    "TARGET": "'.target'",
    "ADDRESS_SIZE": "'.address_size'",
    "FILE": "'.file'",
    "LOC": "'.loc'",
    "SECTION": "'.section'",
    "PRAGMA": "'.pragma'",
    "LINKAGE": "'.visible' or another linkage",
    "FUNCTION_KIND": "'.entry' or '.func'",
    "SPACE": "a state space such as '.global'",
    "REG": "'.reg'",
    "ALIGN": "'.align'",
    "ATTRIBUTE": "'.attribute'",
    "BRANCHTARGETS": "'.branchtargets'",
    "CALLTARGETS": "'.calltargets'",
    "CALLPROTOTYPE": "'.callprototype'",
    "DOTWORD": "a type or modifier such as '.u32'",
    "HEXFLOAT": "a floating-point number",
    "FLOAT": "a floating-point number",
    "INT": "an integer",
    "SIGN": "'-'",
    "NOT": "'!'",
    "ID": "a name",
    "STRING": "a string",
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "COMMA": "','",
    "SEMICOLON": "';'",
    "COLON": "':'",
    "PLUS": "'+'",
    "MINUS": "'-'",
    "VBAR": "'|'",
    "EQUAL": "'='",
    "LESSTHAN": "'<'",
    "MORETHAN": "'>'",
    "AT": "'@'",
    "$END": "end of file",
}


def explain_syntax_error(source: SourceText, error: UnexpectedInput) -> PtxSyntaxError:
    """The PtxSyntaxError for a lark error raised while parsing `source`."""
    if isinstance(error, UnexpectedToken):
        if error.token.type == "$END":
            return _at_end(source, error.expected)
        start = error.token.start_pos or 0
        found = f"'{error.token}'"
        span = source.span(start, error.token.end_pos or start + 1)
        expected = error.accepts or error.expected
    elif isinstance(error, UnexpectedCharacters):
        start = error.pos_in_stream or 0
        word = _word_at(source.text, start)
        found = f"'{word}'"
        span = source.span(start, start + len(word))
        expected = error.allowed or set()
    else:
        return _at_end(source, set(error.expected) if hasattr(error, "expected") else set())
    names = _names(expected)
    return PtxSyntaxError(
        f"found {found} where PTX expects {_either(names)}",
        span=span,
        found=found,
        expected=names,
        hint=_hint(source, start, expected),
    )


def _at_end(source: SourceText, expected: set[str]) -> PtxSyntaxError:
    names = _names(expected)
    end = len(source.text.rstrip())
    return PtxSyntaxError(
        f"the file ends where PTX expects {_either(names)}",
        span=source.span(max(0, end - 1), end),
        found="end of file",
        expected=names,
        hint="the file may be cut off, or a '}' or ';' is missing",
    )


def _names(terminals: set[str]) -> list[str]:
    return sorted(
        {TERMINAL_NAMES.get(name, name) for name in terminals if not name.startswith("_")}
    )


def _either(names: list[str]) -> str:
    if not names:
        return "something else"
    # A statement can begin in a dozen ways; listing them all would bury the message.
    if len(names) > 6:
        if "'.reg'" in names:
            return "a statement"
        return "a declaration" if "'.entry' or '.func'" in names else "an operand"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


def _word_at(text: str, start: int) -> str:
    end = start + 1
    while end < len(text) and (text[end].isalnum() or text[end] in "_$%."):
        end += 1
    return text[start:end]


def _hint(source: SourceText, start: int, expected: set[str]) -> str | None:
    if "SEMICOLON" in expected:
        before = source.text[:start].rstrip()
        line = source.position(max(0, len(before) - 1))[0]
        if line < source.position(start)[0]:
            return f"a ';' may be missing at the end of line {line}"
    return None
