# SPDX-License-Identifier: GPL-2.0-or-later
# A cluster with slurmdbd: what jobs took, how those ended that slurmctld has forgotten, accounts and QOS that are not there. LONG=1.

setup_file() {
	FETTLE_ACCOUNTS_BASE=$(mktemp -d /tmp/fettle-acct-XXXXXX)
	export FETTLE_ACCOUNTS_BASE
	FETTLE_CLUSTER_ACCOUNTS=1 FETTLE_CLUSTER_OWNER=$$ "$BATS_TEST_DIRNAME/../cluster.sh" start "$FETTLE_ACCOUNTS_BASE/c" \
		MessageTimeout=5 MinJobAge=2 TopologyPlugin=topology/tree
	eval "$("$BATS_TEST_DIRNAME/../cluster.sh" env "$FETTLE_ACCOUNTS_BASE/c")"
}

teardown_file() {
	"$BATS_TEST_DIRNAME/../cluster.sh" stop "$FETTLE_ACCOUNTS_BASE/c"
	rm -rf "$FETTLE_ACCOUNTS_BASE"
}

setup() {
	load ../common
	answer='' id=''
}

teardown() {
	drive_stop
	end_all_jobs
	cluster wait
}

# What the accounts say of $id, when they say it: they come late.
account() {
	local i
	for ((i = 0; i < 300; i++)); do
		say account "$id" >/dev/null
		[[ $answer != ok* ]] || break
		sleep 0.2
	done
	echo "$answer"
}

forgotten() {
	local i
	for ((i = 0; i < 900; i++)); do
		[ -n "$(squeue -h -t all -j "$1" 2>/dev/null)" ] || return 0
		sleep 0.2
	done
	return 1
}

check_accounts() {
	drive_start
	submit "$(new_token)" "$(new_block 'dd if=/dev/zero of=/dev/null bs=64M count=400 2>/dev/null; sleep 2')" nodes=2 account=tuning
	say until ended 120 "$id"
	expect "$id ended ok 0 n?,n? COMPLETED"
	account
	expect 'ok * s * KiB -1 J *cpu=4*node=2*' # no sensor of energy here
	[[ $answer != *energy* ]]
	kib=${answer% KiB*} kib=${kib##* }
	[ "$kib" -gt 1000 ]
	# slurmctld knows nothing of it any more: the accounts say how it ended
	forgotten "$id"
	drive_stop
	drive_start
	say poll "$id"
	expect "$id ended ok 0 n?,n? COMPLETED"
	submit "$(new_token)" "$(new_block 'sleep 300')"
	say until running 120 "$id"
	say cancel "$id"
	account
	forgotten "$id"
	drive_stop
	drive_start
	say poll "$id"
	expect "$id ended cancelled * n? CANCELLED*"
	say poll 999999
	expect "999999 gone none 0 - slurmctld does not know this job"
}

@test "what a job took, and how it ended when slurmctld has forgotten it" {
	check_accounts
}

@test "the same through Slurm's commands" {
	export FETTLE_WAY=slurm_cli
	check_accounts
}

check_unknown() {
	drive_start
	token=$(new_token)
	dir=$(new_block true)
	say submit "$token" "$dir" account=nope
	expect "refused cannot submit $token: submit: Invalid account or account/partition combination specified (\`sacctmgr show assoc user=\$USER\` lists your accounts)*"
	say willrun "$token" "$dir" account=nope
	expect "refused dry run: Invalid account or account/partition combination specified (*"
	say submit "$token" "$dir" qos=nope
	expect "refused cannot submit $token: submit: Invalid qos specification (\`sacctmgr show assoc user=\$USER format=account,qos\` lists what you may use)*"
	submit "$token" "$dir" account=tuning qos=normal
	say until ended 120 "$id"
	expect "$id ended ok 0 *"
}

@test "an account and a QOS that are not there" {
	check_unknown
}

@test "the same through Slurm's commands, account and QOS" {
	export FETTLE_WAY=slurm_cli
	check_unknown
}

@test "slurmdbd is away: jobs run, only their accounts come later" {
	cluster set MinJobAge=300 # or slurmctld forgets it too
	drive_start
	cluster signal slurmdbd KILL
	submit "$(new_token)" "$(new_block true)"
	say until ended 120 "$id"
	expect "$id ended ok 0 *"
	say account "$id"
	expect 'temp slurmdbd does not answer*'
	cluster up slurmdbd
	account
	expect 'ok *'
}

@test "a campaign keeps what its jobs took, and the switches of its nodes" {
	load ../campaign
	WS=$BATS_TEST_TMPDIR/ws
	run "$FETTLE" run -q -w "$WS" "$RECIPE"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(sql "SELECT count(*) = count(elapsed_s) AND min(tres LIKE '%cpu=4%node=2%') FROM v_allocation")" = 1 ]
	[ "$(sql "SELECT count(*) FROM v_allocation WHERE maxrss_mib > 0")" -ge 1 ]
	# both nodes of a job tell their switches
	[ "$(sql "SELECT count(*) FROM allocation_node WHERE switches IS NULL")" = 0 ]
	[ "$(sql "SELECT min(switches = CASE WHEN node IN ('n1', 'n2') THEN 's0.s1' ELSE 's0.s2' END) FROM allocation_node")" = 1 ]
	"$FETTLE" report 1 -w "$WS" | grep -q "^By the cluster's accounts (\([0-9]*\) of \1 jobs): .* held .cpu=4"
	"$FETTLE" report 1 -w "$WS" | grep -q '^| n1 | [0-9]* | s0.s1 | '
}
