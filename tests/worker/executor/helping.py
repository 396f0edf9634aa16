"""What the tests of executors share."""


def kinds(pool):
    return [attempted.outcome.kind for attempted in pool.ended]
