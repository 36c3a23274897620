# SPDX-License-Identifier: GPL-2.0-or-later
# row.jq : a line of results.jsonl as a row of the table of `make bench`; -s would not do: a row at a time.
def short: if . == null then "-" elif . == 0 then "0" elif (. >= 100 or . <= -100) then (. | round | tostring)
	else (. as $x | (if $x >= 10 then 10 elif $x >= 1 then 100 else 10000 end) as $k | ($x * $k | round) / $k | tostring) end;
def median: sort | length as $n | if $n == 0 then null elif $n % 2 == 1 then .[$n / 2 | floor] else (.[$n / 2] + .[$n / 2 - 1]) / 2 end;
def spread: if length == 0 then "-" elif length == 1 then (.[0] | short) else "\(median | short) [\(min | short), \(max | short)]" end;
def goal: (if .of == "ratio" then "ratio " else "" end) + (if .op == "<=" then "at most " else "at least " end) + (.limit | short);
def verdict: if length == 0 then "" elif any(.[]; .met == false) then "**missed**"
	elif any(.[]; .met == null) then "not measured" else "met" end;
"| \(.bench) | \(.what) | \(.unit) | \(.fettle | spread) | \(.peer | spread) | \(if .peer_name == "" then "-" else .peer_name end) | \(.ratio | spread) | \([.goals[] | goal] | join("; ")) | \(.goals | verdict) |"
