/* The operations room, better with a script: pages that refresh themselves, ages that stay true, forms sent once.
   Everything works without it. No dependency, nothing inline, nothing from another host. */
(function () {
    "use strict";

    const INTERVAL = 5000; // milliseconds between two refreshes
    const SLOWEST = 60000; // between two tries while nothing answers
    const KEY = "django_jobs.live"; // in the browser's storage: "paused", or nothing

    const page = document.getElementById("dj-page");
    if (!page) {
        return;
    }

    // -- ages ------------------------------------------------------------------------------------------------------

    const units = page.dataset.djUnits.split("|"); // ms, s, min, h, d
    let skew = Date.parse(page.dataset.djNow) - Date.now(); // the server's clock is the clock

    function two(large, largeUnit, small, smallUnit) {
        return large + " " + units[largeUnit] + (small ? " " + small + " " + units[smallUnit] : "");
    }

    function durationText(seconds) {
        if (seconds < 60) {
            return seconds + " " + units[1];
        }
        if (seconds < 3600) {
            return two(Math.floor(seconds / 60), 2, seconds % 60, 1);
        }
        if (seconds < 86400) {
            return two(Math.floor(seconds / 3600), 3, Math.floor((seconds % 3600) / 60), 2);
        }
        return two(Math.floor(seconds / 86400), 4, Math.floor((seconds % 86400) / 3600), 3);
    }

    function tellAges() {
        const now = Date.now() + skew;
        for (const time of page.querySelectorAll("time[data-dj-ago]")) {
            const seconds = (now - Date.parse(time.dateTime)) / 1000;
            const whole = Math.round(Math.abs(seconds));
            const words = whole === 0 ? page.dataset.djWordNow
                : seconds < 0 ? page.dataset.djWordIn : page.dataset.djWordAgo;
            const text = words.replace("{}", durationText(whole));
            if (time.textContent !== text) {
                time.textContent = text;
            }
        }
    }

    // -- live ------------------------------------------------------------------------------------------------------

    const control = document.querySelector("[data-dj-live-control]");
    const toggle = control && control.querySelector("[data-dj-toggle]");
    const told = control && control.querySelector("[data-dj-live-state]");
    let paused = false;
    let failures = 0;
    let timer = null;
    let asking = null; // the AbortController of the request that is under way
    let again = false; // somebody asked by hand meanwhile

    function region() {
        return document.getElementById("dj-live");
    }

    function say(state, text) {
        control.dataset.djState = state;
        if (told.textContent !== text) { // it is read out, and need not be when nothing has changed
            told.textContent = text;
        }
    }

    /* A selection of rows, marked text or an open menu must not be taken away under the user's hand. */
    function isHeld() {
        const live = region();
        const selection = window.getSelection();
        const focused = document.activeElement;
        return Boolean(
            live.querySelector("input[type=checkbox]:checked") ||
            Array.from(live.querySelectorAll("select, input[type=text]")).some(isChanged) ||
            (selection && !selection.isCollapsed && live.contains(selection.anchorNode)) ||
            (live.contains(focused) && focused.matches("input:not([type=submit]), select, textarea"))
        );
    }

    /* Something was written or chosen, and not sent yet. */
    function isChanged(field) {
        if (field.matches("select")) {
            const first = Array.from(field.options).findIndex((each) => each.defaultSelected);
            return field.selectedIndex !== Math.max(first, 0);
        }
        return field.value !== field.defaultValue;
    }

    function describe(element) {
        for (const name of ["id", "href", "action", "name"]) {
            const value = element.getAttribute(name);
            if (value) {
                return element.tagName + "|" + name + "|" + value + "|" + (element.value || "");
            }
        }
        const form = element.closest("form");
        return element.tagName + "|" + (form ? form.getAttribute("action") : "") + "|" + element.textContent.trim();
    }

    function focusable(live) {
        return Array.from(live.querySelectorAll("a[href], button, summary, [tabindex]"));
    }

    /* Put the new region in place of the old one, with the same thing in focus and the same details open. */
    function replace(fresh) {
        const live = region();
        const focused = live.contains(document.activeElement) ? document.activeElement : null;
        let wanted = null, nth = 0;
        if (focused) {
            wanted = describe(focused);
            nth = focusable(live).filter((each) => describe(each) === wanted).indexOf(focused);
        }
        const scrolled = new Map();
        for (const box of live.querySelectorAll("[id].dj-scroll")) {
            scrolled.set(box.id, box.scrollLeft);
        }
        const toggled = new Map();
        for (const details of live.querySelectorAll("details[id]")) {
            toggled.set(details.id, details.open);
        }
        for (const details of fresh.querySelectorAll("details[id]")) {
            if (toggled.has(details.id)) {
                details.open = toggled.get(details.id);
            }
        }
        live.replaceWith(fresh);
        prepare();
        for (const [id, left] of scrolled) {
            const box = document.getElementById(id);
            if (box) {
                box.scrollLeft = left;
            }
        }
        if (focused) {
            const again = focusable(fresh).filter((each) => describe(each) === wanted);
            const target = again[nth] || again[0];
            if (target) {
                target.focus({preventScroll: true});
            }
        }
    }

    function next() {
        clearTimeout(timer);
        timer = null;
        if (!paused && !document.hidden) {
            timer = setTimeout(() => refresh(false), Math.min(INTERVAL * Math.pow(2, failures), SLOWEST));
        }
    }

    /* Ask for the page again. By hand it is done while paused, too. */
    async function refresh(byHand) {
        clearTimeout(timer);
        timer = null;
        if (asking) {
            again = again || byHand;
            return;
        }
        if (isHeld()) {
            say("held", control.dataset.djTextHeld);
            next();
            return;
        }
        asking = new AbortController();
        const deadline = setTimeout(() => asking && asking.abort(), 20000);
        try {
            const response = await fetch(window.location.href, {
                headers: {"X-Django-Jobs-Live": "1"},
                credentials: "same-origin",
                cache: "no-store",
                redirect: "manual",
                signal: asking.signal,
            });
            if (response.type === "opaqueredirect" || response.status === 403) {
                setPaused(true, false);
                say("lost", control.dataset.djTextSignedOut);
                return;
            }
            if (!response.ok) {
                throw new Error(String(response.status));
            }
            const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
            const fresh = parsed.getElementById("dj-live");
            if (!fresh) {
                throw new Error("no region");
            }
            failures = 0;
            if (fresh.dataset.djNow) {
                skew = Date.parse(fresh.dataset.djNow) - Date.now();
            }
            if (!isHeld() && (byHand || !paused)) { // it may be by now
                replace(document.adoptNode(fresh));
            }
            if (!paused) {
                say("live", control.dataset.djTextLive);
            }
        } catch (error) {
            failures = Math.min(failures + 1, 5);
            if (!paused) {
                say("lost", control.dataset.djTextLost);
            }
        } finally {
            clearTimeout(deadline);
            asking = null;
            if (again) {
                again = false;
                refresh(true);
            } else {
                next();
            }
        }
    }

    function setPaused(value, remember) {
        paused = value;
        toggle.textContent = paused ? control.dataset.djTextResume : control.dataset.djTextPause;
        say(paused ? "paused" : "live", paused ? control.dataset.djTextPaused : control.dataset.djTextLive);
        if (remember) {
            try {
                if (paused) {
                    window.localStorage.setItem(KEY, "paused");
                } else {
                    window.localStorage.removeItem(KEY);
                }
            } catch (error) {
                // Without storage the choice holds for this page.
            }
        }
        if (paused) {
            clearTimeout(timer);
        }
    }

    function remembered() {
        try {
            return window.localStorage.getItem(KEY) === "paused";
        } catch (error) {
            return false;
        }
    }

    if (control && region()) {
        toggle.hidden = false;
        toggle.addEventListener("click", () => {
            setPaused(!paused, true);
            if (!paused) {
                refresh(false);
            }
        });
        control.querySelector("[data-dj-refresh]").addEventListener("click", (event) => {
            event.preventDefault();
            refresh(true);
        });
        document.addEventListener("visibilitychange", () => {
            if (document.hidden) {
                clearTimeout(timer);
                timer = null;
            } else if (!paused) {
                refresh(false);
            }
        });
        setPaused(remembered(), false);
        next();
    }

    // -- forms -----------------------------------------------------------------------------------------------------

    /* A form is sent once, however often its button is pressed. */
    page.addEventListener("submit", (event) => {
        const form = event.target;
        if (form.method !== "post") {
            return;
        }
        if (form.dataset.djSent) {
            event.preventDefault();
            return;
        }
        form.dataset.djSent = "1";
        form.setAttribute("aria-busy", "true");
    });
    // Back in the browser's history the page comes as it was left: the forms are new.
    window.addEventListener("pageshow", () => {
        for (const form of page.querySelectorAll("form[data-dj-sent]")) {
            delete form.dataset.djSent;
            form.removeAttribute("aria-busy");
        }
    });

    /* A choice in a form of filters takes effect at once; its button stays for who has no script. */
    page.addEventListener("change", (event) => {
        const form = event.target.closest("form[data-dj-autosubmit]");
        if (form && event.target.matches("select")) {
            form.requestSubmit();
        }
    });

    /* One box in the head of a table that ticks all others in it. */
    page.addEventListener("change", (event) => {
        const table = event.target.closest("table");
        if (!table || !event.target.matches("input[type=checkbox]")) {
            return;
        }
        const all = table.querySelector("input[data-dj-all]");
        const boxes = Array.from(table.querySelectorAll("tbody input[type=checkbox]"));
        if (event.target === all) {
            for (const box of boxes) {
                box.checked = all.checked;
            }
        } else if (all) {
            all.checked = boxes.every((box) => box.checked);
        }
        for (const box of boxes) {
            box.closest("tr").classList.toggle("dj-selected", box.checked);
        }
    });
    /* What is too much for one answer goes on by itself, unless somebody leaves the page. */
    for (const form of page.querySelectorAll("form[data-dj-go-on]")) {
        setTimeout(() => form.dataset.djSent || form.requestSubmit(), 500);
    }

    /* What can be scrolled can be reached by keyboard, too; not all browsers see to that. */
    function letScroll() {
        for (const box of page.querySelectorAll(".dj-scroll, .dj-pre, .dj-chart-table")) {
            if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) {
                box.tabIndex = 0;
            } else {
                box.removeAttribute("tabindex");
            }
        }
    }

    function prepare() {
        for (const all of page.querySelectorAll("input[data-dj-all]")) {
            all.hidden = false;
        }
        letScroll();
        tellAges();
    }

    prepare();
    window.addEventListener("resize", letScroll);
    page.addEventListener("toggle", letScroll, true); // what is folded away has no size yet
    // On a phone the navigation may be wider than the page: where one is should be seen.
    const here = document.querySelector(".dj-nav [aria-current]");
    if (here) {
        const bar = here.closest("ul");
        bar.scrollLeft = here.offsetLeft - bar.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
    }
    setInterval(() => {
        if (!document.hidden) {
            tellAges();
        }
    }, 1000);
}());
