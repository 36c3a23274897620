#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# demo.sh : what `make demo` does after the build. Makes the data set once, runs the campaign
# recipes/campaigns/demo.lua in a new workspace, and says where its report is.
# DEMO_CAMPAIGN=FILE runs another campaign the same way; BUILD is the build tree.
set -u
cd "$(dirname "$0")/.." || exit 4
build=${BUILD:-build}
fettle=$build/fettle
campaign=${DEMO_CAMPAIGN:-recipes/campaigns/demo.lua}

/usr/bin/python3 recipes/workloads/demo/make_dataset.py --out build/demo-data || exit 4

# A workspace that is there belongs to somebody: take the next free name.
workspace=demo-workspace
n=2
while [ -e "$workspace" ]; do
	workspace=demo-workspace-$n
	n=$((n + 1))
done
FETTLE_WORKSPACE=$PWD/$workspace
export FETTLE_WORKSPACE

"$fettle" run "$campaign"
rc=$?
case $rc in
0 | 1) ;;
3) echo "Interrupted. Go on with: FETTLE_WORKSPACE=$workspace $fettle resume" >&2 && exit $rc ;;
*) exit $rc ;;
esac

"$fettle" report --format markdown >"$workspace/report.md" || exit
can=
"$fettle" recommend >/dev/null 2>&1 && can="
  $fettle recommend            the validated configuration as an env file"
cat <<END

The whole report:              $workspace/report.md
Every figure, with sqlite3:    sqlite3 $workspace/fettle.db .tables

What to type next, with  export FETTLE_WORKSPACE=$workspace$can
  $fettle report --format json the same report for programs
  $fettle knobs                what else can be tried
END
exit $rc
