# SPDX-License-Identifier: GPL-2.0-or-later
"""Apache Otava beside cp_detect(), called in the same process, on the same series; Markdown on stdout.

    changepoints_otava.py LIBRARY PROGRAM OTAVA SEED DIR

LIBRARY: experiments/changepoint.c as a shared object; PROGRAM: changepoint_bench; OTAVA: the
command; DIR: scratch. Exits with 1 when a goal is missed or when the answers differ.
"""
import ctypes
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

import numpy as np
from otava.analysis import compute_change_points


class Params(ctypes.Structure):
    _fields_ = [("window", ctypes.c_size_t), ("p_max", ctypes.c_double),
                ("min_magnitude", ctypes.c_double), ("min_segment", ctypes.c_size_t)] + [
                    (name, ctypes.c_bool) for name in
                    ("logs", "sample_variance", "merge_fix", "weak_to_kappa", "autocorrelation")]


class Point(ctypes.Structure):
    _fields_ = [("index", ctypes.c_size_t)] + [
        (name, ctypes.c_double) for name in ("p", "mean_before", "mean_after", "shift", "lo", "hi")
    ] + [("first", ctypes.c_size_t), ("last", ctypes.c_size_t)]


LIBRARY, PROGRAM, OTAVA, SEED, DIR = sys.argv[1:]
LIB = ctypes.CDLL(LIBRARY)
LIB.cp_detect.restype = ctypes.c_size_t
LIB.cp_detect.argtypes = [ctypes.POINTER(ctypes.c_double), ctypes.c_size_t,
                          ctypes.POINTER(Params), ctypes.POINTER(Point)]
missed = 0


def goal(text, value, least):
    global missed
    missed += value < least
    print(f"- {text}: {value:.0f}, at least {least}: {'met' if value >= least else '**MISSED**'}")


def row(what, unit, other, own, goals):
    """A row of the table of `make bench`: lib.sh, in turn, a number a round."""
    numbers = [" ".join(f"{1e3 * v:.6g}" for v in column) for column in (own, other)]
    subprocess.run(["sh", "-c", '. tests/bench/lib.sh; dir=$1; shift; row "$@"', "changepoints.sh", DIR, what, unit,
                    *numbers, f"apache-otava {version('apache-otava')}", *goals], check=True,
                   stdout=subprocess.DEVNULL)


def prepared(values, name):
    """What a caller has at hand, so that only the analysis is timed."""
    array = (ctypes.c_double * len(values))(*values)
    params = Params.in_dll(LIB, name)
    return array, len(values), ctypes.byref(params), (Point * len(values))()


def fettle(args):
    return LIB.cp_detect(*args)


def otava(values):
    return compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=0.0)[0]


def same(values):
    """Both answers: indexes equal, p to a relative 1e-9."""
    args = prepared(values, "cp_otava")
    ours = [(c.index, c.p) for c in args[3][:fettle(args)]]
    theirs = [(int(c.index), float(c.stats.pvalue)) for c in otava(values)]
    equal = len(ours) == len(theirs) and all(
        a[0] == b[0] and abs(a[1] - b[1]) <= 1e-9 * abs(b[1]) for a, b in zip(ours, theirs))
    return equal, len(theirs)


def seconds(call, *args):
    begin = time.perf_counter()
    call(*args)
    return time.perf_counter() - begin


def steps(rng, n):
    """Noise 2 %, a change of 5 % after each 100 points."""
    level = 100 * (1 + 0.05 * (np.arange(n) // 100 % 2))
    return list(level * (1 + 0.02 * rng.standard_normal(n)))


def span(values, unit, digits):
    scaled = [v * unit for v in values]
    return f"{statistics.median(scaled):.{digits}f} [{min(scaled):.{digits}f}, {max(scaled):.{digits}f}]"


def speed(rng):
    print("| points | change points | Otava, ms | cp_otava, ms | cp_strict, ms | Otava / cp_otava | Otava / cp_strict |")
    print("|---|---|---|---|---|---|---|")
    ratios = []
    for n in (100, 1000, 10000):
        values = steps(rng, n)
        args, strict = prepared(values, "cp_otava"), prepared(values, "cp_strict")
        equal, found = same(values)
        rounds = [(seconds(otava, values), seconds(fettle, args), seconds(fettle, strict))
                  for _ in range(max(15, 20000 // n))]
        other, own, own_strict = zip(*rounds)
        per = [statistics.median([r[0] / r[i] for r in rounds]) for i in (1, 2)]
        ratios.append((n, per[0], equal))
        row(f"change points of {n:,} points, in one process", "ms", other, own, ["ratio>=30"])
        print(f"| {n} | {found}{'' if equal else ' (**they differ**)'} | {span(other, 1e3, 2)} | "
              f"{span(own, 1e3, 3)} | {span(own_strict, 1e3, 3)} | {per[0]:.0f} | {per[1]:.0f} |")
    print()
    for n, ratio, equal in ratios:
        goal(f"times faster in one process, {n} points", ratio if equal else 0, 30)


def command(rng):
    """A year of nights in a CSV file, each program started anew."""
    values = steps(rng, 365)
    with open(f"{DIR}/series.csv", "w", encoding="ascii") as f:
        f.write("time,metric\n")
        f.writelines(f"{1700000000 + 86400 * i},{v!r}\n" for i, v in enumerate(map(float, values)))
    with open(f"{DIR}/otava.yaml", "w", encoding="ascii") as f:
        f.write("tests:\n  series:\n    type: csv\n    file: series.csv\n    time_column: time\n"
                "    metrics: [metric]\n    csv_options:\n      delimiter: ','\n")

    def call(*argv):
        subprocess.run(argv, cwd=DIR, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    both = [(seconds(call, OTAVA, "analyze", "--config-file", "otava.yaml", "series", "--since", "2000-01-01"),
             seconds(call, PROGRAM, "series.csv")) for _ in range(7)]
    ratio = statistics.median([a / b for a, b in both])
    row("change points of a year of nights, a call of the command", "ms", *zip(*both), ["ratio>=100"])
    print(f"\nOne call of a command on 365 nights in a CSV file: Otava {span([b[0] for b in both], 1e3, 0)} ms, "
          f"changepoint_bench {span([b[1] for b in both], 1e3, 1)} ms.\n")
    goal("times faster a call", ratio, 100)


def noise(rng, kind, n):
    z = rng.standard_normal(n)
    if kind == "lognormal":
        z = np.exp(z)
    elif kind == "t3":
        z = z / np.sqrt(rng.chisquare(3, n))
    elif kind == "AR .5":
        for i in range(1, n):
            z[i] = 0.5 * z[i - 1] + np.sqrt(0.75) * z[i]
    return list(100 * (1 + 0.02 * z))


def equality(rng):
    """That the simulations may use cp_otava in Otava's place."""
    global missed
    print("\n| noise | analyses of 100 points | with a change point in Otava | equal | nights of growing series | equal |")
    print("|---|---|---|---|---|---|")
    for kind in ("normal", "lognormal", "t3", "AR .5"):
        once = [same(noise(rng, kind, 100)) for _ in range(500)]
        growing = [noise(rng, kind, 100) for _ in range(5)]
        nights = [same(v[:n])[0] for v in growing for n in range(20, 101)]
        equal = sum(e for e, _ in once)
        print(f"| {kind} | {len(once)} | {sum(n > 0 for _, n in once) / len(once):.3f} | {equal} | {len(nights)} | {sum(nights)} |")
        missed += equal < len(once) or not all(nights)


def main():
    rng = np.random.default_rng(int(SEED))
    print(f"apache-otava {version('apache-otava')}, numpy {version('numpy')}, scipy {version('scipy')}, "
          f"Python {sys.version.split()[0]}; seed {SEED}. Median [lowest, highest]; ratios are taken round by round.\n")
    speed(rng)
    command(rng)
    equality(rng)
    sys.exit(missed > 0)


main()
