"""A browser's page as a test looks at it: it waits for what is to come, and says what it saw when that did not come."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.remote.webelement import WebElement

from tests.appliance_process import RunningAppliance

WAIT_S = 120.0  # as long as a busy machine may need; nobody waits longer than it takes
POLL_S = 0.1
PASSWORD = "nine lives of a crane"
TEXT_CHARS_MAX = 2000
PROBLEMS = "[aria-label=Problems] article, .error-line, .field-error, #connection-bar"


def first_run_link(appliance: RunningAppliance) -> str:
    link = re.search(r"http://\S+/first-run\?token=\S+", appliance.output)
    assert link, appliance.output
    return link[0]


class Page:
    """The page that the browser shows; what it shows may be drawn anew at any moment."""

    def __init__(self, browser: WebDriver) -> None:
        self._browser = browser

    def find(self, selector: str) -> WebElement:
        """The first element of a selector, as soon as there is one."""
        found: list[WebElement] = []

        def is_there() -> bool:
            found[:] = self._browser.find_elements(By.CSS_SELECTOR, selector)[:1]
            return bool(found)

        self.wait(f"an element {selector}", is_there)
        return found[0]

    def click(self, selector: str) -> None:
        """Click the first element of a selector; one that was drawn anew meanwhile is clicked in its new shape."""

        def is_clicked() -> bool:
            self.find(selector).click()
            return True

        self.wait(f"a click on {selector}", is_clicked)

    def sign_up(self, appliance: RunningAppliance) -> None:
        """By the printed link: makes the first account, ada, and ends at the Overview."""
        self._browser.get(first_run_link(appliance))
        for name, text in {"username": "ada", "password": PASSWORD, "again": PASSWORD}.items():
            box = self.find(f"main form [name={name}]")
            box.clear()  # a name is there already
            box.send_keys(text)
        self.click("main form .primary")
        self.wait("the Overview", lambda: self._browser.current_url == f"http://{appliance.http}/")

    def wait(self, what: str, is_so: Callable[[], bool]) -> None:
        """Until it is so. An element that went away while it was read is looked for again."""
        deadline = time.monotonic() + WAIT_S
        last = "not so"
        while True:
            try:
                if is_so():
                    return
                last = "not so"
            except WebDriverException as exc:
                last = f"{type(exc).__name__}: {exc.msg}"
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {WAIT_S:g} s for {what} ({last}).\n{self.describe()}")
            time.sleep(POLL_S)

    def describe(self) -> str:
        """Address, headline, problems and text of the page, and what the browser's console says."""
        try:
            heads = [element.text for element in self._browser.find_elements(By.TAG_NAME, "h1")]
            problems = [element.text for element in self._browser.find_elements(By.CSS_SELECTOR, PROBLEMS)]
            [body] = self._browser.find_elements(By.TAG_NAME, "body")
            lines = [
                f"url: {self._browser.current_url}",
                f"h1: {heads}",
                f"problems: {problems}",
                f"console: {[entry['message'] for entry in self._browser.get_log('browser')]}",
                f"text: {body.text[:TEXT_CHARS_MAX]}",
            ]
        except (WebDriverException, ValueError) as exc:
            return f"the page can not be described: {exc}"
        return "\n".join(lines)
