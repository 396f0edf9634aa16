"""The subcommands of ``manage.py jobs``, a module for each group of them."""
