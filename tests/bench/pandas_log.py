# SPDX-License-Identifier: GPL-2.0-or-later
"""pandas_log.py FILE: iterations of a Megatron log with pandas, as one would by hand: time and loss of each. Prints how
many there are and their means. For tests/bench/probes.sh."""
import sys

import pandas as pd

lines = pd.read_csv(sys.argv[1], sep="\x01", header=None, names=["line"], dtype=str, quoting=3)["line"]
table = lines.str.extract(r"iteration\s+(?P<iteration>\d+)/.*?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
                          r".*?loss: (?P<loss>\S+)").dropna().astype(float)
print(len(table), table["ms"].mean(), table["loss"].mean())
