"""Sphinx builds the documentation from here: ``make docs``.

The pages of the reference that repeat what the code says (settings, commands, statements) are written from the code at
each build, by :mod:`generated`, so they can't fall behind it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django
from django.conf import settings

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

settings.configure(
    SECRET_KEY="only-for-building-the-documentation",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django_jobs"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)
django.setup()

import generated

import django_jobs

generated.write_all(HERE / "reference" / "_generated")
for folder in ("howto", "reference", "explanation"):
    generated.write_others(HERE / folder)

project = "django_jobs"
author = "the django_jobs contributors"
project_copyright = author
release = version = django_jobs.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "**/_generated"]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signatures are long enough, and the docstrings say units and kinds
autodoc_default_options = {"members": True}

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

smartquotes = False  # options begin with two hyphens, and code has straight quotes

html_theme = "furo"
html_title = f"django_jobs {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
