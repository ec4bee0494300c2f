"""The reference of the documentation, made from the code: operations, passes, commands, errors.

Imports the rest of the package, and nothing else imports it. In come dialects, passes and commands;
out go pages of Markdown, which `make public` writes to `docs/reference/`.
"""
