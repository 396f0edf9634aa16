"""What is told in the language of the page, and what comes back from forms and rows to be told."""

from tests.guards.guard import Edit, Guard

GUARDS = (
    Guard(
        "a text that comes from outside is formatted, and no wider than what is filled in",
        edits=[Edit("texts.py", " or (given and not _TEMPLATE.fullmatch(each))")],
        tests=[
            "test_texts.py::test_what_is_no_recipe",
            "admin/test_log.py::test_any_entry_is_shown",
        ],
    ),
    Guard(
        "a slip in another catalogue breaks no page",
        edits=[
            Edit(
                "texts.py",
                "except (KeyError, TypeError, ValueError):  # a site",
                "except ZeroDivisionError:  # a site",
            )
        ],
        tests=["test_texts.py::test_another_catalogue_s_slip_shows_the_english"],
    ),
    Guard(
        "the last error of a schedule is told anew only where it is the same",
        edits=[
            Edit(
                "schedule_errors.py",
                "if stored(redacted(name, args, kwargs, str(error))) == written:",
                "if True:",
            )
        ],
        tests=["admin/test_translated_refusals.py::test_of_a_schedule_that_can_not_run"],
    ),
    Guard(
        "the last error of a schedule is told without what is hidden",
        edits=[
            Edit(
                "schedule_errors.py",
                "return redacted(name, args, kwargs, error.translated)",
                "return error.translated",
            )
        ],
        tests=["admin/test_translated_refusals.py::test_of_a_schedule_nothing_is_told_that_is_hidden"],
    ),
    Guard(
        "an address with an id that no worker has is no error of the page's",
        edits=[Edit("admin/workers.py", " if worker_id < 2**63 else None")],
        tests=["admin/test_translated_refusals.py::test_of_actions_and_of_the_log"],
    ),
)
