"""How `convert-graph-to-rt` works: buffers for tensors, an arena, calls, checks.

It may import: core, dialects and xDSL.
In: the public function on tensors; out: the same on buffers, made of operations of rt.
"""
