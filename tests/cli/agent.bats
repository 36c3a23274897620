#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# fettle-agent on this machine: what it records, and that it bounds and cleans up whatever a workload does.
# shellcheck disable=SC2016 # $ in the workloads is for their own shell

bats_require_minimum_version 1.5.0

setup() {
	AGENT=${FETTLE_BUILD:-$BATS_TEST_DIRNAME/../../build/release}/fettle-agent
	B=$BATS_TEST_TMPDIR/block
	MARK=agentbats$$x$BATS_TEST_NUMBER # in the arguments of what must not survive
	mkdir -p "$B"
}

teardown() {
	[ -z "${C:-}" ] || rmdir "$C"
	# nothing of any test may be left, whatever it was about
	run ! pgrep -f "$MARK"
}

# block PROGRAM [JQ FILTER]: one arm that runs PROGRAM in sh, one slot; the filter changes the rest.
block() {
	jq -n --arg p "$1" --arg d "$BATS_TEST_TMPDIR" '{format: "fettle.block/1", token: "fettle:1f3a9c02:a9",
		block: 17, attempt: 1, window: {}, limits: {trial_s: 30, log_bytes: 1048576, grace_s: 1}, launch: [],
		workdir: $d, env: {PATH: "/usr/bin:/bin", HOME: $d}, secrets: [], evidence: {env_prefixes: ["NCCL_"]},
		arms: [{arm: 41, argv: ["sh", "-c", $p], env: {A: "1"}, unset: []}],
		slots: [{slot: 0, arm: 41, repeat: 0, kind: "timed"}]} | '"${2:-.}" >"$B/block.json"
}

# t QUERY: from the record of slot 0
t() {
	jq -r "$1" "$B/t00.json"
}

steps='i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.05; done'

@test "usage: no directory is status 2, --version and --check answer" {
	run "$AGENT"
	[ "$status" -eq 2 ]
	run "$AGENT" --version
	[ "$status" -eq 0 ]
	[[ $output == 'fettle-agent '* ]]
	run "$AGENT" --check
	[ "$status" -eq 0 ]
	[[ $output == *'ok subreaper: '* ]]
	[[ $output == *'ok proc: '* ]]
}

@test "a measured window ends the trial, and times and steps are recorded" {
	block "$steps" '.window = {pattern: "^step [0-9]+$", source: "out", warmup: 3, steps: 5}'
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	[ "$(t .ended_by)" = window ]
	[ "$(t '.steps_seen >= 8')" = true ]
	[ "$(t '.start_us < .window_start_us and .window_start_us < .window_end_us')" = true ]
	[ "$(t '(.window_end_us - .window_start_us) >= 250000')" = true ] # 5 steps of at least 50 ms
	[ "$(t '.ranks[0].env.A')" = 1 ]
	[ "$(t '.ranks[0].argv[0]')" = sh ]
	[ "$(t '.ranks_seen')" = 1 ]
	[ "$(t '.out.bytes')" = "$(stat -c %s "$B/t00/out")" ]
	[ "$(t '.nodes | length')" = 1 ]
	[ "$(jq -r .state "$B/done.json")" = complete ]
	[ "$(jq -r .slots[0].slot "$B/done.json")" = 0 ]
	[ "$(jq -r .token "$B/claim.json")" = fettle:1f3a9c02:a9 ]
	[ "$(stat -c %a "$B/t00.json" "$B/done.json" "$B/t00" | sort -u | tr '\n' ' ')" = '600 700 ' ]
}

@test "steps are counted in metrics.jsonl too, even when the key is written in pieces" {
	block 'i=0; while :; do i=$((i + 1)); printf "{\"st" >>$FETTLE_METRICS; sleep 0.02; printf "ep\":$i,\"loss\":2}\n" >>$FETTLE_METRICS
		echo "{\"other\":1}" >>$FETTLE_METRICS; done' '.window = {source: "metrics", warmup: 2, steps: 4}'
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	[ "$(t '.steps_seen >= 6 and .steps_seen <= 8')" = true ]
	[ "$(t '.metrics.bytes')" = "$(stat -c %s "$B/t00/metrics.jsonl")" ]
}

@test "the trial has its own directories, port and environment, and nothing else" {
	block 'env; touch "$FETTLE_CKPT_DIR/c" "$TMPDIR/x" "$XDG_CACHE_HOME/y" && echo all three; pwd' '.arms[0].env.WANDB_MODE = "online"
		| .env.DROP = "1" | .arms[0].unset = ["DROP", "HF_HUB_OFFLINE"]'
	FOREIGN=1 run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	grep -qx 'all three' "$B/t00/out"
	# what a trial keeps for itself goes with it; its results stay
	[ "$(ls "$B/t00")" = "$(printf '%s\n' out out.idx)" ]
	grep -qx "FETTLE_METRICS=$B/t00/metrics.jsonl" "$B/t00/out"
	grep -qx "FETTLE_SLOT=0" "$B/t00/out"
	grep -qx "FETTLE_ARM_INDEX=0" "$B/t00/out"
	grep -qx "FETTLE_BLOCK=17" "$B/t00/out"
	grep -qx "FETTLE_TRIAL=fettle:1f3a9c02:a9:0" "$B/t00/out"
	grep -Eqx "MASTER_PORT=[0-9]+" "$B/t00/out"
	grep -qx "WANDB_MODE=online" "$B/t00/out"
	grep -qx "$BATS_TEST_TMPDIR" "$B/t00/out"
	run ! grep -Eq '^(FOREIGN|DROP|HF_HUB_OFFLINE)=' "$B/t00/out"
}

@test "a checkpoint of one trial is not seen by the next" {
	block 'ls "$FETTLE_CKPT_DIR" | wc -l; touch "$FETTLE_CKPT_DIR/last.pt"' \
		'.slots = [range(3) | {slot: ., arm: 41}]'
	"$AGENT" "$B"
	[ "$(cat "$B"/t0?/out | tr -d '\n')" = 000 ]
}

@test "a workload that hangs is ended at its limit, which is no success" {
	block "echo start; exec -a $MARK sleep 600" '.arms[0].argv[0] = "bash" | .limits.trial_s = 1'
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = failed ]
	[ "$(t .ended_by)" = time ]
	[ "$(t .reason)" = 'ran longer than 1 s (hung?)' ]
	[ "$(jq -r .state "$B/done.json")" = complete ]
}

@test "one that ignores SIGTERM is killed after its grace" {
	block "trap '' TERM; echo step; while :; do sleep 0.1; : $MARK; done" \
		'.window = {pattern: "step", warmup: 0, steps: 1}'
	run "$AGENT" "$B"
	[ "$(t .state)" = ok ]
	[ "$(t .signal)" = 9 ]
	[ "$(t .cleaned)" = true ]
}

@test "daemons are found and ended, though they left session, parent and environment" {
	block "(setsid bash -c 'exec -a $MARK.a sleep 600' & ) ; (setsid env -i bash -c 'exec -a $MARK.b sleep 600' &)
		sleep 0.3; exit 0" '.arms[0].argv[0] = "bash"'
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	[ "$(t .leftovers)" = 2 ]
	[ "$(t .cleaned)" = true ]
	run ! pgrep -f "$MARK"
}

@test "a daemon that holds the output open does not keep the trial" {
	block "setsid bash -c 'trap \"\" TERM; exec -a $MARK sleep 600' & echo done" '.arms[0].argv[0] = "bash"'
	run timeout 20 "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .leftovers)" = 1 ]
	[ "$(cat "$B/t00/out")" = "done" ]
}

@test "files left in /dev/shm are removed, those in use elsewhere and older ones are not" {
	touch "/dev/shm/$MARK.old"
	(exec 9>"/dev/shm/$MARK.none"; sleep 5) 3>&- & # created by somebody else of our user, and open
	block "echo x >/dev/shm/$MARK.mine; exec 8>/dev/shm/$MARK.held"
	touch -d '1 hour ago' "/dev/shm/$MARK.old"
	"$AGENT" "$B"
	kill %1
	[ ! -e "/dev/shm/$MARK.mine" ] && [ ! -e "/dev/shm/$MARK.held" ]
	[ -e "/dev/shm/$MARK.old" ] && [ -e "/dev/shm/$MARK.none" ]
	rm -f "/dev/shm/$MARK".*
	[ "$(t .shm_removed)" = 2 ]
}

@test "a gigabyte of output is kept within its bound: head, marker, tail" {
	block 'echo first; head -c 1000000000 /dev/zero | tr "\0" "x" | fold -w 100; echo; echo last'
	run timeout 120 "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	[ "$(t .out.cut)" = true ]
	[ "$(t '.out.total_bytes > 1000000000')" = true ]
	[ "$(stat -c %s "$B/t00/out")" -le 1048700 ]
	[ "$(head -n 1 "$B/t00/out")" = first ]
	[ "$(tail -n 1 "$B/t00/out")" = last ]
	[ "$(grep -c '^\[fettle: [0-9]* bytes cut here\]$' "$B/t00/out")" = 1 ]
	[ "$(wc -c <"$B/t00/out.idx")" -lt 20000 ]
	[ "$(t .out.bytes)" = "$(stat -c %s "$B/t00/out")" ]
}

@test "the step before a gigabyte and the one behind it are counted" {
	block 'echo "step 1"; head -c 200000000 /dev/zero | tr "\0" "x" ; echo; echo "step 2"; sleep 20' \
		'.window = {pattern: "^step", warmup: 1, steps: 1}'
	run timeout 60 "$AGENT" "$B"
	[ "$(t .state)" = ok ]
	[ "$(t .ended_by)" = window ]
	[ "$(t .steps_seen)" = 2 ]
}

@test "one that fills the disk is ended at its limit" {
	block "while :; do head -c 4000000 /dev/zero >>\$FETTLE_TRIAL_DIR/work/big; sleep 0.02; : $MARK; done" \
		'.limits.work_bytes = 20000000'
	run timeout 60 "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = failed ]
	[ "$(t .ended_by)" = disk ]
	[ "$(t .reason)" = 'wrote more than 20000000 bytes into its directory' ]
}

@test "a command that is not there is named with its PATH" {
	block '' '.arms[0].argv = ["pyhton3", "train.py"]'
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = failed ]
	[ "$(t .reason)" = 'command not found: pyhton3 (PATH=/usr/bin:/bin)' ]
	[ "$(jq -r .state "$B/done.json")" = complete ]
}

@test "exit status, signal and last line stand in the reason" {
	block 'echo "CUDA error: out of memory" >&2; exit 7'
	"$AGENT" "$B"
	[ "$(t '.state, .exit' | tr '\n' ' ')" = 'failed 7 ' ]
	[ "$(t .reason)" = 'exited with 7; its last line: "CUDA error: out of memory"' ]
	rm -r "$B" && mkdir "$B"
	block 'echo dying; kill -SEGV $$'
	"$AGENT" "$B"
	[ "$(t '.state, .signal' | tr '\n' ' ')" = 'failed 11 ' ]
	[[ $(t .reason) == 'killed by signal 11 (Segmentation fault); its last line: "dying"' ]]
}

# A memory cgroup of our own, of either version, where there may be one.
memory_cgroup() {
	for c in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		C=$c/$MARK
		mkdir "$C" 2>/dev/null || continue
		if echo 67108864 2>/dev/null >"$C/memory.limit_in_bytes" || echo 67108864 2>/dev/null >"$C/memory.max"; then
			echo 67108864 2>/dev/null >"$C/memory.memsw.limit_in_bytes" || echo 0 2>/dev/null >"$C/memory.swap.max" || true
			return 0
		fi
		rmdir "$C"
	done
	return 1
}

@test "out of host memory is named, whoever launched the process that was killed" {
	memory_cgroup || skip "no memory cgroup can be made here"
	inside() { sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" "$3"' inside "$C" "$AGENT" "$B"; }
	hog='exec perl -e "\$x = q(x) x 1000000000"'
	block "$hog"
	inside
	[[ $(t .reason) == 'killed by signal 9 (Killed): out of host memory: the kernel killed 1 process '* ]]
	rm -r "$B" && mkdir "$B"
	block "($hog) || exit 3"
	inside
	[[ $(t .reason) == 'exited with 3: out of host memory: the kernel killed 1 process of its cgroup'* ]]
	rm -r "$B" && mkdir "$B"
	block 'kill -KILL $$'
	inside
	[ "$(t .reason)" = 'killed by signal 9 (Killed)' ]
}

@test "one that ends by itself before its window is full has failed" {
	block 'echo step; echo step' '.window = {pattern: "step", warmup: 2, steps: 10}'
	"$AGENT" "$B"
	[ "$(t .state)" = failed ]
	[ "$(t .reason)" = 'ended after 2 of 12 steps' ]
}

@test "NaN is no matter of the agent: the raw lines are kept" {
	block 'echo "{\"step\":1,\"loss\":NaN}" >>$FETTLE_METRICS' '.window = {source: "metrics", warmup: 0, steps: 1}'
	"$AGENT" "$B"
	[ "$(t .state)" = ok ]
	[ "$(cat "$B/t00/metrics.jsonl")" = '{"step":1,"loss":NaN}' ]
}

@test "a second agent on the same block does nothing" {
	block 'echo run >>count'
	"$AGENT" "$B"
	sum=$(cat "$B"/*.json | cksum)
	run "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[[ $output == *'claimed already'* ]]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/count")" -eq 1 ]
	[ "$(cat "$B"/*.json | cksum)" = "$sum" ]
}

@test "two agents at once: one runs it" {
	block 'echo run >>count; sleep 0.2'
	"$AGENT" "$B" 3>&- &
	"$AGENT" "$B" 3>&-
	wait
	[ "$(wc -l <"$BATS_TEST_TMPDIR/count")" -eq 1 ]
}

@test "kill -9 of the agent leaves no process of the trial and no done.json" {
	block "(setsid bash -c 'exec -a $MARK.a sleep 600' &); bash -c 'exec -a $MARK.b sleep 600' &
		exec -a $MARK.c sleep 600" '.arms[0].argv[0] = "bash" | .sampler = {period_ms: 100}'
	"$AGENT" "$B" 3>&- &
	agent=$!
	for _ in $(seq 100); do [ "$(pgrep -fc "$MARK.[abc]")" -ge 3 ] && break; sleep 0.1; done
	[ "$(pgrep -fc "$MARK.[abc]")" -ge 3 ]
	kill -9 $agent
	for _ in $(seq 100); do pgrep -f "$MARK" >/dev/null || break; sleep 0.1; done
	run ! pgrep -f "$MARK"
	[ ! -e "$B/done.json" ]
	[ ! -e "$B/t00.json" ]
}

@test "TERM ends the trial and leaves a partial attempt, status 3" {
	block "exec -a $MARK sleep 600" '.arms[0].argv[0] = "bash" | .slots = [range(3) | {slot: ., arm: 41}]'
	"$AGENT" "$B" 3>&- &
	agent=$!
	for _ in $(seq 100); do pgrep -f "$MARK" >/dev/null && break; sleep 0.1; done
	kill $agent
	rc=0
	wait $agent || rc=$?
	[ "$rc" -eq 3 ]
	[ "$(jq -r '.state, (.slots | length)' "$B/done.json" | tr '\n' ' ')" = 'partial 1 ' ]
	[[ $(jq -r .reason "$B/done.json") == *'told to stop (Terminated)'* ]]
	[ "$(t .state)" = void ]
}

@test "no slot starts after the deadline" {
	block 'sleep 1.5' '.slots = [range(3) | {slot: ., arm: 41}] | .deadline_us = ((now + 1) * 1000000 | floor)'
	run "$AGENT" "$B"
	[ "$status" -eq 3 ]
	[ "$(jq -r '.state, .reason' "$B/done.json" | tr '\n' ' ')" = 'partial the deadline has passed ' ]
	[ -e "$B/t00.json" ] && [ ! -e "$B/t02.json" ]
}

@test "secrets reach the workload and no file of the agent" {
	echo 'API_TOKEN=from-the-file-4711' >"$BATS_TEST_TMPDIR/secrets"
	chmod 600 "$BATS_TEST_TMPDIR/secrets"
	block 'test "$WANDB_API_KEY" = hunter2-secret && test "$API_TOKEN" = from-the-file-4711 || exit 9; sleep 0.5
		echo "bad key $WANDB_API_KEY" ; exit 1' '.secrets = ["WANDB_API_KEY", "API_TOKEN", "ABSENT"]
		| .evidence.env_prefixes = ["WANDB", "API"]'
	WANDB_API_KEY=hunter2-secret FETTLE_SECRETS=$BATS_TEST_TMPDIR/secrets "$AGENT" "$B"
	[ "$(t .exit)" = 1 ]
	run ! grep -l 'hunter2-secret\|from-the-file-4711' "$B"/t00.json "$B"/done.json "$B"/claim.json
	[ "$(t '.ranks[0] | has("env")')" = true ]
	[ "$(t '.ranks[0].env, .ranks[0].env_other | has("WANDB_API_KEY")' | sort -u)" = false ]
	[[ $(t .reason) == *'bad key ***'* ]]
}

@test "a file of secrets that others can read is refused" {
	echo 'K=v' >"$BATS_TEST_TMPDIR/secrets"
	chmod 644 "$BATS_TEST_TMPDIR/secrets"
	block 'true' '.secrets = ["K"]'
	FETTLE_SECRETS=$BATS_TEST_TMPDIR/secrets run "$AGENT" "$B"
	[ "$status" -eq 4 ]
	[[ $output == *'can be read by others: chmod 600'* ]]
	[ ! -e "$B/claim.json" ]
}

@test "samples are whole lines of the documented sources" {
	block 'sleep 0.6' '.sampler = {period_ms: 100}'
	"$AGENT" "$B"
	[ "$(grep -Evc '^[0-9]{16} (hz|ncpu|clock|stat|procs|mem|psi|disk|net|ib|tree|self) [^ ]' "$B/samples")" = 0 ]
	[ "$(grep -c ' tree ' "$B/samples")" -ge 3 ]
	grep -Eq '^[0-9]+ tree [1-9][0-9]* ' "$B/samples"
	[[ $(jq -r .samples_xxh "$B/done.json") =~ ^[0-9a-f]{32}$ ]]
}

@test "a dcgm-exporter is scraped beside the samples; a node says its switches" {
	mkdir "$BATS_TEST_TMPDIR/www"
	cp "$BATS_TEST_DIRNAME/../fixtures/probes/dcgm-exporter.prom" "$BATS_TEST_TMPDIR/www/metrics"
	/usr/bin/python3 -u -m http.server --bind 127.0.0.1 --directory "$BATS_TEST_TMPDIR/www" 0 >"$BATS_TEST_TMPDIR/port" 2>/dev/null 3>&- &
	server=$!
	until port=$(grep -o 'port [0-9]*' "$BATS_TEST_TMPDIR/port"); do sleep 0.05; done
	# until the answer is there, whatever this machine is busy with
	block 'until grep -qs . dcgm.prom; do sleep 0.05; done' \
		".workdir = \"$B\" | .sampler = {period_ms: 100, dcgm_exporter: \"http://localhost:${port#port }/metrics\"}"
	SLURM_TOPOLOGY_ADDR=s0.s3.n17 SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node SLURMD_NODENAME=n17 run "$AGENT" "$B"
	kill $server
	[ "$status" -eq 0 ]
	head -n 1 "$B/dcgm.prom" | grep -Eqx '# [0-9]{10}\.[0-9]{6}'
	grep -q '^DCGM_FI_' "$B/dcgm.prom"
	[ "$(jq -r .switches.n17 "$B/done.json")" = s0.s3 ]
	[ "$(t '.ranks[0].node')" = n17 ]
}

@test "ranks are told apart by their own RANK; workers that inherit it are not ranks" {
	cat >"$BATS_TEST_TMPDIR/launch.sh" <<-'END'
		for r in 0 1; do
			WORLD_SIZE=2 RANK=$r bash -c 'sleep 600 & sleep 600 & while :; do sleep 0.05; done' &
		done
		sleep 0.4; while :; do echo step; sleep 0.1; done
	END
	block '' ".arms[0].argv = [\"bash\", \"$BATS_TEST_TMPDIR/launch.sh\"]
		| .window = {pattern: \"step\", warmup: 1, steps: 2}"
	"$AGENT" "$B"
	[ "$(t '[.ranks[] | select(.rank >= 0) | .rank] | sort | tojson')" = '[0,1]' ]
	[ "$(t .ranks_seen)" = 2 ]
	[ "$(t .ranks_expected)" = 2 ]
	[ "$(t '[.ranks[] | select(.rank == -1)] | length')" = 1 ]
}

@test "a launcher that outlives its ranks does not stand for them" {
	cat >"$BATS_TEST_TMPDIR/launch.sh" <<-'END'
		for r in 0 1; do WORLD_SIZE=2 RANK=$r bash -c 'sleep 1.5; :' & done
		wait
		sleep 4; echo cleaned up
	END
	block '' ".arms[0].argv = [\"bash\", \"$BATS_TEST_TMPDIR/launch.sh\"]"
	"$AGENT" "$B"
	[ "$(t '[.ranks[] | select(.rank >= 0) | .rank] | sort | tojson')" = '[0,1]' ]
	[ "$(t .ranks_seen)" = 2 ]
	cat >"$BATS_TEST_TMPDIR/launch.sh" <<-'END'
		timeout 60 bash -c 'sleep 1.5; :'
		sleep 4; echo cleaned up
	END
	rm -r "$B"; mkdir "$B"
	block '' ".arms[0].argv = [\"bash\", \"$BATS_TEST_TMPDIR/launch.sh\"]"
	"$AGENT" "$B"
	[ "$(t '.ranks[0].argv[1]')" = -c ]
}

@test "several blocks in one allocation run in the order given" {
	block 'echo a >>order'
	mkdir "$BATS_TEST_TMPDIR/b2"
	sed 's/echo a/echo b/; s/"block": 17/"block": 18/' "$B/block.json" >"$BATS_TEST_TMPDIR/b2/block.json"
	"$AGENT" "$BATS_TEST_TMPDIR/b2" "$B"
	[ "$(tr -d '\n' <"$BATS_TEST_TMPDIR/order")" = ba ]
	[ -e "$B/done.json" ] && [ -e "$BATS_TEST_TMPDIR/b2/done.json" ]
}

@test "a broken block.json is named by file and key, and claims nothing" {
	block 'true' '.slots[0].arm = 42'
	run "$AGENT" "$B"
	[ "$status" -eq 4 ]
	[[ $output == *"$B/block.json: slots[0].arm: 42 is not one of arms"* ]]
	echo '{"format": ' >"$B/block.json"
	run "$AGENT" "$B"
	[ "$status" -eq 4 ]
	[[ $output == *"$B/block.json: not JSON"* ]]
	[ ! -e "$B/claim.json" ]
	block 'true' '.window = {pattern: "(", warmup: 1, steps: 1}'
	run "$AGENT" "$B"
	[[ $output == *'window.pattern "("'* ]]
}

@test "a workload may print any bytes: records stay JSON" {
	block 'printf "caf\351 \377\376 \001 end"; exit 3'
	"$AGENT" "$B"
	[ "$(t .exit)" = 3 ]
	[[ $(t .reason) == *' end"' ]]
}

@test "a launcher that fails before the workload starts is tried again, and is no fault of the arm" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/srun" <<-END
		#!/bin/sh
		echo x >>$BATS_TEST_TMPDIR/tries
		if [ \$(wc -l <$BATS_TEST_TMPDIR/tries) -lt \$FAIL_UNTIL ]; then
			echo 'srun: error: Unable to confirm allocation for job 5: Socket timed out' >&2
			exit 1
		fi
		exec "\$@"
	END
	chmod +x "$BATS_TEST_TMPDIR/bin/srun"
	block 'echo hello' '.launch = ["srun"] | .env.PATH = env.BATS_TEST_TMPDIR + "/bin:/usr/bin:/bin" | .env.FAIL_UNTIL = "2"'
	"$AGENT" "$B"
	[ "$(t .state)" = ok ]
	[ "$(cat "$B/t00/out")" = hello ]
	rm -r "$B" "$BATS_TEST_TMPDIR/tries" && mkdir "$B"
	block 'echo hello' '.launch = ["srun"] | .env.PATH = env.BATS_TEST_TMPDIR + "/bin:/usr/bin:/bin" | .env.FAIL_UNTIL = "9"'
	"$AGENT" "$B"
	[ "$(t .state)" = void ]
	[[ $(t .reason) == 'the launcher did not start the workload: exited with 1;'*'Unable to confirm allocation'* ]]
	[ "$(wc -l <"$BATS_TEST_TMPDIR/tries")" -eq 3 ]
}

@test "a full disk under the agent's own files is no fault of the arm" {
	mkdir "$B/t00"
	ln -s /dev/full "$B/t00/out"
	block 'echo hello; sleep 5'
	"$AGENT" "$B"
	[ "$(t .state)" = void ]
	[ "$(t .ended_by)" = io ]
	[[ $(t .reason) == *'No space left on device'* ]]
}

@test "a record that cannot be written makes the attempt partial" {
	ln -s /dev/full "$B/t01.json.tmp"
	block 'echo hello' '.slots = [range(3) | {slot: ., arm: 41}]'
	run "$AGENT" "$B"
	[ "$status" -eq 3 ]
	[ "$(jq -r '.state, (.slots | length)' "$B/done.json" | tr '\n' ' ')" = 'partial 1 ' ]
	[[ $(jq -r .reason "$B/done.json") == *'t01.json: No space left on device' ]]
}

@test "a dcgm-exporter that never answers is not asked again and again" {
	/usr/bin/python3 -u -c 'import socket
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
kept = []
while True:
	kept.append(s.accept())
	print("asked", flush=True)' >"$BATS_TEST_TMPDIR/said" 2>/dev/null 3>&- &
	server=$!
	until [ -s "$BATS_TEST_TMPDIR/said" ]; do sleep 0.05; done
	block 'sleep 1.6' ".sampler = {period_ms: 100, dcgm_exporter: \"http://localhost:$(head -n 1 "$BATS_TEST_TMPDIR/said")/metrics\"}"
	run "$AGENT" "$B"
	kill $server
	[ "$status" -eq 0 ]
	[ "$(grep -c asked "$BATS_TEST_TMPDIR/said")" -eq 1 ]
}

@test "an nvidia-smi that hangs does not keep the attempt" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/nvidia-smi" <<-END
		#!/bin/bash
		trap '' TERM
		[ "\$1" = -q ] && exit 9
		while :; do read -rt 1 _ <> <(:); : $MARK; done
	END
	chmod +x "$BATS_TEST_TMPDIR/bin/nvidia-smi"
	block 'sleep 0.2' '.sampler = {period_ms: 100}'
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run timeout -k 1 30 "$AGENT" "$B"
	[ "$status" -eq 0 ]
	[ "$(t .state)" = ok ]
	run ! pgrep -f "$BATS_TEST_TMPDIR/bin/nvidia-smi"
}

@test "GPU samples come from nvidia-smi where there is one, and it is ended with the attempt" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/nvidia-smi" <<-END
		#!/bin/bash
		echo "\$*" >$BATS_TEST_TMPDIR/asked
		echo 'timestamp, index, utilization.gpu [%]'
		while :; do echo '2026/11/29 11:30:29.855, 0, 97 %'; sleep 0.05; : $MARK; done
	END
	chmod +x "$BATS_TEST_TMPDIR/bin/nvidia-smi"
	block 'sleep 0.5' '.sampler = {period_ms: 100}'
	PATH=$BATS_TEST_TMPDIR/bin:$PATH "$AGENT" "$B"
	[ "$(head -n 1 "$B/gpu.csv")" = 'timestamp, index, utilization.gpu [%]' ]
	[ "$(wc -l <"$B/gpu.csv")" -ge 3 ]
	[[ $(cat "$BATS_TEST_TMPDIR/asked") == '--query-gpu=timestamp,index,'*'--format=csv -lms 100' ]]
	[ "$(t .leftovers)" = 0 ] # it is ours, not the trial's
	run ! pgrep -f "$BATS_TEST_TMPDIR/bin/nvidia-smi"
}
