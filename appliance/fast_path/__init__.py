"""The compiled fast path: Cython sources, what compiles them (build.py), what finds the result (loader.py).

The broker's Python is whole without it and stays the reference for every rule. Nothing here is needed to run.
"""
