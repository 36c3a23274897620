#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""ranks.py N PROGRAM [ARGUMENT...]: N ranks of a PyTorch program on this machine, as torchrun starts them.

Debian's PyTorch 1.13 has a torchrun that fails under Python 3.11. The first rank that fails ends the
others; its status is ours.
"""
import os
import signal
import socket
import subprocess
import sys


def main():
    n, command = int(sys.argv[1]), sys.argv[2:]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    shared = dict(os.environ, WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    ranks = [subprocess.Popen(command, env=dict(shared, RANK=str(i), LOCAL_RANK=str(i))) for i in range(n)]
    signal.signal(signal.SIGTERM, lambda *_: [r.terminate() for r in ranks])
    status = 0
    while ranks:
        pid, raw = os.wait()
        ranks = [r for r in ranks if r.pid != pid]
        status = status or os.waitstatus_to_exitcode(raw)
        if status:
            for r in ranks:
                r.terminate()
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
