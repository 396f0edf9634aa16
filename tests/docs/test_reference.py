"""What the reference lists is what there is."""

import inspect
import re
import sys
from pathlib import Path

import pytest

import django_jobs
from django_jobs import backend, operations, signals, testing
from django_jobs.conf import SETTINGS
from django_jobs.management.commands.jobs import SUBCOMMANDS
from tests.docs.pages import DOCS, ROOT

REFERENCE = DOCS / "reference"
SOURCE = {path: path.read_text("utf-8") for path in (ROOT / "django_jobs").rglob("*.py")}

sys.path.append(str(DOCS))  # where Sphinx finds it, too
import generated  # type: ignore[import-not-found]  # noqa: E402


def read(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text("utf-8")


def test_each_setting_has_a_section_with_its_default_and_what_it_accepts() -> None:
    sections = re.split(r"^## ", generated.settings(), flags=re.MULTILINE)[1:]

    assert [section.split("\n")[0] for section in sections] == list(SETTINGS)
    for section, setting in zip(sections, SETTINGS.values(), strict=True):
        assert setting.purpose.rstrip(".")[:20] in section.replace("\\", "")
        assert setting.accepts[:20] in section.replace("\\", "")


def test_each_check_has_a_line_in_the_reference() -> None:
    ids = {id_ for text in SOURCE.values() for id_ in re.findall(r"django_jobs\.[EW]\d{3}", text)}

    assert set(re.findall(r"^\| `(django_jobs\.[EW]\d{3})`", read("checks"), re.MULTILINE)) == ids


def test_each_subcommand_has_a_section_with_all_its_options() -> None:
    page = generated.commands()

    for name in SUBCOMMANDS:
        assert f"### manage.py jobs {name}\n" in page
    for option in ("--queues", "--drain", "--max-memory", "--older-than", "--run-now"):
        assert f"`{option}" in page


@pytest.mark.django_db
def test_each_statement_has_a_section_with_both_texts_and_the_index_it_goes_by() -> None:
    page = generated.statements()
    names = {
        path.stem for vendor in ("postgresql", "sqlite") for path in (generated.SQL / vendor).glob("*.sql")
    }

    assert set(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == names
    claim = page[page.index("\n## claim\n") :].split("\n## ")[1]
    assert re.search(
        r"USING (COVERING )?INDEX django_jobs_job_claim \(queue_name=\?\)", claim
    )  # newer SQLite covers
    assert "FOR UPDATE SKIP LOCKED" in claim
    assert "Index Scan using django_jobs_job_claim on django_jobs_job" in claim
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        plans = section.count("Its plan:") + section.count("It inserts, and has no plan.")
        assert plans == section.count("{code-block} sql"), section.partition("\n")[0]
        for vendor_part in section.split("```{code-block} sql")[1:]:
            assert ("has no plan" in vendor_part) <= ("INSERT INTO" in vendor_part), section.partition("\n")[
                0
            ]


@pytest.mark.parametrize(("page", "column"), [("explanation/states", -2), ("reference/indexes", -1)])
def test_statements_that_are_told_of_exist(page: str, column: int) -> None:
    rows = [
        line.split(" | ")
        for line in (DOCS / f"{page}.md").read_text("utf-8").splitlines()
        if line.startswith("| ")
    ]
    told = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row[column])}
    names = {
        path.stem for vendor in ("postgresql", "sqlite") for path in (generated.SQL / vendor).glob("*.sql")
    }

    assert told
    assert told <= names


@pytest.mark.parametrize(
    ("pages", "names"),
    [
        (["jobs", "context"], django_jobs.__all__),
        (["operations"], operations.__all__),
        (["testing"], testing.__all__),
        (["tasks"], backend.__all__),
        (["signals"], [name for name in vars(signals) if name.startswith("job_")]),
    ],
)
def test_each_public_name_is_in_the_reference(pages: list[str], names: list[str]) -> None:
    text = "".join(map(read, pages)) + generated.exceptions() + generated.operations()
    text += generated.testing() + generated.tasks()
    listed = re.findall(r"^\.\. auto\w+:: (\w+)$", text, re.MULTILINE)

    assert set(names) - {"registry"} <= set(listed)


def test_each_public_method_of_a_job_function_has_a_docstring() -> None:
    for owner in (django_jobs.JobDefinition, django_jobs.JobContext):
        for name, member in inspect.getmembers(owner):
            if not name.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{owner.__name__}.{name}"


def test_links_of_the_readme_lead_somewhere() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", readme) if "://" not in link]

    assert links
    for link in links:
        assert Path(ROOT / link).exists(), link
