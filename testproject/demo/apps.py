from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Jobs of an invented shop, to look at in the admin. Installed where ``DEMO`` is set: ``make serve``."""

    name = "testproject.demo"
    verbose_name = "Demo"
