"""How `convert-math-to-arith` works: the approximations, and the writer of their operations.

It may import: core, dialects and xDSL.
In: an f32 or f64 value or machine vector; out: operations of arith and math that processors have.
"""
