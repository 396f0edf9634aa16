"""Every guard is taken out, one at a time, to see that its tests fail.

A test of a race or of a fault proves nothing unless it fails where the code is wrong. So ``tests/guards/catalogue`` has
edits of the package that each take one guard out, with the tests that must fail then. ``python -m tests.guards`` tries
them, each in a copy of the tree::

    python -m tests.guards --database sqlite
    python -m tests.guards --database postgresql finish       # those whose name or file has the word in it
"""
