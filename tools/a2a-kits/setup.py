#!/usr/bin/env python3
"""Installs A2A clients and kits of others into the git-ignored `.tools/a2a-kits`, once.

Each kit for itself: what cannot be had is said, and the rest is installed all the same.
- `testbed`: a2a-testbed and the official Python client, from the Python package index. Needs Python 3.12 or newer with
  `venv`: `python3.12`, or one that pyenv has.
- `python-sdk`: the official Python client alone, where there is an older Python only; 3.10 at least.
- `js-sdk`: the official JavaScript client, from the npm registry as `package-lock.json` pins it. Needs Node.js 20 and npm.

Exits with 1 when a kit is missing. Running it again when nothing changed does nothing.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / ".tools" / "a2a-kits"
STAMP = "installed.txt"
# httpx 1 has another API than the one that these were written for.
PYTHON_SDK = ("a2a-sdk==1.3.0", "httpx<1")
TESTBED = ("a2a-testbed==0.3.0a3", *PYTHON_SDK)
INSTALL_SECONDS_MAX = 600


class Missing(Exception):
    """Why a kit cannot be had."""


def run(command, **options):
    try:
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX, **options)
    except (OSError, subprocess.SubprocessError) as error:
        raise Missing(f"`{' '.join(map(str, command[:4]))} ...` failed: {error}") from error


def version_of(command, environment=None):
    """The version that an interpreter says it has, as (major, minor); nothing when it does not run."""
    code = "import sys; print(sys.version_info[0], sys.version_info[1])"
    try:
        done = subprocess.run([command, "-c", code], check=True, capture_output=True, text=True, env=environment)
        major, minor = done.stdout.split()
        return int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def pyenv_versions():
    """Versions that pyenv has, newest last."""
    try:
        done = subprocess.run(["pyenv", "versions", "--bare"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def interpreter(minor):
    """An interpreter of at least 3.`minor`, and the environment that makes it run."""
    names = [sys.executable, "python3"] + [f"python3.{number}" for number in range(14, minor - 1, -1)]
    environments = [None] + [{**os.environ, "PYENV_VERSION": version} for version in reversed(pyenv_versions())]
    for environment in environments:
        for name in names:
            found = version_of(name, environment)
            if found is not None and found >= (3, minor):
                return name, environment
    raise Missing(f"there is no Python 3.{minor} or newer; pyenv or the system's packages provide one")


def virtual_environment(directory, minor, packages):
    python, environment = interpreter(minor)
    run([python, "-m", "venv", directory], env=environment)
    pip = [directory / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *packages])


def install_python_sdk(directory):
    if (TARGET / "testbed" / STAMP).exists():
        directory.mkdir(parents=True)
        print("python-sdk: comes with testbed")
    else:
        virtual_environment(directory, 10, PYTHON_SDK)


def install_testbed(directory):
    virtual_environment(directory, 12, TESTBED)


def install_js_sdk(directory):
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Missing(f"`{program}` is not installed; Debian has it as `nodejs` and `npm`")
    directory.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, directory / name)
    run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory)


KITS = {
    "testbed": (install_testbed, " ".join(TESTBED)),
    "python-sdk": (install_python_sdk, " ".join(PYTHON_SDK)),
    "js-sdk": (install_js_sdk, (HERE / "package-lock.json").read_text()),
}


def install(name):
    install_kit, wanted = KITS[name]
    directory = TARGET / name
    stamp = directory / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        print(f"{name}: already installed in {directory.relative_to(ROOT)}")
        return True
    print(f"{name}: installing, once", flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    try:
        install_kit(directory)
    except Missing as missing:
        shutil.rmtree(directory, ignore_errors=True)
        print(f"{name}: MISSING: {missing}", file=sys.stderr)
        return False
    # Written last: an interrupted installation is done again.
    stamp.write_text(wanted)
    return True


def main():
    # All of them, whatever becomes of the first.
    installed = [install(name) for name in KITS]
    return 0 if all(installed) else 1


if __name__ == "__main__":
    sys.exit(main())
