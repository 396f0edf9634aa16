"""Chaos on purpose: real processes, real faults, and at the end every job is accounted for.

``python -m tests.chaos --seconds 300 --seed 1 --database postgresql`` (``make chaos ARGS=...``) has web-like processes
enqueue, three workers work, and a plan that follows from the seed go at them: processes killed, stopped and terminated;
the server restarted, crashed and killed; the lines between delayed, cut, made deaf and left half-open.
``python -m tests.chaos.storm`` has threads and processes call the store's operations at random, without faults.
"""
