"""Random programs for rules of loops and of the run time."""

from __future__ import annotations

from .drawn import Drawing, draws


@draws("ShortenAccess", "ShortenBound", "EraseIdleLoop", "DropInvariantCarry")
def nest(d: Drawing) -> None:
    """Sums of rows, with carried values that stay the same and loops that do nothing."""
    rows, columns = d.sizes(2)
    kept = d.choices.among(0, 1, 2)
    names = [f"%a{n}" for n in range(kept + 1)]
    carried = ", ".join(f"{name} = %start : f32" for name in names)
    sums = ["%sum" if name == names[-1] else d.choices.among(name, "%start") for name in names]
    results = ", ".join(f"%r{n}" for n in range(kept + 1))
    numbers = range(max(rows, columns) + 2)
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in numbers)
    x, y = f"{rows}x{columns}xf32", f"{rows}xf32"
    d.inputs.append(d.array("f32", rows, columns))
    d.text = f"""
    func.func @main(%x: tensor<{x}>) -> tensor<{y}> {{
      %y = graph.call_dps @sums(%x) : (tensor<{x}>) -> tensor<{y}>
      func.return %y : tensor<{y}>
    }}
    loop.kernel @sums(%x: memref<{x}>) -> (%y: memref<{y}>) {{
      {constants}
      %start = arith.constant 0.5 : f32
      {_idle(d, y)}
      loop.for "i" %i to {_bound(d, rows)} {{
        {results} = loop.for "k" %k to {_bound(d, d.choices.among(0, columns, columns))}
            serial carry({carried}) {{
          %v = loop.load %x {_access(d, "%i", "%k")} : memref<{x}>, f32
          %sum = arith.addf {names[-1]}, %v : f32
          loop.yield {", ".join(sums)} : {", ".join(["f32"] * len(sums))}
        }}
        %both = arith.addf %r0, %r{kept} : f32
        loop.store %both, %y {_access(d, "%i")} : f32, memref<{y}>
      }}
    }}"""


def _bound(d: Drawing, size: int) -> str:
    """A size, or the least of it and another one."""
    more = d.choices.among(0, 1)
    least = f"min (d0, d1) -> (d0, d1 + {more})(%c{size}, %c{size})"
    return d.choices.among(str(size), least)


def _idle(d: Drawing, y: str) -> str:
    """A loop without an iteration, or without a body, at times."""
    never = f'loop.for "n" %n to 0 {{ loop.store %start, %y (d0) -> (d0)(%n) : f32, memref<{y}> }}'
    return d.choices.among("", never, 'loop.for "m" %m to 3 { }')


def _access(d: Drawing, *indices: str) -> str:
    """A map that yields some indices, perhaps with the help of others."""
    given, exprs = list(indices), [f"d{n}" for n in range(len(indices))]
    for place, expr in enumerate(exprs):
        match d.choices.among("plain", "zero", "one", "same"):
            case "zero":
                exprs[place] = f"{expr} + d{len(given)}"
                given.append("%c0")
            case "one":
                exprs[place] = f"{expr} + d{len(given)} - 1"
                given.append("%c1")
            case "same":
                exprs[place] = f"d{len(given)}"
                given.append(indices[place])
    dims = ", ".join(f"d{n}" for n in range(len(given)))
    return f"({dims}) -> ({', '.join(exprs)})({', '.join(given)})"


@draws("CaptureConstant", "DropCapture", "DropTrueCheck")
def tiles(d: Drawing) -> None:
    """Each tile adds two captured numbers to an element."""
    (size,) = d.sizes(1)
    kind = f"memref<{size}xf32>"
    order = d.permuted(6)
    captures = [("%x", kind), ("%y", kind), ("%c", "f32"), ("%e", "f32"), ("%x", kind)]
    captures.append(d.choices.choice(captures))
    captures = [captures[n] for n in order]
    arguments = [f"%a{order[n]}: {own}" for n, (_, own) in enumerate(captures)]
    values = ", ".join(name for name, _ in captures)
    checks = [
        f'rt.check %ctx, %{d.choices.among("true", "true", "false")}, "check {n}"'
        for n in range(d.choices.among(0, 1, 2))
    ]
    d.inputs.append(d.array("f32", size))
    read, added = d.choices.among("%a0", "%a4"), d.choices.among("%a2", "%a3")
    d.text = f"""
    func.func @main(%ctx: !rt.context, %x: {kind}, %y: {kind}) -> i32
        attributes {{graph.signature = (tensor<{size}xf32>) -> tensor<{size}xf32>}} {{
      %true = arith.constant true
      %false = arith.constant false
      %n = arith.constant {size} : index
      %c = arith.constant {d.choices.among("0.5", "-0.0")} : f32
      %e = arith.constant 3.0 : f32
      {" ".join(checks)}
      rt.parallel_tiles %n captures({values} : {", ".join(own for _, own in captures)}) {{
      ^bb0(%tile: index, {", ".join(arguments)}):
        %v = memref.load {read}[%tile] : {kind}
        %w = arith.addf %v, {added} : f32
        memref.store %w, %a1[%tile] : {kind}
        rt.yield
      }}
      %ok = arith.constant 0 : i32
      func.return %ok : i32
    }}"""
