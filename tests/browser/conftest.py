"""The site in a process's thread, and a browser that fails the test at whatever it complains of."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from selenium import webdriver

from tests.browser.driving import DESKTOP, Browser, start
from tests.factories import AdminFactory


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    driver = start()
    yield driver
    driver.quit()


@pytest.fixture
def visitor(driver: webdriver.Chrome, live_server) -> Iterator[Browser]:
    """A browser with nobody signed in. What it complains of fails the test."""
    browser = Browser(driver, live_server.url)
    browser.complaints()
    browser.size(DESKTOP)
    browser.prefer("light")
    yield browser
    complaints = browser.complaints()
    driver.get("about:blank")  # nothing asks the server any more when the database is emptied
    driver.delete_all_cookies()
    assert complaints == []


@pytest.fixture
def sign_in(visitor: Browser) -> Callable[[User], Browser]:
    def sign_in(user: User) -> Browser:
        client = Client()
        client.force_login(user)
        visitor.sign_in(client.session.session_key)
        return visitor

    return sign_in


@pytest.fixture
def browser(sign_in: Callable[[User], Browser]) -> Browser:
    """A browser with somebody signed in who may do everything. Pages stay as they came: see ``Browser.live``."""
    browser = sign_in(AdminFactory(username="ada"))
    browser.live(False)
    return browser


@pytest.fixture
def reader(sign_in: Callable[[User], Browser]) -> Browser:
    """A browser with somebody signed in who may look at everything, and do nothing."""
    user = User.objects.create_user("rita", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="django_jobs", codename__startswith="view_")
    )
    return sign_in(user)


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Browser]:
    """A browser that runs no script."""
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    yield browser
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
