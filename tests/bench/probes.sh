#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# probes.sh : how fast `fettle probe` reads large inputs, against peers in the same run. A PyTorch trace
# of 200 MB (LONG=1: of 1 GB too) against yajl alone and against HolisticTraceAnalysis, whose temporal
# breakdown must have the same figures; NCCL and training logs of 100 MB; an nsys export of a million
# kernels (of logs it is the reading that counts, values are not printed). Speeds are of CPU time (user and system), the best of REPS, since other programs share the
# machine; wall time stands beside it. A goal that is missed is said; what fails is what this machine's
# speed has no part in: figures that differ, memory, less than 20 times HTA's speed, or half of yajl's.
#
# HTA and pandas are those of peers.sh, or said to be absent; ROUNDS (1) in turn with them. TRACE_MB and LOG_MB: smaller sizes.
# FETTLE_SHARED: where a real trace lies (default ../shared); else the fixture is repeated.
set -eu
cd "$(dirname "$0")/../.."
REPS=${REPS:-3}
GOAL_TRACE_MB_S=300
GOAL_LOG_MB_S=500
GOAL_NSYS_S=1
MIN_HTA_RATIO=20
MIN_YAJL_RATIO=0.5
MAX_DIFFERENCE=0.001 # of HTA's figures
log_mb=${LOG_MB:-100}
. tests/bench/lib.sh
scratch probes
bench=$build/tests/bench/probe_bench
fixtures=tests/fixtures/probes
shared=${FETTLE_SHARED:-../shared}
failed=0

# measure NAME CMD... : the run with the least CPU time, "wall user system KiB", to $dir/NAME
measure() {
	name=$1
	shift
	for _ in $(seq "$REPS"); do
		"$bench" run "$@" 2>"$dir/err" >"$dir/$name.out" || {
			cat "$dir/err" "$dir/$name.out" >&2
			return 1
		}
		tail -n 1 "$dir/err"
	done | sort -k2,2g | head -n 1 >"$dir/$name"
}
size() { stat -c %s "$1"; }
# what NAME BYTES : "MB/s of CPU time, seconds of it, of wall time, MiB"
show() {
	awk -v name="$1" -v bytes="$2" '{ printf "%-44s %6.0f MB/s  %7.2f s CPU  %7.2f s wall  %6.0f MiB\n",
		name, bytes / ($2 + $3) / 1e6, $2 + $3, $1, $4 / 1024 }' "$dir/$3"
}
speed() { awk -v bytes="$1" '{ printf "%.0f\n", bytes / ($2 + $3) / 1e6 }' "$dir/$2"; }
holds() { awk -v a="$1" -v b="$3" "BEGIN { exit !(a $2 b) }"; }
# goal WHAT VALUE OP LIMIT
goal() { holds "$2" "$3" "$4" || echo "  goal missed: $1 is $2, not $3 $4"; }
require() {
	holds "$2" "$3" "$4" || {
		echo "  FAILED: $1 is $2, not $3 $4"
		failed=1
	}
}

ours() { # idle_us compute_us whole_us, from the values of the whole trace
	jq -r -s '[.[] | select(.kind == "value" and .labels.scope == "trace") | {(.metric): .value}] | add
		| (.trace_step_ms * 1000) as $us
		| [.gpu_idle_ratio * $us, .compute_ratio * $us, $us] | join(" ")' "$1"
}

against_hta() { # FILE: HTA once, it takes a minute for what takes us half a second
	for _ in $(seq "${ROUNDS:-1}"); do
		timed trace_round "$build/fettle" probe --json "$1"
		timed hta_round env HTA_DISABLE_NS_ROUNDING=1 "$(bin HolisticTraceAnalysis)/python" tests/bench/hta_breakdown.py "$1"
	done
	sort -k2,2g "$dir/hta_round" | head -n 1 >"$dir/hta"
	cp "$dir/hta_round.out" "$dir/hta.out"
	row "PyTorch trace of $(($(size "$1") / 1000000)) MB, CPU" ms "$(cpu_ms trace_round)" "$(cpu_ms hta_round)" "$(version HolisticTraceAnalysis)" "ratio>=$MIN_HTA_RATIO"
	row "the same, memory" MiB "$(mib trace_round)" "$(mib hta_round)" "$(version HolisticTraceAnalysis)"
	show "HolisticTraceAnalysis 0.5.0" "$(size "$1")" hta
	a=$(ours "$dir/trace.out") b=$(tail -n 1 "$dir/hta.out")
	echo "  idle, computing, whole (us): ours $a; HTA $b"
	for i in 1 2 3; do
		difference=$(echo "$a $b" | awk -v i=$i '{ d = ($i - $(i + 3)) / $(i + 3); print d < 0 ? -d : d }')
		require "difference of figure $i" "$difference" '<=' "$MAX_DIFFERENCE"
	done
	ratio=$(paste -d' ' "$dir/hta" "$dir/trace" | awk '{ printf "%.0f", ($2 + $3) / ($6 + $7) }')
	echo "  $ratio times as fast as HTA in CPU time, $(paste -d' ' "$dir/hta" "$dir/trace" |
		awk '{ printf "%.0f", $1 / $5 }') in wall time"
	require "speed over HTA's" "$ratio" '>=' "$MIN_HTA_RATIO"
}

trace() { # MB
	"$bench" trace "$dir/real.json" "$1" >"$dir/trace.json"
	bytes=$(size "$dir/trace.json")
	measure yajl "$bench" yajl "$dir/trace.json"
	measure trace "$build/fettle" probe --json "$dir/trace.json"
	show "PyTorch trace of $1 MB" "$bytes" trace
	show "yajl alone, nothing done with it" "$bytes" yajl
	goal "MB/s" "$(speed "$bytes" trace)" '>=' $GOAL_TRACE_MB_S
	require "speed over yajl's" "$(paste -d' ' "$dir/yajl" "$dir/trace" |
		awk '{ printf "%.2f", ($2 + $3) / ($6 + $7) }')" '>=' $MIN_YAJL_RATIO
	events=$(jq -s '[.[] | select(.labels.scope? == "trace" and .metric == "kernel_count") | .value] | add' "$dir/trace.out")
	# kernels are the most of what the device did: 64 MiB and 24 bytes each
	require "memory (KiB)" "$(cut -d' ' -f4 "$dir/trace")" '<=' $((64 * 1024 + events * 24 / 1024))
	if [ "$1" -gt 200 ] || [ -n "${NO_HTA:-}" ]; then
		:
	elif [ -n "$(bin HolisticTraceAnalysis)" ]; then
		against_hta "$dir/trace.json"
	else
		row "PyTorch trace of $1 MB, CPU" ms "$(cpu_ms trace)" "" "$(version HolisticTraceAnalysis)" "ratio>=$MIN_HTA_RATIO"
	fi
	rm "$dir/trace.json"
}

log() { # NAME PROBE FILE
	"$bench" repeat "$3" "$log_mb" >"$dir/log"
	measure text "$bench" read "$2" "$dir/log"
	show "$1" "$(size "$dir/log")" text
	goal "MB/s" "$(speed "$(size "$dir/log")" text)" '>=' $GOAL_LOG_MB_S
}

against_pandas() { # after log() of a Megatron log
	: >"$dir/pandas"
	rm -f "$dir/text"
	for _ in $(seq "${ROUNDS:-1}"); do
		timed text "$bench" read megatron "$dir/log"
		[ -z "$(bin pandas)" ] || timed pandas "$(bin pandas)/python" tests/bench/pandas_log.py "$dir/log"
	done
	[ ! -s "$dir/pandas" ] || ! grep -q '^0 ' "$dir/pandas.out" || { echo "pandas found no iteration" >&2; exit 1; }
	row "Megatron log of $log_mb MB, CPU" ms "$(cpu_ms text)" "$(cpu_ms pandas)" "$(version pandas)"
	row "the same, memory" MiB "$(mib text)" "$(mib pandas)" "$(version pandas)" 'fettle<=64'
}

nsys() {
	sqlite3 "$dir/nsys.sqlite" <<-'SQL'
		CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
		INSERT INTO StringIds VALUES (1, 'void gemm<float>(float *)'), (2, 'ncclDevKernel_AllReduce(x)'), (3, 'relu');
		CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER NOT NULL,
			contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
			demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL);
		CREATE TABLE NVTX_EVENTS(start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER);
		WITH RECURSIVE k(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM k WHERE i < 999999)
		INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i * 10000, i * 10000 + 8000 + i % 7 * 1000, 0, 1, 7 + i % 2, i,
			439 * 0x1000000, 1 + i % 3, 1 + i % 3, 128, 1 FROM k;
		WITH RECURSIVE k(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM k WHERE i < 99)
		INSERT INTO NVTX_EVENTS SELECT i * 100000000, (i + 1) * 100000000, 59, 'ProfilerStep#' || i, 439 * 0x1000000 + 439 FROM k;
	SQL
	measure nsys "$build/fettle" probe --json "$dir/nsys.sqlite"
	show "nsys export of a million kernels" "$(size "$dir/nsys.sqlite")" nsys
	goal "seconds" "$(awk '{ print $2 + $3 }' "$dir/nsys")" '<=' $GOAL_NSYS_S
}

if [ -r "$shared/lab-h200/trace.json.gz" ]; then
	gzip -dc "$shared/lab-h200/trace.json.gz" >"$dir/real.json"
else
	echo "no real trace in $shared: a small one of our own is repeated"
	cp "$fixtures/pytorch-trace.json" "$dir/real.json"
fi
trace "${TRACE_MB:-200}"
[ -z "${LONG:-}" ] || trace 1000
# In the fixtures every line is a record, several values in each: the worst that a log can be.
log "NCCL log of $log_mb MB, records only" nccl_log $fixtures/nccl-x2.log
log "Megatron log of $log_mb MB, records only" megatron $fixtures/megatron-old.txt
against_pandas
while read -r probe file; do
	log "the same of $probe" "$probe" "$fixtures/$file"
done <<-'DIALECTS'
	deepspeed deepspeed.txt
	torchtitan torchtitan-2026-rank-prefix.txt
	hf_trainer hf-trainer.txt
	nanogpt nanogpt.txt
	nemo nemo.txt
	lightning lightning.txt
	torchtune torchtune.txt
	llmc llmc.txt
	mllog mllog.txt
	metrics_jsonl metrics.jsonl
DIALECTS
if [ -r "$shared/samples/train-megatron/meg_gpt2_perf_n16-v100-pp.txt" ]; then
	log "NCCL log of $log_mb MB, of a job of 32 ranks" nccl_log \
		"$shared/samples/nccl-log/nccl-2.10.3-a100-4node-hfi1-no-gdr.txt"
	log "Megatron job's output of $log_mb MB" train_log "$shared/samples/train-megatron/meg_gpt2_perf_n16-v100-pp.txt"
fi
nsys
exit $failed
