"""Runs at the start of each Python of the single file: the machine's libgcc_s.so.1, or else the one that comes along.

Once it is loaded, whatever asks for the name gets it. The machine's is the better one: its libstdc++, which packages
of reports load, asks for names that LLVM's unwinder does not have.
"""

import os
import sys
from _ctypes import dlopen

NAME = "libgcc_s.so.1"

try:
    dlopen(NAME, os.RTLD_NOW)
except OSError:
    dlopen(f"{sys.prefix}/lib/fallback/{NAME}", os.RTLD_NOW)
