"""Builds the C compiler's runtime pieces into a folder, in the image build: `python pieces.py FOLDER`."""

import os
import sys
from pathlib import Path

from cuvil_core.toolchain import AVX2, build

SOURCE = """\
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
float pieces(float x) { return x > 0 ? expf(x) + (float)sqrt(x) : (float)abs((int)x); }
"""

if __name__ == "__main__":
    os.environ["ZIG_GLOBAL_CACHE_DIR"] = str(Path(sys.argv[1]).absolute())
    built = build({"pieces.c": SOURCE}, {}, AVX2, cache_dir=Path("/tmp/pieces"))
    print(f"{len(built)} bytes linked")
