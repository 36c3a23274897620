#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Workloads in containers. apptainer is a stand-in that does what its documentation says (tests/fixtures/container/apptainer):
# a real mount namespace, and an image whose own value of a variable wins over the host's.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || exit 1
	FETTLE=${FETTLE:-$PWD/build/fettle}
	PROGRAMS=$(realpath "${FETTLE_BUILD:-$PWD/build/release}/tests/workloads")
	export PATH=$PWD/tests/fixtures/container:$PATH
	WS=$BATS_TEST_TMPDIR/ws
	# shellcheck source=tests/fixtures/container/recipe.sh
	. tests/fixtures/container/recipe.sh
	make_container_recipe "$BATS_TEST_TMPDIR"
}

sql() { sqlite3 "$WS/fettle.db" "$1"; }

@test "a knob reaches what runs in the container: seen in /proc of the process inside" {
	# a secret wins over the image's value as well, and is stored nowhere
	printf '#!/bin/sh\nprintf %%s "$HIDDEN" | md5sum >"$FETTLE_TRIAL_DIR/seen"\nexec "$@"\n' >"$BATS_TEST_TMPDIR/work/first"
	chmod +x "$BATS_TEST_TMPDIR/work/first"
	sed -i 's|command = {|secrets = { "HIDDEN" }, command = { "./first",|' "$RECIPE"
	echo 'export HIDDEN=of-the-image' >>"$BATS_TEST_TMPDIR/image/.singularity.d/env/90-environment.sh"
	HIDDEN=hunter22-and-more run "$FETTLE" run -q -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"Fix: speed=fast: validated"* ]]
	[ "$(cat "$WS"/blocks/*/t*/seen | sort -u)" = "$(printf %s hunter22-and-more | md5sum)" ]
	! grep -r hunter22 "$WS" || return 1
	# the effective value is the one inside, where the image says something else; the default is the image's own
	cat "$WS"/blocks/*/t*.json | jq -s -e 'length > 6 and all(.ranks_seen == 1 and (.ranks | length) == 1)'
	cat "$WS"/blocks/*/t*.json | jq -s -e '[.[] | (.argv | index("PLANT_SPEED=fast") != null) as $asked
		| .ranks[0].env.PLANT_SPEED | select(. != null) | . == (if $asked then "fast" else "slow" end)] | all and length > 6'
	cat "$WS"/blocks/*/t*.json | jq -s -e 'all(.ranks[0].argv[0] | endswith("/planted"))'
	cat "$WS"/blocks/*/t*.json | jq -s -e 'all(.argv[0:2] == ["apptainer", "exec"])'
	# the tuning log says what it ran in, and the recommendation runs in the same
	grep -q '^- In a container (apptainer): `' "$WS/reports/campaign-1.md"
	run "$FETTLE" recommend 1 -w "$WS" --as sbatch
	echo "$output"
	[[ $output == *"apptainer exec --pwd "*" --env PLANT_SPEED=fast $BATS_TEST_TMPDIR/image ./first $PROGRAMS/planted"* ]]
}

@test "an image that wins is found out: the arm is invalid, and nothing is recommended" {
	sed -i 's/	container = {/	env = { STAND_IN_DEAF = "1" }, container = {/' "$RECIPE"
	run "$FETTLE" run -q -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"speed (not set) -> fast: invalid"*"not delivered: PLANT_SPEED should be fast in rank 0"*"and is slow"* ]]
	[[ $output != *validated* ]]
}

bad() { # bad SED EXPECTED
	sed "$1" "$RECIPE" >"$BATS_TEST_TMPDIR/bad.lua"
	run "$FETTLE" check "$BATS_TEST_TMPDIR/bad.lua"
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *"bad.lua:"*"$2"* ]]
}

@test "containers that cannot be meant" {
	bad 's/image = "[^"]*", //' 'workload.container.image: missing'
	bad 's/image = "[^"]*"/image = "--nv"/' 'workload.container.image: "--nv" is no image'
	bad 's/runtime = "apptainer"/runtime = "docker"/' 'workload.container.runtime: '
	bad 's/runtime = "apptainer"/runtime = "pyxis"/; s/^	mode = /	resources = { launcher = "exec" },\n&/' \
		'workload.container.runtime: pyxis is a plugin of srun: it needs resources.launcher = "srun", not "exec"'
	bad 's/mounts = {[^}]*}/mounts = { "data:\/data" }/' 'workload.container.mounts[1]: "data:/data" is no mount'
	bad 's/mounts = {[^}]*}/args = { "--env=A=1" }/' 'workload.container.args[1]: "--env=A=1" is set by fettle: use knobs and workload.env'
	bad 's/mounts = {[^}]*}/args = { "ubuntu.sif" }/' 'workload.container.args[1]: "ubuntu.sif" is no option'
	bad 's/mounts = /mount = /' 'workload.container.mount: '
}

@test "what only this machine can tell: pyxis without Slurm, no apptainer" {
	sed 's/runtime = "apptainer"/runtime = "pyxis"/' "$RECIPE" >"$BATS_TEST_TMPDIR/pyxis.lua"
	run "$FETTLE" run -q -w "$WS" -s local "$BATS_TEST_TMPDIR/pyxis.lua"
	echo "$output"
	[ "$status" = 2 ]
	[[ $output == *'pyxis is a plugin of Slurm: scheduler local needs "apptainer" or "singularity"'* ]]
	sed 's/runtime = "apptainer"/runtime = "singularity"/' "$RECIPE" >"$BATS_TEST_TMPDIR/singularity.lua"
	run "$FETTLE" run -q -w "$WS" "$BATS_TEST_TMPDIR/singularity.lua"
	[ "$status" = 2 ]
	[[ $output == *'workload.container: "singularity" is in no directory of PATH'* ]]
	# GPUs that the workload would not see
	sed 's/^	mode = /	resources = { gpus_per_node = 1 },\n&/' "$RECIPE" >"$BATS_TEST_TMPDIR/gpu.lua"
	run "$FETTLE" check "$BATS_TEST_TMPDIR/gpu.lua"
	[[ $output == *'apptainer shows no GPU to the workload without an option: workload.container.args = { "--nv" }'* ]]
}
