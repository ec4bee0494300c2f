"""A compilation as a page to look at: the model, its kernels at every stage, passes, profiles.

It may import: `compilation` and what that imports.
In: a compilation, and measurements; out: a document of JSON (`document`), and a page of HTML.
"""
