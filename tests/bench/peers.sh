#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# peers.sh [PEER] : what the benchmarks hold fettle against, from PyPI at pinned versions, in build/bench-venv. Without a
# PEER: all of them are installed, once, and listed. With one: its name and version, and on a second line the
# directory of its commands and of its Python; the second line is missing where the peer is absent, which is never an error.
cd "$(dirname "$0")/../.." || exit 4
build=${FETTLE_BUILD:-$PWD/build/release}
venv=${build%/*}/bench-venv
# What they share; HolisticTraceAnalysis and Otava need them.
NUMPY=numpy==2.2.0 PANDAS=pandas==2.2.3 SCIPY=scipy==1.16.3
RETRY_MIN=60 # one that could not be installed is not tried again for so long

needs() {
	case $1 in
	optuna) echo optuna==5.0.0 ;;
	apache-otava) echo apache-otava==0.8.0 $NUMPY $SCIPY ;;
	HolisticTraceAnalysis) echo HolisticTraceAnalysis==0.5.0 $PANDAS $NUMPY networkx==3.6.1 plotly==7.1.0 ;;
	pandas) echo $PANDAS $NUMPY ;;
	reframe-hpc) echo reframe-hpc==4.10.3 ;;
	submitit) echo submitit==1.5.4 ;;
	*)
		echo "peers.sh: no peer $1" >&2
		exit 2
		;;
	esac
}

# install PEER : leaves ok-NEEDS, or no-PEER with the reason
install() {
	mark=$venv/ok-$(echo "$2" | tr ' ' '+')
	[ ! -e "$mark" ] || return 0
	[ -z "$(find "$venv/no-$1" -mmin -$RETRY_MIN 2>/dev/null)" ] || return 1
	[ -x "$venv/bin/pip" ] || python3 -m venv "$venv" >"$venv.txt" 2>&1 || {
		mkdir -p "$venv"
		mv "$venv.txt" "$venv/no-$1"
		return 1
	}
	rm -f "$venv.txt"
	# shellcheck disable=SC2086 # a list
	if "$venv/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 30 $2 >"$venv/no-$1" 2>&1; then
		rm "$venv/no-$1"
		: >"$mark"
	else
		return 1
	fi
}

peer() {
	list=$(needs "$1") || exit 2
	if install "$1" "$list"; then
		echo "${list%% *}" | sed 's/==/ /'
		echo "$venv/bin"
	else
		echo "${list%% *}: absent ($(grep . "$venv/no-$1" | tail -n 1 | cut -c 1-120))" | sed 's/==/ /'
	fi
}

mkdir -p "${venv%/*}"
exec 9>"$venv.lock"
flock 9
if [ $# -gt 0 ]; then
	peer "$1"
else
	for name in optuna apache-otava HolisticTraceAnalysis pandas reframe-hpc submitit; do peer "$name" | sed -n 1p; done
fi
