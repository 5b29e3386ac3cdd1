"""Builds the C compiler's runtime pieces into a folder, in the image build: `python pieces.py FOLDER`.

Nothing of the product is imported, so that this layer stays while the product changes; a test holds the flags equal to
those of `cuvil_core.toolchain`, since other flags are other pieces.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

TRIPLE = "x86_64-linux-gnu.2.17"
LINK_FLAGS = ("-shared", "-s", "-Wl,-z,defs", "-Wl,-z,noexecstack", "-Wl,--build-id=none", "-lpthread")
SOURCE = """\
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
float pieces(float x) { return x > 0 ? expf(x) + (float)sqrt(x) : (float)abs((int)x); }
"""


def build(folder: Path) -> None:
    """Compiles and links one small library with an empty cache in `folder`, which fills it."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "pieces.c").write_text(SOURCE)
        caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder.absolute()), "ZIG_LOCAL_CACHE_DIR": f"{scratch}/local"}
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", TRIPLE]
        for words in (
            ["-c", "-fPIC", "-O2", "pieces.c", "-o", "pieces.o"],
            ["pieces.o", *LINK_FLAGS, "-o", "pieces.so"],
        ):
            subprocess.run([*zig, *words], cwd=scratch, env={**os.environ, **caches}, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
