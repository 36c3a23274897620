#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A private Slurm cluster on this machine: own munged, slurmctld and four slurmd (n1..n4; two GPUs that are
# /dev/null on n3 and n4) in one directory, on free loopback ports, as any user. Nothing outside is touched.
#
#   cluster.sh start DIR [KEY=VALUE...]   start it (KEY=VALUE replaces or adds a line of slurm.conf)
#   cluster.sh run DIR [KEY=VALUE...] -- COMMAND...   start, run COMMAND with its environment, stop
#   cluster.sh env DIR                    print the `export` lines that a client needs
#   cluster.sh set DIR KEY=VALUE...       change slurm.conf (KEY=: the default) and tell the daemons
#   cluster.sh signal DIR WHO SIGNAL      WHO: slurmctld, munged, n1..n4
#   cluster.sh up DIR WHO                 start WHO again after it was killed
#   cluster.sh end DIR WHO                TERM (slurmctld saves its state), and wait until it is gone
#   cluster.sh restart DIR WHO            end it and start it again
#   cluster.sh wait DIR                   until four nodes are idle
#   cluster.sh stop DIR                   stop all, remove DIR; also what a job left behind
#
# FETTLE_CLUSTER_ACCOUNTS=1: with slurmdbd and a MariaDB of its own, limits enforced, this user in account `tuning`.
# `start` also leaves a guard behind that stops the cluster when the calling process
# ($FETTLE_CLUSTER_OWNER, default: the parent of this script) is gone.
set -u
PATH=$PATH:/usr/sbin:/sbin

readonly NODES='n1 n2 n3 n4'
readonly START_TRIES=5          # another program may take a port between our look and the bind
readonly WAIT_TENTHS=900        # 90 s for four nodes on a busy machine; it takes 2 to 3

die() {
	echo "cluster.sh: $*" >&2
	exit 1
}

need_programs() {
	local p
	for p in munged munge slurmctld slurmd sinfo scontrol scancel; do
		command -v "$p" >/dev/null ||
			die "$p is missing: apt-get install munge slurmctld slurmd slurm-client" \
				"(RHEL: munge slurm-slurmctld slurm-slurmd slurm)"
	done
}

# Six ports in a row below the ephemeral range of which none is in use.
free_ports() {
	local used base i try
	used=$(awk 'FNR > 1 { split($2, a, ":"); print a[2] }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
	for try in {1..100}; do
		base=$((15000 + (RANDOM * 32768 + RANDOM) % 15000))
		for i in 0 1 2 3 4 5; do
			grep -qix "$(printf %04X $((base + i)))" <<<"$used" && continue 2
		done
		echo "$base"
		return
	done
	die "no six free ports in a row after $try tries"
}

write_conf() {
	local dir=$1 base=$2 me host
	shift 2
	me=$(id -un)
	host=$(hostname -s)
	cat >"$dir/slurm.conf" <<-END
		ClusterName=fettle
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$base
		SlurmUser=$me
		SlurmdUser=$me
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge.socket
		CredType=cred/munge
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool/%n
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/%n.pid
		SlurmctldLogFile=$dir/log/slurmctld
		SlurmdLogFile=$dir/log/%n
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		MpiDefault=none
		Prolog=$dir/prolog
		ReturnToService=2
		SlurmctldTimeout=30
		SlurmdTimeout=60
		MessageTimeout=10
		KillWait=2
		MinJobAge=20
		InactiveLimit=0
		SchedulerType=sched/backfill
		SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
		GresTypes=gpu
		Licenses=matlab:4
		PreemptType=preempt/partition_prio
		PreemptMode=CANCEL
		NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 1))-$((base + 2))] CPUs=2 RealMemory=2000 Feature=plain State=UNKNOWN
		NodeName=n[3-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((base + 3))-$((base + 4))] CPUs=2 RealMemory=2000 Feature=fast Gres=gpu:2 State=UNKNOWN
		PartitionName=tune Nodes=n[1-4] Default=YES MaxTime=120 State=UP PriorityTier=5 PreemptMode=OFF
		PartitionName=short Nodes=n[1-2] MaxTime=5 MaxNodes=2 State=UP PriorityTier=5 PreemptMode=OFF
		PartitionName=low Nodes=n[1-4] MaxTime=120 State=UP PriorityTier=1 PreemptMode=CANCEL GraceTime=0
		PartitionName=high Nodes=n[1-4] MaxTime=120 State=UP PriorityTier=9 PreemptMode=OFF
	END
	set_conf "$dir" "$@"
}

# A key that is there is replaced: Slurm warns about keys given twice.
set_conf() {
	local dir=$1 kv
	shift
	for kv in "$@"; do
		case $kv in
		PartitionName=*) ;;
		*=*) grep -v "^${kv%%=*}=" "$dir/slurm.conf" >"$dir/slurm.conf.new"
			mv "$dir/slurm.conf.new" "$dir/slurm.conf" ;;
		*) die "expected KEY=VALUE, not '$kv'" ;;
		esac
		[ -z "${kv#*=}" ] || echo "$kv" >>"$dir/slurm.conf"
	done
}

# A zombie does not count: the init of a container may never reap it.
alive() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) && case ${stat##*) } in Z*) false ;; esac
}

pid_of() {
	local pid
	pid=$(cat "$1/$2.pid" 2>/dev/null) && [ -n "$pid" ] && alive "$pid" && echo "$pid"
}

# FETTLE_CLUSTER marks the daemons and their slurmstepd, so that `stop` finds them all. Daemons
# must not hold the caller's descriptors: bats waits for its descriptor 3 to be closed.
start_daemon() {
	local dir=$1 who=$2
	(
		exec </dev/null >>"$dir/log/start" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
		export FETTLE_CLUSTER="$dir" SLURM_CONF="$dir/slurm.conf"
		cd "$dir" || exit 1
		case $who in
		mariadb) exec mariadbd --no-defaults --user="$(id -un)" --datadir="$dir/db" --socket="$dir/db.socket" \
			--pid-file="$dir/mariadb.pid" --skip-networking --skip-grant-tables --innodb-buffer-pool-size=32M \
			--innodb-flush-log-at-trx-commit=0 --innodb-lock-wait-timeout=900 &
			;;
		slurmdbd) MYSQL_UNIX_PORT=$dir/db.socket SLURM_CONF=$dir/slurm.conf exec slurmdbd ;;
		munged) exec munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
			--pid-file="$dir/munged.pid" --log-file="$dir/log/munged" \
			--seed-file="$dir/munge.seed" --num-threads=2 ;;
		slurmctld) exec slurmctld -f "$dir/slurm.conf" ;;
		n[1-4]) exec slurmd -f "$dir/slurm.conf" -N "$who" ;;
		*) echo "no daemon $who"; exit 1 ;;
		esac
	)
}

end_daemon() {
	local dir=$1 who=$2 pid i
	pid=$(pid_of "$dir" "$who") || die "$who is not running"
	kill -TERM "$pid"
	for ((i = 0; i < WAIT_TENTHS; i++)); do
		alive "$pid" || break
		sleep 0.1
	done
	rm -f "$dir/$who.pid"
}

make_dir() {
	local dir=$1 n
	mkdir -p "$dir" "$dir/log" "$dir/state" "$dir/spool" "$dir/dev" || die "cannot make $dir"
	for n in $NODES; do mkdir -p "$dir/spool/$n"; done
	ln -s /dev/null "$dir/dev/nvidia0"
	ln -s /dev/null "$dir/dev/nvidia1"
	echo "NodeName=n[3-4] Name=gpu File=$dir/dev/nvidia[0-1]" >"$dir/gres.conf"
	# For TopologyPlugin=topology/tree; read by nobody without it.
	printf 'SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=s0 Switches=s[1-2]\n' >"$dir/topology.conf"
	# Slurm tells the nodes of a new configuration when it pleases; a file is seen by the very next job.
	printf '#!/bin/sh\n[ ! -e %q ]\n' "$dir/prolog-fails" >"$dir/prolog"
	chmod 0755 "$dir/prolog"
	chmod 0711 "$dir"
	head -c 128 /dev/urandom >"$dir/munge.key"
	chmod 0600 "$dir/munge.key"
	# The default of other Slurm versions is to need a cgroup plugin even where none is used.
	printf "CgroupPlugin=autodetect\nConstrainRAMSpace=yes\n" >"$dir/cgroup.conf"
}

# A database of its own and slurmdbd, which wants its configuration beside slurm.conf.
start_accounts() {
	local dir=$1 port=$2 i
	mariadb-install-db --no-defaults --datadir="$dir/db" --auth-root-authentication-method=normal \
		--skip-test-db --user="$(id -un)" >>"$dir/log/start" 2>&1 || return 1
	start_daemon "$dir" mariadb
	for ((i = 0; i < WAIT_TENTHS; i++)); do
		[ ! -S "$dir/db.socket" ] || break
		sleep 0.1
	done
	cat >"$dir/slurmdbd.conf" <<-END
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge.socket
		DbdHost=localhost
		DbdPort=$port
		SlurmUser=$(id -un)
		LogFile=$dir/log/slurmdbd
		PidFile=$dir/slurmdbd.pid
		StorageType=accounting_storage/mysql
		StorageHost=localhost
		StorageUser=root
		StorageLoc=slurm_acct
	END
	chmod 0600 "$dir/slurmdbd.conf"
	set_conf "$dir" AccountingStorageType=accounting_storage/slurmdbd AccountingStorageHost=localhost \
		AccountingStoragePort="$port" AccountingStoragePass="$dir/munge.socket" JobAcctGatherType=jobacct_gather/linux JobAcctGatherFrequency=1 \
		AccountingStorageEnforce=associations,limits,qos
	start_daemon "$dir" slurmdbd || return 1
	for ((i = 0; i < WAIT_TENTHS; i++)); do
		SLURM_CONF=$dir/slurm.conf sacctmgr -n list cluster >/dev/null 2>&1 && break
		sleep 0.1
	done
	add_account "$dir"
}

add_account() {
	export SLURM_CONF=$1/slurm.conf
	sacctmgr -i add cluster fettle >/dev/null
	sacctmgr -i add account tuning description=tests organization=tests >/dev/null
	sacctmgr -i add user "$(id -un)" account=tuning defaultaccount=tuning >/dev/null ||
		sacctmgr -i modify user "$(id -un)" set defaultaccount=tuning >/dev/null
}

start_once() {
	local dir=$1 n base
	shift
	make_dir "$dir"
	base=$(free_ports)
	write_conf "$dir" "$base" "$@"
	start_daemon "$dir" munged || return 1
	[ -z "${FETTLE_CLUSTER_ACCOUNTS:-}" ] || start_accounts "$dir" $((base + 5)) || return 1
	start_daemon "$dir" slurmctld || return 1
	for n in $NODES; do start_daemon "$dir" "$n" & done
	wait
	wait_idle "$dir"
}

# "idle*" is a node that does not respond yet.
wait_idle() {
	local dir=$1 i
	for ((i = 0; i < WAIT_TENTHS; i++)); do
		[ "$(SLURM_CONF=$dir/slurm.conf sinfo -h -N -p tune -o %T 2>/dev/null | grep -cx idle)" = 4 ] &&
			return 0
		pid_of "$dir" slurmctld >/dev/null || [ $i -lt 50 ] || return 1
		sleep 0.1
	done
	return 1
}

# Pids of what belongs to the cluster in DIR: its daemons, slurmstepd, and what jobs left behind.
members() {
	{
		grep -lzxF "FETTLE_CLUSTER=$1" /proc/[0-9]*/environ
		grep -lzxF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ | xargs -r grep -lz '^SLURMD_NODENAME='
	} 2>/dev/null | sed 's,^/proc/\([0-9]*\)/.*,\1,' | sort -un
}

stop() {
	local dir=$1 i pids
	[ -d "$dir" ] || return 0
	[ -f "$dir/slurm.conf" ] || die "$dir is not a cluster of ours: left alone"
	for i in {1..50}; do
		pids=$(members "$dir")
		[ -z "$pids" ] && break
		# shellcheck disable=SC2086
		if [ "$i" = 1 ]; then
			kill -CONT $pids 2>/dev/null
			kill -TERM $pids 2>/dev/null
		elif [ "$i" -gt 10 ]; then
			kill -KILL $pids 2>/dev/null
		fi
		sleep 0.1
	done
	[ -z "$pids" ] || die "could not end: $pids"
	[ ! -f "$dir/guard" ] || kill "$(cat "$dir/guard")" 2>/dev/null
	rm -rf "$dir"
}

guard() {
	local dir=$1 owner=$2
	(
		exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
		trap '' INT HUP
		while alive "$owner" && [ -d "$dir" ]; do sleep 1; done
		rm -f "$dir/guard"
		stop "$dir"
	) &
	echo $! >"$dir/guard"
	disown
}

start() {
	local dir=$1 try
	shift
	need_programs
	[ -f "$dir/slurm.conf" ] && stop "$dir"
	[ ! -e "$dir" ] || rmdir "$dir" 2>/dev/null || die "$dir exists and is not a cluster of ours"
	for ((try = 1; try <= START_TRIES; try++)); do
		if start_once "$dir" "$@"; then
			guard "$dir" "${FETTLE_CLUSTER_OWNER:-$PPID}"
			return 0
		fi
		tail -n 5 "$dir"/log/* >&2
		stop "$dir"
	done
	die "no cluster after $START_TRIES tries: the logs' ends are above"
}

print_env() {
	printf 'export SLURM_CONF=%q FETTLE_CLUSTER_DIR=%q\n' "$1/slurm.conf" "$1"
}

run() {
	local dir=$1 conf=()
	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do conf+=("$1"); shift; done
	[ $# -gt 1 ] || die "usage: cluster.sh run DIR [KEY=VALUE...] -- COMMAND..."
	shift
	trap 'stop "$dir"' EXIT
	trap 'exit 130' INT TERM HUP
	FETTLE_CLUSTER_OWNER=$$ start "$dir" ${conf[@]+"${conf[@]}"}
	eval "$(print_env "$dir")"
	"$@"
}

[ $# -ge 2 ] || { sed -n '4,19s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command=$1 dir=$2
shift 2
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
case $command in
start) start "$dir" "$@" ;;
run) run "$dir" "$@" ;;
env) print_env "$dir" ;;
set) set_conf "$dir" "$@"; SLURM_CONF=$dir/slurm.conf scontrol reconfigure ;;
signal) pid=$(pid_of "$dir" "$1") || die "$1 is not running"; kill -"$2" "$pid" ;;
up) rm -f "$dir/$1.pid"; start_daemon "$dir" "$1" ;;
end) end_daemon "$dir" "$1" ;;
restart) end_daemon "$dir" "$1"; start_daemon "$dir" "$1" ;;
wait) wait_idle "$dir" || die "the nodes of $dir are not idle" ;;
stop) stop "$dir" ;;
*) die "unknown command '$command'" ;;
esac
