"""What no row can have imported."""

raise AssertionError("a row's name was imported")
