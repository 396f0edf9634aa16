"""Installing a peer in an environment of its own below ``var/``."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.registry import Peer

FOLDER = Path(__file__).resolve().parents[2] / "var" / "peers"
SCRIPTS = Path(__file__).resolve().parent / "scripts"
SECONDS = 600


class NotInstalled(Exception):
    """Why a peer can't be run here."""


class Installed:
    """A peer that can be run.

    :param command: what runs its script.
    :param version: of its main package.
    """

    def __init__(self, peer: Peer, command: list[str], version: str) -> None:
        self.peer = peer
        self.command = command
        self.version = version


def install(peer: Peer, again: bool = False) -> Installed:
    """Install a peer, if it is not. Raises NotInstalled, saying why."""
    if not peer.requirements:
        import django_jobs

        return Installed(peer, [sys.executable, str(SCRIPTS / peer.script)], django_jobs.__version__)
    folder = FOLDER / re.sub(r"\W+", "-", peer.name)
    done = folder / "installed"
    if again or not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (install_node if peer.is_node else install_python)(peer, folder)
        done.touch()
    if peer.is_node:
        for script in SCRIPTS.glob("*.mjs"):  # modules are looked for beside the script
            shutil.copy(script, folder)
        package = folder / "node_modules" / peer.requirements[0] / "package.json"
        return Installed(
            peer, ["node", str(folder / peer.script)], json.loads(package.read_text())["version"]
        )
    python = folder / "bin" / "python"
    name = re.split(r"\W", peer.requirements[0].replace("-", "_"))[0].replace("_", "-")
    version = check(
        [str(python), "-c", f"import importlib.metadata as m; print(m.version({name!r}))"]
    ).strip()
    return Installed(peer, [str(python), str(SCRIPTS / peer.script)], version)


def install_python(peer: Peer, folder: Path) -> None:
    """With the Python that runs this, by pip."""
    check([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    check([*pip, *peer.requirements])


def install_node(peer: Peer, folder: Path) -> None:
    """By npm."""
    if not shutil.which("npm"):
        raise NotInstalled("there is no npm here")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    check(["npm", "install", "--no-audit", "--no-fund", *peer.requirements], folder)


def check(command: list[str], folder: Path | None = None) -> str:
    """Run a command; raises NotInstalled with the first error that it tells."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        errors = [line for line in lines if "ERROR" in line or "error" in line] or lines or ["no output"]
        raise NotInstalled(reason(errors, done.stderr))
    return done.stdout


def reason(errors: list[str], text: str) -> str:
    """The error in one line: which Python it needs, if that is it."""
    if needed := re.findall(r"Requires-Python ([<>=!.\d,* ]+)", text):
        return f"it requires Python {needed[-1].strip()}, this is {sys.version.split()[0]}"
    return errors[0].removeprefix("ERROR: ")[:200]
