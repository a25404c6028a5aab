"""A compiler that behaves as badly as the program's name says; knows nothing of JAX."""

import importlib.util
import os
import re
import sys
import time
from pathlib import Path

import_path = Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("pipe", import_path)
assert spec is not None
assert spec.loader is not None
pipe = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pipe)


def start() -> None:
    if Path("hang_at_start").exists():
        sys.stderr.write("looking for a device\n")
        sys.stderr.flush()
        time.sleep(600)
    pipe.send(sys.stdout.buffer, {})


def main() -> None:
    while (message := pipe.receive(sys.stdin.buffer)) is not None:
        asked, program = message
        if "program" not in asked:
            start()
            continue
        sys.stderr.write("compiling\n")
        sys.stderr.flush()
        if b"jit_crash" in program:
            sys.stderr.write("Check failed: no mercy\n")
            sys.stderr.flush()
            os.abort()
        if found := re.search(rb"jit_signal_(\d+)", program):
            os.kill(os.getpid(), int(found[1]))
            time.sleep(600)
        if b"jit_leaves" in program:
            sys.exit(3)
        if b"jit_hang" in program:
            Path("hanging").write_text(str(os.getpid()))
            time.sleep(600)
        if b"jit_slow" in program:
            time.sleep(0.3)
        if b"jit_garbage" in program:
            sys.stdout.buffer.write(b"\1" + 15 * b"\0" + b"?")
            sys.stdout.buffer.flush()
        if b"jit_refused" in program:
            pipe.send(sys.stdout.buffer, {"compile_s": 0.25, "error": "UNIMPLEMENTED: not so"})
        else:
            figures = {"compile_s": 0.5, "argument_bytes": len(program), "flops": os.getpid()}
            pipe.send(sys.stdout.buffer, figures, b"HLO" if asked["keep_hlo"] else b"")


main()
