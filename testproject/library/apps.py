from django.apps import AppConfig


class LibraryConfig(AppConfig):
    name = "testproject.library"
    verbose_name = "Library"
