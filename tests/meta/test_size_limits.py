"""No file outgrows 400 lines of code, and no function's body 60.

Comments, docstrings and blank lines do not count, nor do a function's parameters.
"""

import ast
import io
import tokenize
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = (REPOSITORY / "src" / "shuffledp", REPOSITORY / "papers")
FILE_LIMIT = 400
FUNCTION_LIMIT = 60
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> set[int]:
    """Return the numbers of the lines that hold code: no comment, docstring or blank line."""
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=int(last)):
                lines -= set(range(first, last + 1))
    return lines


def too_long(source: str) -> list[str]:
    """Return the offenders of a module, "file" among them."""
    lines = code_lines(source)
    offenders = ["file"] if len(lines) > FILE_LIMIT else []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name, body=[first, *_], end_lineno=int(last)):
                if len(lines & set(range(first.lineno, last + 1))) > FUNCTION_LIMIT:
                    offenders.append(name)
    return offenders


def test_nothing_is_too_long():
    modules = {
        str(path.relative_to(REPOSITORY)): too_long(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in folder.rglob("*.py")
    }
    assert {name: offenders for name, offenders in modules.items() if offenders} == {}


def test_a_long_function_is_seen():
    body = "    a = 1\n" * (FUNCTION_LIMIT + 1)
    comments = '    """Say nothing."""\n' + "    # a\n" * FUNCTION_LIMIT
    assert too_long("def f():\n" + body) == ["f"]
    assert too_long("def f():\n" + comments + body[len("    a = 1\n") :]) == []
