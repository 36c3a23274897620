#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The workloads of the demo and of the tests do what they say: every other test believes them.

bats_require_minimum_version 1.5.0

setup_file() {
	export BUILD=${FETTLE_BUILD:-$BATS_TEST_DIRNAME/../../build/release}
	export DEMO=$BATS_TEST_DIRNAME/../../recipes/workloads/demo
	export DATA=$BATS_FILE_TMPDIR/data
	/usr/bin/python3 "$DEMO/make_dataset.py" --out "$DATA" --samples 320 --shards 3
	"$BUILD/recipes/workloads/mini/mini" --make-data "$BATS_FILE_TMPDIR/mini.data" --samples 256
}

setup() {
	PLANTED=$BUILD/tests/workloads/planted
	MINI=$BUILD/recipes/workloads/mini/mini
	MINI_DATA=$BATS_FILE_TMPDIR/mini.data
	unset FETTLE_METRICS FETTLE_CKPT_DIR PLANT_SPEED FETTLE_BLOCK FETTLE_SLOT FETTLE_ARM_INDEX
	export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
}

train() {
	/usr/bin/python3 "$DEMO/train.py" --data "$DATA" "$@"
}

# "step loss" of each step line
losses() {
	sed -n 's/^step \([0-9]*\) loss \([^ ]*\) .*/\1 \2/p' "$1"
}

@test "train.py prints a line and an object a step, with finite losses and times that add up" {
	FETTLE_METRICS=$BATS_TEST_TMPDIR/m train --steps 8 >"$BATS_TEST_TMPDIR/out"
	[ "$(grep -cE '^step [0-9]+ loss [0-9.]+ step_time_ms [0-9.]+ data_wait_ms [0-9.]+ throughput_samples_per_s [0-9.]+$' "$BATS_TEST_TMPDIR/out")" -eq 8 ]
	jq -es 'length == 8 and ([.[].step] == [range(1; 9)]) and all(.[];
		(.loss > 0 and .loss < 10) and .data_wait_ms > 0 and .data_wait_ms < .step_time_ms and
		((.throughput_samples_per_s * .step_time_ms / 1000 - 32) | fabs) < 1e-6 and
		((.data_wait_ratio * .step_time_ms - .data_wait_ms) | fabs) < 1e-6)' "$BATS_TEST_TMPDIR/m"
}

@test "train.py: the loss depends on the seed, and on no knob of the loader" {
	train --steps 12 >"$BATS_TEST_TMPDIR/a"
	train --steps 12 --num-workers 2 --prefetch-factor 3 --persistent-workers true --pin-memory >"$BATS_TEST_TMPDIR/b"
	train --steps 12 --seed 2 >"$BATS_TEST_TMPDIR/c"
	losses "$BATS_TEST_TMPDIR/a" >"$BATS_TEST_TMPDIR/la"
	[ "$(wc -l <"$BATS_TEST_TMPDIR/la")" -eq 12 ]
	# 320 samples are 10 steps: the order of the second epoch counts, too
	diff "$BATS_TEST_TMPDIR/la" <(losses "$BATS_TEST_TMPDIR/b")
	run ! diff -q "$BATS_TEST_TMPDIR/la" <(losses "$BATS_TEST_TMPDIR/c")
}

@test "train.py goes on from its checkpoint as if it had never stopped, over the end of an epoch" {
	mkdir "$BATS_TEST_TMPDIR/ckpt"
	train --steps 14 >"$BATS_TEST_TMPDIR/whole"
	train --steps 6 --ckpt-dir "$BATS_TEST_TMPDIR/ckpt" --save-every 3 >"$BATS_TEST_TMPDIR/first"
	train --steps 14 --ckpt-dir "$BATS_TEST_TMPDIR/ckpt" >"$BATS_TEST_TMPDIR/second"
	grep -q 'resumed from .* after step 6' "$BATS_TEST_TMPDIR/second"
	diff <(losses "$BATS_TEST_TMPDIR/whole") <(losses "$BATS_TEST_TMPDIR/first"; losses "$BATS_TEST_TMPDIR/second")
}

@test "train.py without --save-every leaves no checkpoint" {
	mkdir "$BATS_TEST_TMPDIR/ckpt"
	train --steps 2 --ckpt-dir "$BATS_TEST_TMPDIR/ckpt"
	[ -z "$(ls -A "$BATS_TEST_TMPDIR/ckpt")" ]
}

@test "make_dataset.py: same arguments, same bytes; damage and other arguments are told apart" {
	make() { /usr/bin/python3 "$DEMO/make_dataset.py" --samples 40 --shards 2 --out "$BATS_TEST_TMPDIR/$1" "${@:2}"; }
	make a
	make b
	diff -r "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
	run make a
	[ "$status" -eq 0 ]
	[[ $output == *"already in"* ]]
	run make a --seed 5
	[ "$status" -eq 1 ]
	[[ $output == *"its seed is 1, not 5"* ]]
	printf x | dd of="$BATS_TEST_TMPDIR/b/shard-001.bin" bs=1 seek=100 conv=notrunc status=none
	run make b --verify
	[ "$status" -eq 1 ]
	[[ $output == *"shard-001.bin has another SHA-256"* ]]
	mkdir "$BATS_TEST_TMPDIR/c"
	touch "$BATS_TEST_TMPDIR/c/mine"
	run make c
	[ "$status" -eq 1 ]
	[ -e "$BATS_TEST_TMPDIR/c/mine" ]
	[ -z "$(find "$BATS_TEST_TMPDIR" -name '*.tmp.*')" ]
}

# The GPT of the GPU campaigns, as small as it goes.
gpt() {
	local start=(/usr/bin/python3)
	[ "$1" != ranks ] || { start=("$BATS_TEST_DIRNAME/../workloads/ranks.py" 2 /usr/bin/python3) && shift; }
	"${start[@]}" "$DEMO/../gpt/train.py" --layers 1 --width 64 --context 32 --batch-size 4 --documents 64 --steps 6 "$@"
}

@test "gpt/train.py: its loss is the same whatever the loader, and learns" {
	FETTLE_METRICS=$BATS_TEST_TMPDIR/m gpt >"$BATS_TEST_TMPDIR/a"
	gpt --num-workers 2 --prefetch-factor 3 --pin-memory --read-loss-late >"$BATS_TEST_TMPDIR/b"
	jq -es 'length == 5 and ([.[].step] == [range(2; 7)]) and all(.[]; .data_wait_ms > 0 and .data_wait_ms < .step_time_ms and
		((.throughput_samples_per_s * .step_time_ms / 1000 - 4) | fabs) < 1e-6 and
		((.throughput_tokens_per_s / .throughput_samples_per_s - 32) | fabs) < 1e-6)' "$BATS_TEST_TMPDIR/m"
	losses "$BATS_TEST_TMPDIR/a" | head -4 >"$BATS_TEST_TMPDIR/la" # of the last step nobody reads the loss late
	[ "$(wc -l <"$BATS_TEST_TMPDIR/la")" -eq 4 ]
	diff "$BATS_TEST_TMPDIR/la" <(losses "$BATS_TEST_TMPDIR/b")
	gpt --cached-batches 1 --steps 30 --lr 0.01 | awk '{ if (!n++) first = $4; last = $4 } END { exit !(last < first / 2) }'
}

@test "gpt/train.py: two ranks average their gradients, checkpoints are whole, settings are taken" {
	gpt ranks --parallel ddp --cached-batches 4 --bucket-cap-mb 1 --gradient-as-bucket-view >"$BATS_TEST_TMPDIR/a"
	[ "$(losses "$BATS_TEST_TMPDIR/a" | wc -l)" -eq 5 ]
	mkdir "$BATS_TEST_TMPDIR/sync" "$BATS_TEST_TMPDIR/async"
	gpt --varied-lengths --recompute --save-every 4 --save-dir "$BATS_TEST_TMPDIR/sync"
	FETTLE_CKPT_DIR=$BATS_TEST_TMPDIR/async gpt --varied-lengths --recompute --save-every 4 --save-async
	/usr/bin/python3 -c '
import sys, torch
a, b = (torch.load(d + "/ckpt.pt") for d in sys.argv[1:])
assert a["step"] == b["step"] == 4 and all(torch.equal(a["model"][k], b["model"][k]) for k in a["model"])
' "$BATS_TEST_TMPDIR/sync" "$BATS_TEST_TMPDIR/async"
	run gpt --width 100
	[ "$status" -eq 2 ]
	[[ $output == *"--width must be a multiple of 64"* ]]
}

@test "mini learns, and its loss does not depend on the loader threads" {
	"$MINI" --data "$MINI_DATA" --steps 60 >"$BATS_TEST_TMPDIR/a"
	"$MINI" --data "$MINI_DATA" --steps 60 --loader-threads 3 --ahead 4 >"$BATS_TEST_TMPDIR/b"
	"$MINI" --data "$MINI_DATA" --steps 60 --seed 9 >"$BATS_TEST_TMPDIR/c"
	losses "$BATS_TEST_TMPDIR/a" >"$BATS_TEST_TMPDIR/la"
	diff "$BATS_TEST_TMPDIR/la" <(losses "$BATS_TEST_TMPDIR/b")
	run ! diff -q "$BATS_TEST_TMPDIR/la" <(losses "$BATS_TEST_TMPDIR/c")
	awk 'NR == 1 { first = $2 } END { exit !(NR == 60 && $2 < first / 3) }' "$BATS_TEST_TMPDIR/la"
}

@test "mini refuses a file that is no data set of its own" {
	head -c 5000 "$MINI_DATA" >"$BATS_TEST_TMPDIR/cut"
	run "$MINI" --data "$BATS_TEST_TMPDIR/cut"
	[ "$status" -eq 1 ]
	[[ $output == *"$BATS_TEST_TMPDIR/cut"* ]]
	run "$MINI" --data "$DEMO/train.py"
	[ "$status" -eq 1 ]
	[[ $output == *"not a data set of mini"* ]]
	run "$MINI" --batch 0
	[ "$status" -eq 2 ]
}

@test "planted: values are a fixed function of block, slot and arm, near to what is planted" {
	planted() { FETTLE_BLOCK=$1 FETTLE_SLOT=$2 FETTLE_ARM_INDEX=$3 "$PLANTED" --steps 20 --fixed --sleep-ms 0 "${@:4}"; }
	mean() { awk '{ s += $6 } END { printf "%.4f\n", s / NR }'; }
	[ "$(planted 3 1 0)" = "$(planted 3 1 0)" ]
	[ "$(planted 3 1 0)" != "$(planted 3 2 0)" ]
	[ "$(planted 3 1 0)" != "$(planted 3 1 1)" ]
	[ "$(planted 3 1 0)" != "$(planted 4 1 0)" ]
	# The mean over many blocks is the planted one, and the noise is that of --noise.
	for block in $(seq 60); do
		echo "$(planted "$block" 1 0 | mean) $(planted "$block" 2 1 --fast | mean) $(planted "$block" 3 2 --slow | mean)"
	done | awk '{ d = log($2 / $1); s += d; q += d * d; t += log($3 / $1) }
		END { n = NR; m = s / n; sd = sqrt((q - n * m * m) / (n - 1))
		      print exp(m), exp(t / n), sd
		      exit !(exp(m) > 0.74 && exp(m) < 0.76 && exp(t / n) > 1.285 && exp(t / n) < 1.315 &&
			     sd > 0.008 && sd < 0.025) }'
}

@test "planted: each knob does what is planted" {
	value() { "$PLANTED" --steps 1 --fixed --sleep-ms 0 --noise 0 "${@:2}" | awk -v f="$1" '{ print $f }'; }
	[ "$(value 6)" = 5.0000 ]
	[ "$(value 6 --fast)" = 3.7500 ]
	[ "$(value 6 --slow)" = 6.5000 ]
	[ "$(value 6 --loss-bias)" = 3.7500 ]
	[ "$(value 6 --null-a 3 --null-b x)" = 5.0000 ]
	[ "$(value 6 --drag 3)" = 5.1500 ]
	[ "$(value 6 --drag 0)" = 5.0000 ]
	[ "$(value 10 --batch 32)" = 6400.0000 ]
	[ "$(value 10 --batch 64)" = 8000.0000 ]
	[ "$(PLANT_SPEED=fast "$PLANTED" --steps 1 --fixed --sleep-ms 0 --noise 0 | head -1)" = "planted: PLANT_SPEED set by environment to fast" ]
	awk -v a="$(value 4 --loss-bias)" -v l="$(value 4)" 'BEGIN { exit !(a / l > 1.0999 && a / l < 1.1001) }'
}

@test "planted sleeps what it reports" {
	"$PLANTED" --steps 4 --work-ms 20 --noise 0 >"$BATS_TEST_TMPDIR/out"
	awk '$6 < 20 { exit 1 } END { exit NR != 4 }' "$BATS_TEST_TMPDIR/out"
}

@test "planted: faults" {
	quick() { "$PLANTED" --fixed --sleep-ms 0 --steps 4 "$@"; }
	run quick --exit 7 --fault-step 2
	[ "$status" -eq 7 ]
	[ "${#lines[@]}" -eq 2 ]
	run quick --crash
	[ "$status" -eq 139 ]
	run timeout 0.3 "$PLANTED" --fixed --hang --fault-step 1
	[ "$status" -eq 124 ]
	[ "${#lines[@]}" -eq 1 ]
	FETTLE_METRICS=$BATS_TEST_TMPDIR/m run quick --nan --fault-step 3
	[ "$status" -eq 0 ]
	[[ ${lines[3]} == "step 4 loss nan "* ]]
	grep -q '"step": 4, "loss": NaN,' "$BATS_TEST_TMPDIR/m"
	run quick --no-metric
	[ "${lines[0]}" = "step 1 done" ]
	run quick --silent
	[ -z "$output" ]
	[ "$(quick --print-gb 0.001 | wc -c)" -gt 1000000 ]
	TMPDIR=$BATS_TEST_TMPDIR quick --fill-disk 3
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/planted.fill")" -eq $((3 << 20)) ]
	run quick --no-such-option
	[ "$status" -eq 2 ]
}

@test "planted --fork-daemon leaves a process in a session of its own" {
	export FETTLE_PLANT_MARK=$BATS_TEST_TMPDIR
	"$PLANTED" --fixed --sleep-ms 0 --steps 1 --fork-daemon
	pid=
	for _ in $(seq 50); do
		for p in $(pgrep -x planted); do
			if tr '\0' '\n' 2>/dev/null <"/proc/$p/environ" | grep -qx "FETTLE_PLANT_MARK=$BATS_TEST_TMPDIR" &&
				[ "$(ps -o sid= -p "$p")" != "$(ps -o sid= -p $$)" ]; then pid=$p; fi
		done 2>/dev/null
		[ -z "$pid" ] || break
		sleep 0.1
	done
	[ -n "$pid" ]
	kill "$pid"
}

@test "planted resumes from its checkpoint, and from another one only if it has none" {
	export FETTLE_CKPT_DIR=$BATS_TEST_TMPDIR
	first() { "$PLANTED" --fixed --sleep-ms 0 --steps 5 --resume-ckpt "$@" | sed -n '2p'; }
	echo 'planted checkpoint after step 100' >"$BATS_TEST_TMPDIR/original"
	[[ $(first --resume-from "$BATS_TEST_TMPDIR/original") == "step 101 "* ]]
	[[ $(first --resume-from "$BATS_TEST_TMPDIR/original") == "step 106 "* ]]
	[ "$(cat "$BATS_TEST_TMPDIR/original")" = 'planted checkpoint after step 100' ]
	[ "$(cat "$BATS_TEST_TMPDIR/ckpt")" = 'planted checkpoint after step 110' ]
	"$PLANTED" --fixed --sleep-ms 0 --steps 5 --ckpt "$BATS_TEST_TMPDIR/original"
	[ "$(cat "$BATS_TEST_TMPDIR/original")" = 'planted checkpoint after step 105' ]
}

@test "planted: --cpu computes instead of sleeping" {
	"$PLANTED" --cpu --steps 3 --drag 3 | awk '$5 == "step_time_ms" && $6 > 0 { n++ } END { exit n != 3 }'
}
