# SPDX-License-Identifier: GPL-2.0-or-later
# Ranks in containers on two nodes: srun starts an apptainer (a stand-in, see tests/cli/container.bats) for each. LONG=1.

setup() {
	load ../common
	load ../campaign
	cd "$HERE/../.." || return 1
	PROGRAMS=$(realpath "$BUILD/tests/workloads")
	PATH=$HERE/../fixtures/container:$PATH
	WS=$BATS_TEST_TMPDIR/ws
	# shellcheck source=tests/fixtures/container/recipe.sh
	. "$HERE/../fixtures/container/recipe.sh"
	make_container_recipe "$BATS_TEST_TMPDIR"
	sed -i 's/^	mode = /	scheduler = "slurm", resources = { nodes = 2, tasks_per_node = 1, launcher = "srun" },\n&/' "$RECIPE"
}

teardown() {
	end_all_jobs
	cluster wait
}

@test "a knob reaches each rank inside, on both nodes" {
	run "$FETTLE" run -q -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"Fix: speed=fast: validated"* ]]
	cat "$WS"/blocks/*/t*.json | jq -s -e 'all(.argv[0] == "srun" and (.argv | index("apptainer") != null) and .ranks_expected == 2)'
	# the ranks' processes are those inside; srun and apptainer, which have the host's environment, are no ranks
	cat "$WS"/blocks/*/t*.json | jq -s -e '[.[].ranks[] | select(.rank >= 0) | .argv[0] | endswith("/planted")] | all and length > 12'
	cat "$WS"/blocks/*/t*.json | jq -s -e '[.[] | (.argv | index("PLANT_SPEED=fast") != null) as $asked
		| .ranks[] | select(.rank >= 0) | .env.PLANT_SPEED | select(. != null)
		| . == (if $asked then "fast" else "slow" end)] | all and length > 12'
}
