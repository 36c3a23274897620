# SPDX-License-Identifier: GPL-2.0-or-later
# Scheduler `slurm` against real daemons; with FETTLE_WAY=slurm_cli and --filter-tags '!helper' the other way to them.
bats_require_minimum_version 1.5.0

# The job that the last test finds forgotten: MinJobAge passes meanwhile.
setup_file() {
	sbatch --parsable -o /dev/null --wrap true >"$BATS_FILE_TMPDIR/forgotten"
	for ((i = 0; i < 1200; i++)); do
		[ -n "$(squeue -h)" ] || break
		sleep 0.1
	done
}

setup() {
	load common
	answer=
	drive_start
}

teardown() {
	drive_stop
	scontrol delete reservation=tuning 2>/dev/null
	end_all_jobs
	cluster wait
}

@test "the cluster is there" {
	say capacity
	expect 'ok 4 4 4 Slurm *, cluster fettle, partition tune: 4 of 4 nodes idle, 0 down or drained, at most 120 min'
}

@test "submit, run, done: the agent's records are there" {
	dir=$(new_block 'echo hello; env' 2)
	submit "$(new_token)" "$dir" nodes=2 cpus=2
	say until ended 120 "$id"
	expect "$id ended ok 0 n?,n? COMPLETED"
	[ "$(jq -r .state "$dir/done.json")" = complete ]
	[ "$(jq -r .job "$dir/claim.json")" = "$id" ]
	grep -qx hello "$dir/t00/out"
	# the trial gets the environment of its block, not one of Slurm's making
	[ "$(grep -c FETTLE_TEST= "$dir/t00/out")" -eq 0 ]
}

@test "the job is what was asked for" {
	dir=$(new_block 'sleep 300')
	token=$(new_token)
	submit "$token" "$dir" nodes=2 tasks=2 time=61 mem=500 exclude=n[1-2] nodelist=n3
	say until running 120 "$id"
	begun "$dir"
	run scontrol show job "$id"
	echo "$output"
	for what in "JobName=$token" 'NodeList=n[3-4]' NumNodes=2 NumTasks=4 TimeLimit=00:02:00 Requeue=0 \
		OverSubscribe=NO NumCPUs=4 "WorkDir=$dir" "StdOut=$dir/agent.out"; do
		grep -qwF -- "$what" <<<"$output" || { echo "no $what"; return 1; }
	done
	# exactly what the request named, and the way back to this cluster
	agent=$(pgrep -o -f "^$(readlink -f "$AGENT") $dir\$")
	tr '\0' '\n' <"/proc/$agent/environ" >"$BATS_TEST_TMPDIR/env"
	grep -qx FETTLE_TEST=1 "$BATS_TEST_TMPDIR/env"
	grep -qx "SLURM_CONF=$SLURM_CONF" "$BATS_TEST_TMPDIR/env"
	[ "$(grep -c '^BATS_' "$BATS_TEST_TMPDIR/env")" -eq 0 ]
}

# The fields of `scontrol show job ID`, one a line, hold each of the others (newer releases write "gres/gpu:" or "gres/gpu=" for "gres:gpu:").
shows() {
	local job
	job=$(scontrol show job "$1" | tr -s ' ' '\n' | sed 's,gres/gpu[:=],gres:gpu:,g')
	shift
	for what in "$@"; do
		grep -qxF -- "$what" <<<"$job" || { echo "no $what"; scontrol show job "$id"; return 1; }
	done
}

@test "what sbatch can be asked for, a job can: scontrol has it" {
	dir=$(new_block true)
	scontrol create reservation reservationname=tuning starttime=now duration=30 nodes=n3 users="$(id -un)" >/dev/null
	submit "$(new_token)" "$dir" partition=short begin=now+1hour deadline=now+3hours time=300 nice=77 comment=why \
		licenses=matlab:2 switches=1@2 mail_type=END,FAIL mail_user=me@example.org account=vision \
		constraint=plain mem_mib_per_cpu=100 cpus=2 nodes=2
	first=$id
	shows "$first" Partition=short Account=vision Comment=why Licenses=matlab:2 "Switches=1@00:02:00" \
		MailUser=me@example.org MailType=END,FAIL Features=plain MinMemoryCPU=100M CPUs/Task=2 Nice=77 \
		TimeLimit=00:05:00 JobState=PENDING
	begin=$(scontrol show job "$first" | sed -n 's/.*EligibleTime=//p')
	[ $(($(date -d "${begin%% *}" +%s) - $(date +%s))) -gt 3000 ]
	deadline=$(scontrol show job "$first" | sed -n 's/.*Deadline=//p')
	[ $(($(date -d "${deadline%% *}" +%s) - $(date +%s))) -gt 10000 ]
	submit "$(new_token)" "$dir" dependency="afterok:$first" gres=gpu:1 reservation=tuning constraint=fast
	shows "$id" "Dependency=afterok:$first(unfulfilled)" Reservation=tuning TresPerNode=gres:gpu:1
	say cancel "$id"
	submit "$(new_token)" "$dir" gpus_per_task=1 cpus_per_gpu=1 mem_mib_per_gpu=300 begin=now+1hour
	shows "$id" TresPerTask=gres:gpu:1 CpusPerTres=gres:gpu:1 MemPerTres=gres:gpu:300
	say cancel "$id"
	submit "$(new_token)" "$dir" gpus=2 begin=now+1hour
	shows "$id" TresPerJob=gres:gpu:2
	scancel "$first" "$id"
}

# bats test_tags=helper
@test "paths with blanks, quotes and percent signs" {
	odd="$BATS_TEST_TMPDIR/it's 100%j \$HOME"
	mkdir "$odd"
	mv "$(new_block 'echo hello')"/block.json "$odd"
	job=$(jq -cn --arg d "$odd" --arg a "$AGENT" '{id: 2, op: "submit", job: {token: "fettle:odd:a1", agent: $a, block_dirs: [$d],
		workdir: $d, output: ($d + "/agent.out"), env: ["PATH=/usr/bin:/bin"], nodes: 1, time_limit_s: 60}}')
	run --separate-stderr "$HELPER" < <(echo '{"id":1,"op":"hello"}'; echo "$job")
	id=$(jq -r 'select(.id == 2).job' <<<"$output")
	say until ended 120 "$id"
	expect "$id ended ok 0 *"
	[ -f "$odd/done.json" ]
	[ -f "$odd/agent.out" ]
}

@test "somebody else cancels it" {
	dir=$(new_block 'sleep 60')
	submit "$(new_token)" "$dir"
	say until running 120 "$id"
	expect "$id running none 0 n? -"
	begun "$dir"
	scancel "$id"
	say until ended 120 "$id"
	# 3: the agent was told to stop. The node's last word can overtake the script's: then slurmctld
	# keeps exit 0, as it does after a failed prolog (the campaign tells them apart by the claim).
	[ "${answer#* launch_failed 0 }" != "$answer" ] || expect "$id ended cancelled 3 n? CANCELLED"
	expect "$id ended * n? CANCELLED"
	say cancel "$id"
	expect ok
}

@test "we cancel it, running and waiting" {
	dir=$(new_block 'sleep 60')
	submit "$(new_token)" "$dir" nodes=4
	first=$id
	submit "$(new_token)" "$(new_block 'sleep 60')"
	say until running 120 "$first"
	begun "$dir"
	say poll "$id"
	expect "$id pending none 0 - *"
	say cancel "$id"
	expect ok
	say cancel "$first"
	expect ok
	say until ended 120 "$id"
	expect "$id ended cancelled 0 - CANCELLED*"
	say until ended 120 "$first"
	expect "$first ended cancelled * CANCELLED"
	say cancel 999999
	expect ok
}

@test "the agent fails" {
	submit "$(new_token)" "$BATS_TEST_TMPDIR"
	say until ended 120 "$id"
	expect "$id ended failed 4 n? FAILED (NonZeroExitCode)"
}

@test "a node goes down under the job" {
	submit "$(new_token)" "$(new_block 'sleep 60')" nodelist=n2
	say until running 120 "$id"
	scontrol update nodename=n2 state=down reason=test
	say until ended 120 "$id"
	expect "$id ended node_fail * n2 NODE_FAIL (NodeDown)"
}

@test "a drained node is not counted" {
	scontrol update nodename=n2 state=drain reason=test
	say capacity
	scontrol update nodename=n2 state=resume
	expect 'ok 4 3 3 * 3 of 4 nodes idle, 1 down or drained, *'
}

@test "GPUs come with the job" {
	dir=$(new_block true)
	printf '#!/bin/sh\nenv >"$1/env"\n' >"$BATS_TEST_TMPDIR/agent"
	chmod +x "$BATS_TEST_TMPDIR/agent"
	drive_stop
	drive_start "$BATS_TEST_TMPDIR/agent"
	submit "$(new_token)" "$dir" gpus=2
	say until ended 120 "$id"
	expect "$id ended ok 0 n[34] COMPLETED"
	grep -qx CUDA_VISIBLE_DEVICES=0,1 "$dir/env"
}

@test "an admin requeues it: it is taken out of the queue, and counts as void" {
	submit "$(new_token)" "$(new_block 'sleep 60')"
	say until running 120 "$id"
	scontrol update job "$id" requeue=1
	scontrol requeue "$id"
	say until ended 120 "$id"
	expect "$id ended requeued * PENDING*"
	run squeue -h -j "$id" -t pending,running # it may still be completing
	[ -z "$output" ]
}

@test "preempted by a partition of higher priority" {
	submit "$(new_token)" "$(new_block 'sleep 60')" partition=low nodes=4
	low=$id
	say until running 120 "$low"
	submit "$(new_token)" "$(new_block true)" partition=high
	say until ended 120 "$low"
	expect "$low ended preempted * PREEMPTED*"
	say until ended 120 "$id"
	expect "$id ended ok 0 *"
}

@test "a prolog that fails is no fault of the job" {
	touch "$FETTLE_CLUSTER_DIR/prolog-fails"
	submit "$(new_token)" "$(new_block true)" nodelist=n2
	say until ended 120 "$id"
	for ((i = 0; i < 600; i++)); do # or the drain comes after the resume
		[ "$(sinfo -h -n n2 -p tune -o %T)" = drained ] && break
		sleep 0.1
	done
	rm "$FETTLE_CLUSTER_DIR/prolog-fails"
	scontrol update nodename=n2 state=resume
	expect "$id ended launch_failed 0 n2 CANCELLED"
}

@test "refusals say what to change, and leave nothing behind" {
	dir=$(new_block true)
	token=$(new_token)
	while IFS='|' read -r field want said; do
		say submit "$token" "$dir" "$field"
		expect "${want/WHAT/cannot submit $token: submit}*$said"
		say willrun "$token" "$dir" "$field"
		expect "${want/WHAT/dry run}*"
	done <<-END
		partition=nope|notfound WHAT: Invalid partition name specified (\`sinfo -s\` lists the partitions)|; Slurm: invalid partition specified: nope
		nodelist=n9|notfound WHAT: Invalid node name specified|
		constraint=h200|notfound WHAT: Invalid feature specification|
		reservation=nope|notfound WHAT: Requested reservation is invalid|
		gpus=8|refused WHAT: Requested node configuration is not available|
		cpus=64|refused WHAT: Requested node configuration is not available|
		mem=999999|refused WHAT: Requested node configuration is not available|; Slurm: Memory specification can not be satisfied
	END
	say submit "$token" "$dir" nodes=9
	expect "refused cannot submit $token: submit: 9 nodes are asked for, partition tune has 4: *"
	scontrol update partitionname=low maxnodes=2
	say submit "$token" "$dir" nodes=3 partition=low
	scontrol update partitionname=low maxnodes=unlimited
	expect "refused cannot submit $token: submit: 3 nodes are asked for, partition low gives a job 2 at most (MaxNodes; *"
	say submit "$token" "$dir" partition=short time=99999
	expect "refused cannot submit $token: submit: 1667 minutes are asked for, partition short gives a job 5 at most (MaxTime; *"
	say submit "$token" "$dir" partition=short time=99999 qos=long # which might allow it: Slurm is to say
	if [[ $answer == ok\ * ]]; then # newer releases queue it, and say why it waits
		id=${answer#ok }
		for ((i = 0; i < 600; i++)); do
			[ "$(squeue -h -j "$id" -o %r)" != PartitionTimeLimit ] || break
			sleep 0.1
		done
		[ $i -lt 600 ]
		say cancel "$id"
	else
		expect "refused cannot submit $token: submit: Requested partition configuration not available now (the request is beyond a limit*"
	fi
	say submit "fettle:a-name-that-is-longer-than-the-name-of-a-job-may-be-by-our-own-rules" "$dir"
	expect "refused *: token 'fettle:a-name-that-i...' has 75 bytes: as the name of a job it may have 63"
	say submit "$token" "$dir" 'nodelist=n[1-'
	expect "notfound cannot submit $token: submit: Invalid node @(name|list) specified (\`sinfo -N\` lists the nodes)*"
	say submit "$token" "$dir" workdir=/does/not/exist
	expect "notfound cannot submit $token: workdir /does/not/exist: No such file or directory"
	say submit "$token" "$dir" licenses=nope:1
	expect "notfound cannot submit $token: submit: Invalid license specification (\`scontrol show licenses\` lists the licences)"
	say submit "$token" "$dir" workdir=tmp
	expect "refused cannot submit $token: workdir 'tmp' is not an absolute path"
	say submit "$token" relative workdir=/tmp output=/tmp/x
	expect "refused cannot submit $token: path 'relative' in the batch script is not absolute"
	[ -z "$(squeue -h)" ]
}

# bats test_tags=helper
@test "options that make no sense are refused before Slurm sees them" {
	token=$(new_token)
	dir=$(new_block true)
	say submit "$token" "$dir" begin=someday
	expect "refused cannot submit $token: begin = 'someday' is no time that Slurm knows: 2026-11-30T22:00, 22:00, now+2hours*"
	say submit "$token" "$dir" deadline=2020-01-01T00:00
	expect "refused cannot submit $token: deadline = '2020-01-01T00:00' is over"
	say submit "$token" "$dir" switches=many
	expect "refused cannot submit $token: switches = 'many': a count*"
	say submit "$token" "$dir" mail_type=SOMETIMES
	expect "refused cannot submit $token: mail_type: 'SOMETIMES' is none of NONE, BEGIN, *"
	[ -z "$(squeue -h)" ]
}

@test "a dry run queues nothing and says when" {
	say willrun "$(new_token)" "$(new_block true)" nodes=4
	[[ $answer =~ ^ok\ -?[0-9]+\ n1,n2,n3,n4\ tune$ ]]
	[ -z "$(squeue -h)" ]
}

@test "find: there, absent, and not fooled by a refused submit" {
	token=$(new_token)
	say find "$token"
	expect absent
	say submit "$token" "$(new_block true)" gpus=9
	expect 'refused *'
	say find "$token"
	expect absent
	submit "$(new_token)" "$(new_block 'sleep 300')" nodes=4 # keeps the next one waiting
	first=$id
	say until running 120 "$first"
	submit "$token" "$(new_block 'sleep 60')"
	say find "$token"
	expect "$id pending none 0 - *"
	say alive "${token%1}" # by how tokens start; what was refused is not among them
	expect "ok 1 $id"
	say cancel "$first"
	say until running 120 "$id"
	say find "$token"
	expect "$id running none 0 n? -"
}

@test "slurmctld hangs during a submit: accepted all the same, found, and not doubled" {
	token=$(new_token)
	dir=$(new_block 'sleep 60')
	cluster signal slurmctld STOP
	say submit "$token" "$dir"
	cluster signal slurmctld CONT
	expect "temp cannot submit $token: submit: Socket timed out*"
	say find "$token"
	[[ $answer == *\ pending\ none\ * || $answer == *\ running\ none\ * ]]
	[ "$(squeue -h -n "$token" | wc -l)" = 1 ]
}

@test "slurmctld is away and comes back: unknown, never ended, then the truth" {
	dir=$(new_block "until [ -e '$BATS_TEST_TMPDIR/go' ]; do sleep 0.1; done; exit 7")
	submit "$(new_token)" "$dir"
	say until running 120 "$id"
	begun "$dir"
	cluster end slurmctld
	touch "$BATS_TEST_TMPDIR/go"
	sleep 2.1
	say poll "$id"
	expect "$id unknown none 0 n? *"
	say find fettle:absent
	expect "temp cannot look for fettle:absent: slurmctld does not answer*"
	say submit "$(new_token)" "$(new_block true)"
	expect "temp cannot submit * slurmctld does not answer*"
	cluster up slurmctld
	say until ended 120 "$id"
	expect "$id ended ok 0 n? COMPLETED" # the agent recorded the failed trial and exited 0
}

@test "a number that slurmctld gave to another job is not ours" {
	submit "$(new_token)" "$(new_block 'sleep 60')"
	scontrol update job "$id" name=other
	sleep 2.1
	say poll "$id"
	expect "$id gone none 0 *"
}

# bats test_tags=helper
@test "the helper dies: the next question starts another" {
	submit "$(new_token)" "$(new_block 'sleep 60')"
	say until running 120 "$id"
	say kill 9
	expect ok
	sleep 2.1
	say poll "$id"
	expect "$id running none 0 n? -"
}

# bats test_tags=helper
@test "no helper: what to install" {
	run "$DRIVE" /nonexistent/fettle-slurm "$AGENT" </dev/null
	[ "$status" = 1 ]
	[[ $output == "notfound scheduler slurm: /nonexistent/fettle-slurm was not built"*libslurm-dev*slurm-devel*'`make`'* ]]
}

# bats test_tags=helper
@test "no configuration: the helper says so, and we live" {
	SLURM_CONF=/nonexistent/slurm.conf run "$DRIVE" "$HELPER" "$AGENT" </dev/null
	[ "$status" = 1 ]
	[[ $output == "notfound scheduler slurm: Slurm cannot be used on this machine: SLURM_CONF=/nonexistent/slurm.conf: No such file"* ]]
	: >"$BATS_TEST_TMPDIR/empty.conf"
	SLURM_CONF=$BATS_TEST_TMPDIR/empty.conf run "$DRIVE" "$HELPER" "$AGENT" </dev/null
	[ "$status" = 1 ]
	[[ $output == "notfound scheduler slurm: Slurm cannot be used on this machine: libslurm ended fettle-slurm with status 1"*fatal* ]]
}

@test "asked again and again it asks slurmctld every 2 s at most" {
	submit "$(new_token)" "$(new_block 'sleep 60')"
	say until running 120 "$id"
	sdiag -r >/dev/null
	since=$SECONDS
	sleep 2.1
	for ((i = 0; i < 50; i++)); do
		say poll "$id" >/dev/null
	done
	run sdiag
	seconds=$((SECONDS - since + 1))
	calls=$(sed -n 's/.*REQUEST_JOB_\(USER_\)*INFO *([^)]*) count:\([0-9]*\).*/\2/p' <<<"$output")
	echo "$calls calls in $seconds s"
	[ "$calls" -ge 1 ]
	[ "$calls" -le $((seconds / 2 + 2)) ]
}

@test "slurmctld forgets: gone, by its own word" {
	id=$(cat "$BATS_FILE_TMPDIR/forgotten")
	say until gone 120 "$id"
	expect "$id gone none 0 * slurmctld does not know this job"
}
