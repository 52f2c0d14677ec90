"""Serves a GGUF file over an OpenAI-compatible endpoint on loopback, until its input ends.

    python scripts/local_model_server.py MODEL.gguf

Prints the address on the first line of standard output. Runs in any environment that has xllamacpp
and needs nothing of dikast. One thread: the model is there to be asked, not to be fast.
"""

import os
import sys

import xllamacpp  # type: ignore[import-not-found]

_NICE = 10
_CONTEXT_TOKENS = 8192


def serve(path: str) -> None:
    """Load the model, print the address, and stay until standard input is closed."""
    os.nice(_NICE)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {"local"}
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1])
