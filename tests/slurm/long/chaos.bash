# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2154 # WS, RECIPE, SEED and what common.bash sets
# A cluster that misbehaves in every way at once, from a seed: chaos_run drives the campaign $RECIPE in $WS through it until it is
# done. The sequence of faults depends on the seed alone; when each strikes depends on the machine.

readonly ALL_NODES='n[1-4]'
readonly STARTS_MAX=120 # of fettle; a run takes about 20

say_chaos() { printf '%(%T)T %s\n' -1 "$*" >>"$BATS_TEST_TMPDIR/chaos"; }

# a job of the campaign in one of these states, as $job
pick_job() {
	local jobs
	draw=$RANDOM # drawn whether there is one or not
	mapfile -t jobs < <(timeout 10 squeue -h -t "$1" -o '%i %j' 2>/dev/null | sed -n 's/^\([0-9]*\) fettle:.*/\1/p')
	[ ${#jobs[@]} -gt 0 ] && job=${jobs[draw % ${#jobs[@]}]}
}

# an agent or the guard that it has for itself, as $agent
pick_agent() {
	local pids
	draw=$RANDOM
	mapfile -t pids < <(pgrep -f "fettle-agent $WS/blocks")
	[ ${#pids[@]} -gt 0 ] && agent=${pids[draw % ${#pids[@]}]}
}

ctl() { timeout 10 scontrol "$@" >/dev/null 2>&1; }

start_fettle() {
	local args=(run "$RECIPE")
	[ "$(count campaign 2>/dev/null)" != 1 ] || args=(resume)
	"$FETTLE" "${args[@]}" -w "$WS" >>"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	starts=$((starts + 1))
	kill_at=$((SECONDS + 10 + RANDOM % 21))
}

# Whatever was broken, mended: nodes, daemons, prolog. Slurm is told until it listens.
mend() {
	local who
	rm -f "$FETTLE_CLUSTER_DIR/prolog-fails"
	for who in slurmctld n1 n2 n3 n4; do
		cluster signal $who CONT 2>/dev/null || cluster up $who
	done
	for _ in {1..60}; do
		ctl update nodename="$ALL_NODES" state=resume || ctl ping || { sleep 1; continue; }
		break
	done
}

# A fault on this node or some job, and what is to be mended some seconds later, as $mending; false: nothing to strike.
strike() {
	local node=$2
	case $1 in
	cancel) pick_job pending,running,suspended && timeout 10 scancel "$job" ;;
	down) ctl update nodename="$node" state=down reason=chaos && mending=mend ;;
	drain) ctl update nodename="$node" state=drain reason=chaos && mending=mend ;;
	requeue) pick_job running && ctl update job "$job" requeue=1 && ctl requeue "$job" ;;
	requeuehold) pick_job running && ctl update job "$job" requeue=1 && ctl requeuehold "$job" ;;
	hold) pick_job pending && ctl hold "$job" && mending="ctl release $job" ;;
	suspend) pick_job running && ctl suspend "$job" && mending="ctl resume $job" ;;
	preempt) timeout 10 sbatch -p high -N1 --exclusive -o /dev/null --wrap 'sleep 2' >/dev/null 2>&1 ;;
	prolog) touch "$FETTLE_CLUSTER_DIR/prolog-fails" && mending=mend ;;
	slurmctld) cluster signal slurmctld KILL && mending=mend ;;
	hang) cluster signal slurmctld STOP && mending=mend ;;
	slurmd) cluster signal "$node" KILL && mending=mend ;;
	helper) pkill -9 -P "$pid" -x fettle-slurm ;;
	agent) pick_agent && kill -9 "$agent" ;;
	esac
}

readonly FAULTS=(cancel down drain requeue requeuehold hold suspend preempt prolog slurmctld hang slurmd helper agent)

# Until fettle says that the campaign is done. Sets $faults, $kills, $starts.
chaos_run() {
	local mend_at=0 next=$((SECONDS + 3)) mending='' what node job status
	RANDOM=$SEED faults=0 kills=0 starts=0
	start_fettle
	while :; do
		sleep 0.2
		if ! kill -0 "$pid" 2>/dev/null; then
			status=0
			wait "$pid" || status=$?
			say_chaos "fettle ended with $status"
			[ "$status" != 0 ] || break
			[ "$starts" -lt $STARTS_MAX ] || return 1
			start_fettle
		elif [ $SECONDS -ge "$kill_at" ]; then
			kill -9 "$pid"
			wait "$pid" || true
			kills=$((kills + 1))
			say_chaos "kill -9 of fettle"
			start_fettle
		fi
		if [ -n "$mending" ] && [ $SECONDS -ge $mend_at ]; then
			$mending
			say_chaos "mended: $mending"
			mending=
		fi
		if [ -z "$mending" ] && [ $SECONDS -ge $next ]; then
			what=${FAULTS[RANDOM % ${#FAULTS[@]}]} node=n$((RANDOM % 4 + 1)) job=''
			if strike "$what" "$node"; then
				say_chaos "$what $job $node"
				faults=$((faults + 1))
			else
				say_chaos "($what: nothing to strike)"
			fi
			mend_at=$((SECONDS + 1 + RANDOM % 5))
			next=$((SECONDS + 2 + RANDOM % 4))
		fi
	done
	mend
}
