# SPDX-License-Identifier: GPL-2.0-or-later
# fettle ab on the cluster: two nodes, a rank on each, every variable of the bundle on every rank.

setup() {
	load common
	WS=$BATS_TEST_TMPDIR/ws
	PLANTED=$BUILD/tests/workloads/planted
}

teardown() {
	end_all_jobs
	cluster wait
}

@test "ab: a bundle of two variables on two nodes: accepted, seen by both ranks" {
	run "$FETTLE" ab -w "$WS" -s slurm --quiet --nodes 2 --tasks-per-node 1 --launcher srun --mode quick \
		--warmup-trials 0 --seed 1 --metrics-file --metric throughput_samples_per_s --stat median \
		--steps 40 --warmup-steps 5 --workdir /tmp --env PLANT_SPEED=fast --env OMP_NUM_THREADS=3 -- "$PLANTED" --fixed
	echo "$output"
	[ "$status" = 0 ]
	[[ ${lines[-1]} == 'verdict: accepted: B is better than A: throughput_samples_per_s +'* ]]
	# which ranks showed the treatment's variables
	[ "$(sqlite3 "$WS/fettle.db" "SELECT group_concat(rank, ' ') FROM (SELECT DISTINCT e.rank FROM effective e
		JOIN trial t ON t.id = e.trial JOIN arm a ON a.id = t.arm
		WHERE a.role = 'treatment' AND e.key = 'env.OMP_NUM_THREADS' AND e.value = '3' AND e.rank >= 0 ORDER BY 1)")" = '0 1' ]
}

# The command as it is typed at a prompt: srun makes its own allocation from here, or a step of ours.
@test "ab: a command that is srun itself, from this machine and in an allocation" {
	cat >"$BATS_TEST_TMPDIR/train.sh" <<-'END'
		#!/bin/sh
		[ "$SPEED" = fast ] || sleep 2
		sleep 1 # what is over at once on another node was seen by nobody
	END
	chmod +x "$BATS_TEST_TMPDIR/train.sh"
	for where in '-s local' '-s slurm --nodes 2 --tasks-per-node 1'; do
		# shellcheck disable=SC2086  # options
		run "$FETTLE" ab -w "$WS" $where --quiet --mode quick --warmup-trials 0 --seed 1 --workdir /tmp \
			--env SPEED=fast -- srun -N2 "$BATS_TEST_TMPDIR/train.sh"
		echo "$output"
		[ "$status" = 0 ]
		[[ ${lines[-1]} == 'verdict: accepted: B is better than A (SPEED=fast): trial_wall_s +'* ]]
	done
}
