"""Prints AST nodes as PTX text that parses back to equal nodes."""

from __future__ import annotations

from qgpu_ptx import ptx_ast as ast


def ast_to_ptx(node: ast.Node) -> str:
    """PTX text of any node; a module ends with a newline, other nodes do not."""
    match node:
        case ast.Module():
            return _module(node)
        case ast.Function():
            return _function(node)
        case ast.Block():
            return _block(node, "")
        case _:
            return _line(node)


def _module(module: ast.Module) -> str:
    lines = []
    if module.version is not None:
        lines.append(f".version {module.version}")
    if module.targets:
        lines.append(".target " + ", ".join(module.targets))
    lines.append(f".address_size {module.address_size}")
    lines.extend(ast_to_ptx(declaration) for declaration in module.declarations)
    return "\n".join(lines) + "\n"


def _function(function: ast.Function) -> str:
    parts = [f".{word}" for word in (*function.linkage, function.kind)]
    if function.returns:
        parts.append(_parameters(function.returns))
    parts.append(function.name)
    parts.append(_parameters(function.parameters))
    parts.extend(_performance(directive) for directive in function.directives)
    head = " ".join(parts)
    return head + (";" if function.body is None else "\n" + _block(function.body, ""))


def _block(block: ast.Block, indent: str) -> str:
    lines = [indent + "{"]
    for statement in block.statements:
        if isinstance(statement, ast.Block):
            lines.append(_block(statement, indent + "    "))
        elif isinstance(statement, ast.Label):
            lines.append(indent + _line(statement))
        else:
            lines.append(f"{indent}    {_line(statement)}")
    return "\n".join([*lines, indent + "}"])


def _line(node: ast.Node) -> str:
    match node:
        case ast.Instruction():
            guard = f"{_line(node.guard)} " if node.guard else ""
            operands = ", ".join(map(_line, node.operands))
            return f"{guard}{node.mnemonic}{' ' if operands else ''}{operands};"
        case ast.Guard(register=register, negated=negated):
            return f"@{'!' if negated else ''}{register}"
        case ast.Label(name=name):
            return f"{name}:"
        case ast.Registers(type=type_, names=names, vector=vector):
            return f".reg {_vector(vector)}.{type_} {', '.join(map(_line, names))};"
        case ast.RegisterName(name=name, count=count):
            return name if count is None else f"{name}<{count}>"
        case ast.Variable():
            return _variable(node) + ";"
        case ast.Pragma(strings=strings):
            return f".pragma {', '.join(map(_quote, strings))};"
        case ast.File(index=index, name=name, stamp=stamp):
            return f".file {index} {_quote(name)}" + (f", {stamp[0]}, {stamp[1]}" if stamp else "")
        case ast.Location():
            return _location(node)
        case ast.BranchTargets(name=name, targets=targets, kind=kind):
            return f"{name}: .{kind} {', '.join(targets)};"
        case ast.CallPrototype():
            returns = f"{_parameters(node.returns)} " if node.returns else ""
            extra = "".join(" " + _performance(directive) for directive in node.directives)
            return f"{node.name}: .callprototype {returns}_ {_parameters(node.parameters)}{extra};"
        case ast.Section(name=name, lines=lines):
            return "\n".join([f".section .{name} {{", *lines, "}"])
        case ast.PerformanceDirective():
            return _performance(node)
        case _:
            return _value(node)


def _value(node: ast.Node) -> str:
    match node:
        case ast.Name(name=name, component=component):
            return name if component is None else f"{name}.{component}"
        case ast.Integer(value=value):
            return str(value)
        case ast.Float(text=text):
            return text
        case ast.Vector(elements=elements) | ast.InitializerList(elements=elements):
            return "{" + ", ".join(map(_line, elements)) + "}"
        case ast.ArgumentList(elements=elements):
            return "(" + ", ".join(map(_line, elements)) + ")"
        case ast.Pair(first=first, second=second):
            return f"{_line(first)}|{_line(second)}"
        case ast.Negated(name=operand):
            return f"!{_line(operand)}"
        case ast.SymbolOffset(name=operand, offset=offset):
            return f"{_line(operand)}+{offset}"
        case ast.Address(base=base, offset=offset):
            return f"[{_line(base)}{f'+{offset}' if offset else ''}]"
        case ast.SymbolValue(name=name, offset=offset, wrapper=wrapper):
            text = name + (f"+{offset}" if offset else "")
            return f"{wrapper}({text})" if wrapper else text
        case _:
            raise TypeError(f"no PTX text for {type(node).__name__}")


def _vector(count: int) -> str:
    return f".v{count} " if count > 1 else ""


def _quote(text: str) -> str:
    return f'"{text}"'


def _parameters(parameters: tuple[ast.Variable, ...]) -> str:
    return "(" + ", ".join(map(_variable, parameters)) + ")"


def _variable(variable: ast.Variable) -> str:
    parts = [f".{word}" for word in (*variable.linkage, variable.space)]
    parts.extend(f".attribute(.{word})" for word in variable.attributes)
    if variable.align is not None:
        parts.append(f".align {variable.align}")
    if variable.vector > 1:
        parts.append(f".v{variable.vector}")
    parts.append(f".{variable.type}")
    if variable.pointer:
        parts.append(".ptr")
        if variable.pointer_space:
            parts.append(f".{variable.pointer_space}")
        if variable.pointer_align is not None:
            parts.append(f".align {variable.pointer_align}")
    dimensions = "".join("[]" if d is None else f"[{d}]" for d in variable.dimensions)
    parts.append(variable.name + dimensions)
    if variable.initializer is not None:
        parts.append("= " + _line(variable.initializer))
    return " ".join(parts)


def _location(node: ast.Location) -> str:
    text = f".loc {node.file_index} {node.line} {node.column}"
    if node.inlined is None:
        return text
    at = node.inlined
    offset = f"+{at.function_offset}" if at.function_offset else ""
    return (
        f"{text}, function_name {at.function_label}{offset}, "
        f"inlined_at {at.file_index} {at.line} {at.column}"
    )


def _performance(directive: ast.PerformanceDirective) -> str:
    if directive.strings:
        return f".{directive.name} {', '.join(map(_quote, directive.strings))};"
    return " ".join([f".{directive.name}", ", ".join(map(str, directive.values))]).rstrip()
