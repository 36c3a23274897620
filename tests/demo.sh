#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# demo.sh : what `make demo` does after the build. Makes the data set once and runs the campaign
# recipes/campaigns/demo.lua in a new workspace; `fettle run` prints the summary, where the report
# is and what to type next.
set -u
cd "$(dirname "$0")/.." || exit 4
fettle=build/fettle

/usr/bin/python3 recipes/workloads/demo/make_dataset.py --out build/demo-data || exit 4

# A workspace that is there belongs to somebody: take the next free name.
workspace=demo-workspace
n=2
while [ -e "$workspace" ]; do
	workspace=demo-workspace-$n
	n=$((n + 1))
done

"$fettle" run -w "$workspace" recipes/campaigns/demo.lua
rc=$?
if [ -f "$workspace/fettle.db" ] && [ $rc -ne 3 ]; then
	echo "also: $fettle report --json -w $workspace   $fettle knobs   sqlite3 $workspace/fettle.db .tables"
fi
exit $rc
