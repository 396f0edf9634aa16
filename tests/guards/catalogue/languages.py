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
        "a text that comes from outside is not longer than it may be",
        edits=[
            Edit(
                "texts.py",
                "        if any(_length(each, values) > LONGEST for each in templates):\n            return None\n",
            )
        ],
        tests=["test_texts.py::test_what_is_no_recipe", "test_texts.py::test_texts_within_texts_have_an_end"],
    ),
    Guard(
        "a text that comes from outside is not within more others than it may be",
        edits=[Edit("texts.py", " or depth > DEEPEST")],
        tests=["test_texts.py::test_texts_within_texts_have_an_end"],
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
    Guard(
        "what is refused in an address is told in the language of the page",
        edits=[
            Edit("admin/job_query.py", "self.errors.append(_told(error))", "self.errors.append(str(error))")
        ],
        tests=["admin/test_translated_refusals.py::test_of_an_address"],
    ),
    Guard(
        "what is refused of a form is told in the language of the page",
        edits=[
            Edit(
                "admin/job_edit.py",
                "raise forms.ValidationError(translated(error))",
                "raise forms.ValidationError(str(error))",
            )
        ],
        tests=["admin/test_translated_refusals.py::test_of_a_form"],
    ),
    Guard(
        "why an action is refused is told in the language of the page",
        edits=[
            Edit(
                "admin/job_actions.py",
                "messages.error(request, translated(error))",
                "messages.error(request, str(error))",
            )
        ],
        tests=["admin/test_translated_refusals.py::test_of_actions_and_of_the_log"],
    ),
    Guard(
        "why jobs were left is told in the language of the page",
        edits=[Edit("admin/job_actions.py", '"why": translated(why)', '"why": why')],
        tests=["admin/test_translated_refusals.py::test_of_actions_and_of_the_log"],
    ),
    Guard(
        "what operators did is told in the language of the reader",
        edits=[Edit("admin/log.py", "return made.translated()", "return str(made)")],
        tests=["admin/test_log.py::test_in_the_reader_s_language_whatever_the_actor_s_was"],
    ),
    Guard(
        "an error is English as a string, whatever language is active",
        edits=[
            Edit(
                "texts.py",
                "made = super().__new__(cls, english % filled if filled else english)",
                "made = super().__new__(cls, gettext(english) % filled if filled else english)",
            )
        ],
        tests=["test_texts.py::test_is_english_whatever_the_language_is"],
    ),
    Guard(
        "a number that was counted up to a bound is written as the language does it",
        edits=[Edit("texts.py", "number, places = (whole, 0)", "number, places = (value, 0)")],
        tests=[
            "admin/test_words.py::test_numbers_are_written_as_the_language_does",
            "test_trouble.py::test_in_the_language_of_the_page",
        ],
    ),
    Guard(
        "the number of a process is no quantity",
        edits=[Edit("templates/admin/django_jobs/_queue_workers.html", '|stringformat:"d"')],
        tests=["admin/test_settings_of_sites.py::test_other_languages"],
    ),
    Guard(
        "what a worker recorded in words of its own is told in the language of the page",
        edits=[Edit("admin/timeline.py", "message_text(error_class, message)", "message")],
        tests=["admin/test_translated_refusals.py::test_of_what_a_worker_recorded"],
    ),
)
