"""Models of PyTorch, by `torch.export`: modules, exported programs, and ``.pt2`` files.

It may import: the rest of `frontends`, `dialects` and `core`; torch is loaded when it is needed.
In: an exported program in core ATen; out: a module of the `graph` dialect with the weights.
"""
