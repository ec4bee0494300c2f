"""xDSL's builtin dialect for parsing `dense_resource<name>` without renaming.

xDSL keeps resource names in one object for the whole process and renames repeated names: the second
module parsed would refer to the weight ``w0_0``. Here a name always refers to the array of that
name in the weight store of the module.
"""

from __future__ import annotations

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect


class NamedResources(OpAsmDialectInterface):
    """Resource names as they are written."""

    def declare_resource(self, key: str) -> str:
        """Record that a resource of this name is used; return the same name."""
        self._blob_storage.setdefault(key, "")
        return key


def builtin_dialect() -> Dialect:
    """The builtin dialect with its own table of resources."""
    return Dialect(
        Builtin.name, list(Builtin.operations), list(Builtin.attributes), [NamedResources()]
    )
