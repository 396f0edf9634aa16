"""Every sample of the documentation is run, on a real database."""

import pytest

from tests.docs.pages import Page, pages
from tests.docs.story import Story

PAGES = [page for page in pages() if "tutorial" not in page.path.parts]

# Those that need what the tests don't have are few: a reader trusts samples that were run.
MOST_NOT_RUN = 12


@pytest.mark.django_db(transaction=True, reset_sequences=True)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_samples_of_a_page_do_what_it_says(page: Page) -> None:
    with Story(page) as story:
        for sample in page.samples():
            story.run(sample)


def test_few_samples_are_not_run() -> None:
    left_out = [
        f"{page.name}:{sample.line}: {sample.not_run}"
        for page in PAGES
        for sample in page.samples()
        if sample.not_run
    ]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)
