# SPDX-License-Identifier: GPL-2.0-or-later
"""monitoring.py TEXTFILE RECIPES: does what we ship for Prometheus and Grafana fit what we write?

Names that rules, dashboard and documentation use against those of the textfile; the dashboard's form,
as Grafana's schema of dashboards (kinds/dashboard, schema version 36) has it. Prints a unit test of
the rules for promtool, made of the textfile's own samples: at time 0 every night has just ended.
"""
import json
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
recipes = sys.argv[2]
rules = open(recipes + "/fettle-rules.yml", encoding="utf-8").read()
board = json.load(open(recipes + "/fettle-dashboard.json", encoding="utf-8"))
readme = open(recipes + "/README.md", encoding="utf-8").read()

SAMPLE = re.compile(r'^(fettle_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def unescape(s):
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), s)


samples = []
for line in text.splitlines():
    if not line.startswith("#"):
        m = SAMPLE.match(line)
        assert m, "not a sample: " + line
        samples.append((m[1], m[2], {k: unescape(v) for k, v in LABEL.findall(m[2])}, m[3]))
written = {s[0] for s in samples}


def names(s):
    return set(re.findall(r"\bfettle_[a-z_]+", s))


# -- names ---------------------------------------------------------------------------------------
documented = set(re.findall(r"^\| `(fettle_\w+)` \|", readme, re.M))
assert documented == written, documented ^ written
assert names(rules) and names(rules) <= written, names(rules) - written
used = names(json.dumps(board["panels"]) + json.dumps(board["templating"]) + json.dumps(board["annotations"]))
assert used and used <= written, used - written
for name, _, labels, _ in samples:
    row = re.search(r"^\| `%s` \|[^|]*\|([^|]*)\|" % name, readme, re.M)[1]
    told = set(re.findall(r"`(\w+)`", row))
    if "those of a series" in row:
        told |= {"series", "workload", "place", "metric", "stat", "unit", "role", "source"}
    assert set(labels) == told | {"workspace"}, (name, set(labels) ^ told)

# -- form of the dashboard -----------------------------------------------------------------------
# All that the schema knows of a dashboard and of a panel: it is closed.
BOARD = """uid title description tags style timezone editable graphTooltip time timepicker fiscalYearStartMonth liveNow
    weekStart refresh schemaVersion version panels templating annotations links""".split()
PANEL = """type id tags targets title description transparent datasource gridPos links repeat maxDataPoints
    transformations interval timeFrom timeShift options fieldConfig""".split()
FIELD = """displayName description filterable unit decimals min max mappings thresholds color links noValue custom""".split()
assert set(board) <= set(BOARD), set(board) - set(BOARD)
for p in board["panels"]:
    assert set(p) <= set(PANEL), set(p) - set(PANEL)
    assert set(p["fieldConfig"]["defaults"]) <= set(FIELD), p["title"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
assert board["schemaVersion"] == 36 and 8 <= len(board["uid"]) <= 40 and board["title"]
assert "id" not in board, "an id belongs to one Grafana"
variables = {v["name"]: v for v in board["templating"]["list"]}
for v in variables.values():
    assert v["type"] in ("query", "datasource") and v["hide"] in (0, 1, 2) and v["skipUrlSync"] is False
    assert v["type"] == "datasource" or v["datasource"] == SOURCE
for a in board["annotations"]["list"]:
    assert a["name"] and a["datasource"] == SOURCE and isinstance(a["enable"], bool) and a["iconColor"]
taken, ids = set(), set()
for p in board["panels"]:
    g = p["gridPos"]
    assert p["type"] in ("stat", "table", "timeseries") and p["title"] and p["description"]
    assert p["id"] not in ids and p["datasource"] == SOURCE
    ids.add(p["id"])
    assert g["h"] > 0 and 0 < g["w"] <= 24 and g["x"] + g["w"] <= 24
    cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
    assert not cells & taken, "panels lie on one another: " + p["title"]
    taken |= cells
    assert set(p["fieldConfig"]) == {"defaults", "overrides"}
    steps = p["fieldConfig"]["defaults"].get("thresholds", {"steps": []})["steps"]
    assert [s["value"] for s in steps][:1] in ([], [None])
    assert len({t["refId"] for t in p["targets"]}) == len(p["targets"]) > 0
    for t in p["targets"]:
        assert t["datasource"] == SOURCE and t["expr"] and t["instant"] != t["range"]
queries = [t["expr"] for p in board["panels"] for t in p["targets"]] + [a["expr"] for a in board["annotations"]["list"]]
for q in queries + [v["query"]["query"] for v in variables.values() if v["type"] == "query"]:
    assert set(re.findall(r"\$(\w+)", q)) <= set(variables), q

# -- a unit test of the rules --------------------------------------------------------------------
HOUR, DAYS = 3600, 24 * 3600
series = []
for name, inner, _, value in samples:
    value = "0" if name.endswith("_timestamp_seconds") else value
    series.append({"series": "%s{%s}" % (name, inner), "values": "%s+0x250" % value})


def alert(labels, severity, summary, description):
    return {
        # to Prometheus a label that is empty is none
        "exp_labels": dict({k: v for k, v in labels.items() if v}, severity=severity),
        "exp_annotations": {"summary": summary, "description": description},
    }


def all_of(name):
    return [(labels, value) for n, _, labels, value in samples if n == name]


open_ones = {
    labels["regression"]
    for labels, value in all_of("fettle_regression_open")
    if labels["kind"] == "worse" and labels["level"] == "confirmed" and value == "1"
}
assert open_ones, "nothing to alert of"
regressions = [
    alert(
        labels,
        "warning",
        "%s of %s changed by %.4g%% on %s" % (labels["metric"], labels["workload"], 100 * float(value), labels["night"]),
        "Measured again and confirmed. All about it, with what changed then: fettle regressions show %s. "
        "The alert ends with fettle regressions ack, fix or accept." % labels["regression"],
    )
    for labels, value in all_of("fettle_regression_change_ratio")
    if labels["regression"] in open_ones
]
missing = [
    alert(
        labels,
        "warning",
        "No night of fettle came to its end for 1d 13h 0m 0s",
        "Workspace %s: see the log of the timer or cron job that runs fettle nightly." % labels["workspace"],
    )
    for labels, _ in all_of("fettle_night_completed_timestamp_seconds")
]
stale = [
    alert(
        labels,
        "info",
        "%s of %s was not measured for 9d 0h 0m 0s" % (labels["metric"], labels["workload"]),
        "Its canary was not due, had no nodes, or failed: fettle history %s." % labels["series"],
    )
    for labels, _ in all_of("fettle_series_last_night_timestamp_seconds")
    if labels["source"] == "canary" and labels["role"] == "current"
]
assert missing and stale


def at(hours, name, alerts):
    return {"eval_time": "%dh" % hours, "alertname": name, "exp_alerts": alerts}


test = {
    "interval": "1h",
    "input_series": series,
    "alert_rule_test": [
        at(2, "FettleRegression", regressions),
        at(2, "FettleNightMissing", []),
        at(37, "FettleNightMissing", missing),
        at(2, "FettleNightNeedsSomebody", []),
        at(48, "FettleSeriesStale", []),
        at(216, "FettleSeriesStale", stale),
    ],
    # every query of the dashboard finds something
    "promql_expr_test": [
        {
            "expr": "count(%s) > bool 0" % re.sub(r"\$\w+", ".*", q),
            "eval_time": "0h" if "offset" in q else "2h",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for q in queries
    ],
}
failed = {
    "interval": "1h",
    "input_series": [{"series": s["series"], "values": "4+0x10"} for s in series if "night_status" in s["series"]],
    "alert_rule_test": [
        at(
            2,
            "FettleNightNeedsSomebody",
            [
                alert(
                    labels,
                    "warning",
                    "The last night of fettle needs somebody",
                    "Workspace %s: the page of the night says what for." % labels["workspace"],
                )
                for labels, _ in all_of("fettle_night_status")
            ],
        )
    ],
}
# JSON is YAML
json.dump({"rule_files": [recipes + "/fettle-rules.yml"], "evaluation_interval": "1h", "tests": [test, failed]}, sys.stdout)
