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
