"""Add two numbers: build a program, print its IR, compile it, call it.

python examples/hello.py
"""

from __future__ import annotations

import numpy as np

import stepwell as sw


def main() -> None:
    b = sw.Builder("main")
    x, y = b.input("x", (), "f32"), b.input("y", (), "f32")
    b.output(x + y, name="sum")
    module = b.module()
    print(module)

    exe = sw.compile(module)
    print(exe.ir("kernels"))  # one of exe.stages: "graph" to "asm"
    total = exe(np.float32(2), np.float32(3))
    assert total == 5
    print("2 + 3 =", total)


if __name__ == "__main__":
    main()
