"""`stepwell-opt`: xDSL's driver with the dialects and passes of this project.

Passes of xDSL, of this project and of installed plug-ins are named in one `-p` list. Weights beside
the input (`m.safetensors` beside `m.mlir`) are loaded with it, and written beside the output if
`-o` names one.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from xdsl.utils.exceptions import ArgSpecParseError

from .driver_arguments import DriverArguments
from .messages import excerpt_of, worded


def main(args: Sequence[str] | None = None) -> None:
    """Run the command; an error is one line and its place in the text, with exit status 1."""
    arguments = sys.argv[1:] if args is None else list(args)
    try:
        DriverArguments(arguments)
        from .driver import StepwellOptMain

        StepwellOptMain(arguments).run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): discard what Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        print("stepwell-opt: interrupted", file=sys.stderr)
        sys.exit(130)
    except (Exception, ArgSpecParseError) as error:
        # The boundary of the process.
        if "--traceback" in arguments:
            raise
        message = worded(error)
        shown = excerpt_of(error)
        if "--json" in arguments:
            print(json.dumps({"report": "error", "message": message}), file=sys.stderr)
        else:
            print(f"stepwell-opt: error: {message}", file=sys.stderr)
            if shown is not None:
                print(shown, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
