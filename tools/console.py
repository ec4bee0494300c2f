"""Where the commands print: results to `out`, everything else to `err`."""

from __future__ import annotations

from rich.console import Console

out = Console()
err = Console(stderr=True)
