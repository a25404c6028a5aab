"""A compiler that behaves as badly as the program's name says; knows nothing of JAX."""

import os
import re
import sys
import time
from pathlib import Path

sys.path[:0] = sys.argv[1:]  # where jitcount and msgspec are

from jitcount._targets.protocol import (  # noqa: E402
    Answer,
    CompileModule,
    Figures,
    Request,
    receive,
    send,
)


def start() -> None:
    if Path("hang_at_start").exists():
        sys.stderr.write("looking for a device\n")
        sys.stderr.flush()
        time.sleep(600)
    send(sys.stdout.buffer, Answer())


def main() -> None:
    while (request := receive(sys.stdin.buffer, Request)) is not None:
        task, program = request.task, request.block
        if not isinstance(task, CompileModule):
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
            send(sys.stdout.buffer, Answer(compile_s=0.25, error="UNIMPLEMENTED: not so"))
        else:
            figures = Figures(argument_bytes=len(program), flops=os.getpid())
            hlo = b"HLO" if task.keep_hlo else b""
            send(sys.stdout.buffer, Answer(compile_s=0.5, figures=figures, block=hlo))


main()
