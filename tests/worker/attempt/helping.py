"""What the tests of one attempt share."""

import json


def kind(ended):
    return ended.outcome.kind


def errors(ended):
    text = ended.outcome.errors
    text.encode()  # storable
    assert "\0" not in text
    return json.loads(text)


def last_error(ended):
    error = errors(ended)[-1]
    assert ended.outcome.error_class == error["class"]
    assert ended.error == f"{error['class']}: {error['message']}"
    return error


def raising(error):
    def fail():
        raise error

    return fail
