# SPDX-License-Identifier: GPL-2.0-or-later
# efficiency.jq : experiments/reports/efficiency.md from the rows of tests/bench/efficiency.sh: an array of surfaces with their rows.
def digits(n): if . == null then "-" else (. * pow(10; n) | round | fabs | tostring) as $s | (("0" * (n + 1 - ($s | length)) // "") + $s) as $s
	| (if . * pow(10; n) | round < 0 then "-" else "" end) + $s[:-n] + "." + $s[-n:] end;
def num: if . == null then "-" elif . >= 100 then round | tostring else digits(1) end;
def signed(n): if . == null then "-" else (if . >= 0 then "+" else "" end) + digits(n) end;
def percent: if . == null then "-" else 100 * . | signed(1) + " %" end;
# share of k in n with Wilson's 95 % interval, in percent
def wilson(k; n): if (n // 0) == 0 then null else 1.959964 as $z | (k / n) as $p | ((1 + $z * $z / n)) as $d
	| (($p + $z * $z / (2 * n)) / $d) as $m | ($z * (($p * (1 - $p) / n + $z * $z / (4 * n * n)) | sqrt) / $d) as $h
	| [$p, ([0, $m - $h] | max), ([1, $m + $h] | min)] end;
def share(k; n): wilson(k; n) | if . == null then "-" else map(100 * . | round) as [$p, $lo, $hi] | "\($p) [\($lo), \($hi)]" end;
def row(name): first(.rows[] | select(.procedure == name)) // null;
def like(text; apart): first(.rows[] | select((.procedure | startswith("Welch")) and (.procedure | contains(text)) and ((.procedure | endswith("each")) == apart))) // null;
def n_of: .procedure | capture("n (?<op>[=>]) (?<n>[0-9]+)") | if .op == ">" then "> \(.n)" else .n end;
def first_win: row("fettle, first win");
def whole: row("fettle, validated");
def one_round: row("fettle, one round");
def tpe: first(.rows[] | select(.procedure | startswith("TPE"))) // null;
def ratio(a; b): if a == null or b == null then null else a.runs / b.runs end;
def too_few: .procedure | contains("n >");
def times: if . == null then "-" else digits(2) end;
def is_recorded: .source | startswith("synthetic") | not;
def target: if . == null then "-" elif . >= 2 then "**\(times)**" else times end;
def helps: first_win.best_single_gain > 0;
def found: helps and first_win.best_single > 0;
def line(cells): "| " + (cells | map(tostring) | join(" | ")) + " |";
def header(cells): line(cells), ("|" + ("---|" * (cells | length)));

def surfaces_table:
	header(["surface", "what it is", "seeds from", "settings", "configurations", "best setting", "best of all", "noise: run, allocation", "a run"]),
	(.[] | line([.name, .title, .seed, first_win.arms - 1, first_win.configurations, (first_win.best_single_gain | percent),
		(first_win.best_gain | percent), "\(100 * (.truth.sd_run // 0.02) | digits(2)) %, \(100 * (.truth.sd_alloc // 0.03) | digits(2)) %", "\(.truth.trial_s) s on \(.gpus) GPU\(if .gpus > 1 then "s" else "" end)"]));

def welch_ratio: ratio(like("the best"; false); first_win);
def round_ratio: ratio(like("the best"; false); one_round);
def whole_ratio: ratio(like("all that pass"; false); whole);
def planned_ratio: ratio(row("planned"); first_win);
def planned_round: ratio(row("planned"); one_round);

def ratio_table:
	header(["surface", "fettle: first win", "found, %", "one round", "found, %", "Welch: n", "runs", "found, %", "/ first win", "/ one round", "planned n", "runs", "/ first win", "/ one round"]),
	(.[] | select(found) | like("the best"; false) as $w | row("planned") as $p
		| line([.name, "\(first_win.runs | num) ± \(2 * first_win.runs_se | num)", share(first_win.best_single; first_win.campaigns),
			(one_round.runs | num), share(one_round.best_single; one_round.campaigns), ($w | n_of), ($w.runs | num), share($w.best_single; $w.campaigns),
			(if $w | too_few then "never" else welch_ratio | target end), (if $w | too_few then "never" else round_ratio | target end), $p.n, $p.runs, (ratio($p; first_win) | target), (ratio($p; one_round) | target)]));

def whole_table:
	header(["surface", "fettle: runs", "GPU-hours", "found, %", "mean true gain", "of the best", "Welch, all that pass: n", "runs", "found, %", "mean true gain", "Welch / fettle"]),
	(.[] | select(helps) | .gpus as $g | like("all that pass"; false) as $w | line([.name, (whole.runs | num), (whole.seconds * $g / 3600 | digits(2)),
		share(whole.best; whole.campaigns), (whole.gain | percent), "\(100 * whole.gain / whole.best_gain | round) %", ($w | n_of), ($w.runs | num), share($w.best; $w.campaigns),
		($w.gain | percent), (if whole.best == 0 then "-" elif $w | too_few then "never" else whole_ratio | times end)]));

def null_table:
	header(["surface without what helps", "fettle", "Welch, the best", "Welch, all that pass", "best of 1", "best of 3", "grid"]),
	(.[] | . as $s | line([.name] + [(row("fettle, nothing helps"), like("the best"; false), like("all that pass"; false), row("best of 1"), row("best of 3"), row("grid, 3 runs each"))
		| share(.null_wins; .null_campaigns)]));

def real_table:
	header(["surface", "fettle, first win", "fettle, validated", "best of 1", "best of 3", "TPE", "grid", "Welch, all that pass"]),
	(.[] | . as $s | line([.name] + [(first_win, whole, row("best of 1"), row("best of 3"), tpe, row("grid, 3 runs each"), like("all that pass"; false))
		| if . == null then "-" else "\(share(.bad; .campaigns))\(if .not_real != .bad then "; \(100 * .not_real / .campaigns | round)" else "" end)" end]));

def all_rows:
	(.[] | . as $s | "", "**\(.title)** (`\(.name)`; seeds from \(.seed)). \(.source).", "",
		header(["procedure", "campaigns", "runs", "GPU-hours", "recommends, %", "the best, %", "not real, %", "has an idle part, %", "mean true gain", "said - true, points", "covered, %"]),
		(.rows[] | select(.procedure != "fettle, nothing helps" and .procedure != "planned" and (.procedure | endswith("each") and (startswith("grid") | not) | not))
			| line([.procedure, .campaigns, (.runs | num), (.seconds * $s.gpus / 3600 | digits(2)), share(.claims; .campaigns),
				share((if .procedure | test("first win|the best$|^best|one round") then .best_single else .best end); .campaigns),
				share(.not_real; .campaigns), share(.idle; .campaigns), (if .gain == null then "-" else .gain | percent end),
				(if .bias == null then "-" else "\(100 * .bias | signed(2))\(if .bias_se then " ± \(200 * .bias_se | digits(2))" else "" end)" end),
				share(.covered; .intervals)])));

def apart_table:
	header(["surface", "best of 1: not real, %", "best of 3: not real, %", "Welch: n", "runs", "found, %", "Welch / first win"]),
	(.[] | select(found) | like("the best"; true) as $w | line([.name, (row("best of 1, a job each") | share(.bad; .campaigns)), (row("best of 3, a job each") | share(.bad; .campaigns)),
		($w | n_of), ($w.runs | num), share($w.best_single; $w.campaigns), "\(if $w | too_few then "more than " else "" end)\(ratio($w; first_win) | times)"]));

# "one-2 (2.9), one-5 (3.1)"; "none"
def with(f): if length == 0 then "none" else map("`\(.name)` (\(f))") | join(", ") end;
# of all campaigns of these surfaces together: share of those that f counts among n
def together(f; k; n): map(f) | map(select(. != null)) | if length == 0 then "-" else share((map(k) | add); (map(n) | add)) + " %" end;
def nulls: map(select(helps | not));

def prose:
	map(select(found)) as $found
	| map(select(whole.best > 0)) as $done | ($found | map(select(like("the best"; false) | too_few))) as $never | ($found - $never) as $found
	| "- **Runs until one proved gain.** Asked for: fixed n takes at least twice as many as fettle. With the n that has fettle's power on the very gain, which nobody can know, it does on \($found | map(select(welch_ratio >= 2)) | length) of \($found + $never | length) surfaces on which a setting helps, counted to the first win: \($found | map(select(welch_ratio >= 2)) | with(welch_ratio | times))\($never | map(", and on `\(.name)` no n up to 64 finds as much: the longer one runs, the more drift one measures") | add // ""). **Missed** on \($found | map(select(welch_ratio < 2)) | with(welch_ratio | times)).",
	  "- With the n that one would plan it does on \($found + $never | map(select(planned_ratio >= 2)) | length): \($found + $never | map(select(planned_ratio >= 2)) | with(planned_ratio | times)). Missed on \($found | map(select(planned_ratio < 2)) | with(planned_ratio | times)). fettle stops at a gain that is larger than what it has to be ready for; fixed n cannot.",
	  "- With final blocks and soak (one round) the ratio to planned n is \($found + $never | map(planned_round) | "\(min | times) to \(max | times)"), to the other \($found | map(round_ratio) | "\(min | times) to \(max | times)"). **fettle takes more runs than planned n** on \($found | map(select(planned_round < 1)) | with(planned_round | times)). Where a gain is many times the noise, two or three runs of each setting show it: A/A, screen, three pairs, final blocks and soak are \($found | map(one_round.runs) | min | num) runs at the least. They buy the noise, which fixed n was told here, and an estimate that nothing chose.",
	  "- **Whole campaigns** look for further gains after the last one, take each winner out in turn and measure the rest anew. They take more runs than one test of all settings at fixed n on \($done | map(select(whole_ratio < 1)) | with(whole_ratio | times)); on \($done | map(select(like("all that pass"; false) | too_few)) | map("`\(.name)`") | join(", ")) no n up to 64 finds as often what they find. Fixed n takes at least twice as many on \($done | map(select((like("all that pass"; false) | too_few | not) and whole_ratio >= 2)) | with(whole_ratio | times)): **missed**.",
	  "- **Error.** With what helps taken away, \(together(row("fettle, nothing helps"); .null_wins; .null_campaigns)) of fettle's campaigns on all surfaces accept something (promised: at most 5 %), \(together(like("the best"; false); .null_wins; .null_campaigns)) of Welch's; of best of 1 \(together(row("best of 1"); .null_wins; .null_campaigns)), of best of 3 \(together(row("best of 3"); .null_wins; .null_campaigns)), of the grid \(together(row("grid, 3 runs each"); .null_wins; .null_campaigns)).",
	  "- **Winners that are not real.** On surfaces where nothing helps: of fettle's validated configurations \(nulls | together(whole; .bad; .campaigns)) of campaigns, of TPE with three runs a trial \(nulls | together(tpe; .bad; .campaigns)). On those where something does, the winner of the grid carries an idle or harmful part in \(map(select(helps)) | together(row("grid, 3 runs each"); .bad; .campaigns)) of campaigns, that of TPE in \(map(select(helps)) | together(tpe; .bad; .campaigns)), that of fettle in \(map(select(helps)) | together(whole; .bad; .campaigns)): among many configurations the luckiest wins, and what does nothing is not taken out. Where one setting takes the gain from another, all that pass Welch's test carry such a part, too: \(map(select(helps and like("all that pass"; false).bad >= 0.5 * like("all that pass"; false).campaigns)) | with(like("all that pass"; false) | "\(share(.bad; .campaigns)) %")).",
	  "- **What is said of the gain.** fettle's final estimates are off by \(map(whole | select(.estimates >= 10)) | map(100 * .bias) | "\(min | signed(2)) to \(max | signed(2))") points on average, and \(together(whole; .covered; .intervals)) of their intervals hold the truth. Estimates at the first win: \(map(first_win | select(.estimates >= 10)) | map(100 * .bias) | "\(min | signed(2)) to \(max | signed(2))") points; of best of 1 \(map(row("best of 1") | select(.estimates >= 10)) | map(100 * .bias) | "\(min | signed(2)) to \(max | signed(2))"), of TPE \(map(tpe | select(. != null and .estimates >= 10)) | map(100 * .bias) | "\(min | signed(2)) to \(max | signed(2))").",
	  "- **Where fettle is worse.** Settings that help only together (`only-together`) it finds in \(map(select(.name == "only-together")) | together(whole; .best; .campaigns)) of campaigns, TPE in \(map(select(.name == "only-together")) | together(tpe; .best; .campaigns)) with as many runs, the grid in \(map(select(.name == "only-together")) | together(row("grid, 3 runs each"); .best; .campaigns)) with \(map(select(.name == "only-together") | row("grid, 3 runs each").runs)[0]). The best on all surfaces with a gain is found by whole campaigns in \(map(select(helps)) | together(whole; .best; .campaigns)), by TPE with the same number of runs in \(map(select(helps)) | together(tpe; .best; .campaigns)): a search that need not prove anything finds more, and says so little of what it found that its winners have to be measured again. Best of 3 keeps the best single setting in \(map(select(found)) | together(row("best of 3"); .best_single; .campaigns)) where one helps, with \(map(select(found) | row("best of 3").runs) | "\(min) to \(max)") runs, fewer than fettle's first win takes (which has it in \(map(select(found)) | together(first_win; .best_single; .campaigns))): whoever knows that something helps needs no proof. It cannot say whether anything does. Without noise (`memory-h200`) one run of each setting is enough, and fettle does not see that.";
