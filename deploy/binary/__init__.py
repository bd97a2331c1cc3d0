"""Builds the single file, dist/gantry: a launcher, then an interpreter with our code and all packages, compressed.

    parts         what is fetched, and that it is what the locks say
    interpreter   the tree of the interpreter with its packages
    slimming      leaves out of it what nothing here uses
    native        what is compiled: the fast path, the library that other extension modules unwind with
    application   our own files
    base          the tree, packed: the part that changes seldom
    archive       a folder as a compressed archive, the same bytes each time
    assembly      launcher, archives and trailer become one file
    __main__      the command

What a part is made of names the folder that it is kept in (`kept`), so a second build makes only what has changed.
"""
