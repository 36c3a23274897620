# SPDX-License-Identifier: GPL-2.0-or-later
"""hta_breakdown.py TRACE: HolisticTraceAnalysis' temporal breakdown of one trace, for tests/bench/probes.sh.

Prints: idle_us compute_us whole_us.
"""
import sys

from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="", include_last_profiler_step=True)
row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
print(row["idle_time(us)"], row["compute_time(us)"], row["kernel_time(us)"])
