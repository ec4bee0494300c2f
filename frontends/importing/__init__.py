"""What importers have in common: values, the interface of conversions, and composed operators.

It may import: the rest of `frontends`, `dialects` and `core`.
In: operators of a model with symbolic shapes; out: operators of the `graph` dialect.
"""
