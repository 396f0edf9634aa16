"""A browser to look at the site with: Chromium without a window, driven by its own driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.csp import violations

SCREENSHOTS = Path(__file__).resolve().parent.parent.parent / "var" / "screenshots"
# Pictures are for whoever looks at them (SCREENSHOTS=1), and for the documentation; they took a third of the time.
TAKES_SCREENSHOTS = bool(os.environ.get("SCREENSHOTS"))
DESKTOP, PHONE = (1280, 800), (390, 844)
TIMEOUT = 20


def start() -> webdriver.Chrome:
    """A browser without a profile, a proxy or anything of yesterday."""
    options = webdriver.ChromeOptions()
    for argument in (
        "--headless=new",
        "--no-sandbox",  # tests may run as root
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-first-run",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--lang=en",
        "--force-device-scale-factor=1",
        # Nothing of its own beside the pages.
        "--disable-background-networking",
        "--disable-component-extensions-with-background-pages",
        "--disable-component-update",
        "--disable-default-apps",
        "--disable-extensions",
        "--disable-sync",
        "--disable-features=MediaRouter,OptimizationHints,Translate",
    ):
        options.add_argument(argument)
    options.binary_location = found("chromium", "chromium-browser", "google-chrome")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(found("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    return driver


def found(*names: str) -> str:
    """Where the first of some programs is. Raises FileNotFoundError."""
    for name in names:
        if path := shutil.which(name):
            return path
    raise FileNotFoundError(
        f"There is no {names[0]} here, and the tests in tests/browser need it: "
        "apt-get install chromium chromium-driver"
    )


class Browser:
    """One visitor of the site.

    :param driver: the browser.
    :param address: of the site.
    """

    def __init__(self, driver: webdriver.Chrome, address: str) -> None:
        self.driver = driver
        self.address = address

    # -- going somewhere -------------------------------------------------------------------------------------------

    def open(self, path: str) -> Browser:
        """Open a page of the site."""
        self.driver.get(self.address + path)
        return self

    def sign_in(self, session: str) -> None:
        """Be the user of a session."""
        self.open("/static/django_jobs/admin.css")
        self.driver.delete_all_cookies()
        self.driver.add_cookie({"name": "sessionid", "value": session, "path": "/"})

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self.driver.current_url).removeprefix(self.address)

    # -- looking ---------------------------------------------------------------------------------------------------

    def all(self, selector: str) -> list[WebElement]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str = "body") -> str:
        return self.one(selector).text

    def link(self, text: str) -> WebElement:
        return self.driver.find_element(By.LINK_TEXT, text)

    def button(self, label: str) -> WebElement:
        """A button by what it says, or by its accessible name."""
        buttons = self.all("button, a.dj-button")
        for button in buttons:
            if label in (button.text, button.accessible_name):
                return button
        raise AssertionError(f"no button {label!r} among {[each.accessible_name for each in buttons]}")

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any], what: str = "") -> Any:
        """Wait until something is true; elements may come and go meanwhile."""
        wait = WebDriverWait(self.driver, TIMEOUT, 0.05, [StaleElementReferenceException])
        return wait.until(lambda _driver: condition(), what)

    def live(self, is_live: bool = True) -> None:
        """Let pages refresh themselves, or not."""
        self.js("localStorage.clear()" if is_live else "localStorage.setItem('django_jobs.live', 'paused')")

    # -- doing -----------------------------------------------------------------------------------------------------

    def click(self, element: WebElement) -> None:
        """Click something that leads to another page, and wait for that."""
        before = self.one("html")
        element.click()
        self.wait(lambda: is_gone(before), "the page stays")
        self.wait(lambda: self.js("return document.readyState") == "complete")

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, condition: Callable[[WebElement], bool], most: int = 200) -> WebElement:
        """Press Tab until the focus is where it should be."""
        for _number in range(most):
            self.press(Keys.TAB)
            focused = self.driver.switch_to.active_element
            if condition(focused):
                return focused
        raise AssertionError("the keyboard does not get there")

    # -- how it looks ----------------------------------------------------------------------------------------------

    def size(self, size: tuple[int, int]) -> None:
        """Be a screen of so many pixels; a narrow one is a phone."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {
                "width": width,
                "height": height,
                "deviceScaleFactor": 1,
                "mobile": width < 600,
            },
        )

    def prefer(self, scheme: str) -> None:
        """Prefer ``dark`` or ``light``."""
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """As if another tab was in front."""
        script = """
            Object.defineProperty(document, "hidden", {value: arguments[0], configurable: true});
            document.dispatchEvent(new Event("visibilitychange"));
        """
        self.js(script, True)
        yield
        self.js(script, False)

    def check_layout(self, name: str) -> None:
        """Check that the page that is open fits the screen, light and dark; and keep how it looks."""
        for scheme in ("light", "dark"):
            self.prefer(scheme)
            self.shot(f"{name}-{scheme}")
            assert self.overflow() == 0, (name, scheme)
            assert self.cut_off() == [], (name, scheme)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the screen."""
        return int(
            self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def cut_off(self) -> list[str]:
        """The tables of which one sees a part only."""
        script = """
            return [...document.querySelectorAll(".dj-scroll")]
                .filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.id);
        """
        return list(self.js(script))

    def shot(self, name: str) -> None:
        """Keep how the whole page looks, below ``var/screenshots``, if ``SCREENSHOTS`` is set."""
        if not TAKES_SCREENSHOTS:
            return
        metrics = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})
        size = metrics["cssContentSize"]
        answer = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot",
            {
                "format": "png",
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
            },
        )
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(answer["data"]))

    # -- what went wrong -------------------------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """What the console says of errors, and the violations of the policy, since the last time."""
        console = [
            entry["message"]
            for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]
        return console + [json.dumps(json.loads(report)) for report in violations.take()]


def is_gone(element: WebElement) -> bool:
    """Whether the page that an element was on is no more."""
    try:
        element.is_enabled()
    except (StaleElementReferenceException, WebDriverException):
        return True
    return False
