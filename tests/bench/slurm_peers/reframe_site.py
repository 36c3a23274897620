# SPDX-License-Identifier: GPL-2.0-or-later
# The bench's cluster as a site of ReFrame: it keeps no accounts, so the backend is squeue.
site_configuration = {
    "systems": [{
        "name": "bench",
        "hostnames": [".*"],
        "partitions": [{
            "name": "tune",
            "scheduler": "squeue",
            "launcher": "local",
            "environs": ["none"],
            "max_jobs": 1000,
        }],
    }],
    "environments": [{"name": "none"}],
    "general": [{"remote_detect": False}],
    "logging": [{"handlers": [{"type": "file", "name": "reframe.log", "level": "error"}],
                 "handlers_perflog": []}],
}
