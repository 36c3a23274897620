#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# picture.sh DATABASE.gz : the forest plot of a published campaign as an SVG file of its own, on white, as README.md
# shows it: tests/bench/picture.sh experiments/reports/h200/dataloader.db.gz >docs/dataloader.svg
set -eu
fettle=${FETTLE:-$(dirname "$0")/../../build/release/fettle}
ws=$(mktemp -d /tmp/fettle-picture-XXXXXX)
trap 'rm -rf "$ws"' EXIT
gunzip -c "$1" >"$ws/fettle.db"
"$fettle" tick -w "$ws" >/dev/null # brings an older database up to date
"$fettle" report -w "$ws" --format html --lang en | tr '\n' ' ' | grep -o '<svg[^>]*aria-label="Forest plot.*' | sed 's|</svg>.*|</svg>|' |
	sed 's|^<svg viewBox="0 0 \([0-9]*\) \([0-9]*\)"\([^>]*\)>|<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 \1 \2"\3><style>text{font:12px system-ui,sans-serif;fill:#5b6472}.name{fill:#1d2430}.head{fill:#1d2430;font-weight:600}.grid{stroke:#e3e1dc}.zero{stroke:#1d2430;opacity:.55}.equal{fill:#5b6472;opacity:.14}.better{color:#1a7a4c}.worse{color:#b3261e}.soft{color:#5b6472}.ci{stroke:currentColor;stroke-width:2}.est{fill:currentColor}.hollow{fill:#fff;stroke:currentColor;stroke-width:1.5}</style><rect x="-10" y="-10" width="\1" height="\2" fill="#fff"/>|'
