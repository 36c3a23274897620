# SPDX-License-Identifier: GPL-2.0-or-later
# fit.py [--check] FILE... : the truth of a recorded surface from its own "blocks", written back into the file; with --check
# nothing is written, and a truth that does not follow from the blocks is an error.
#
# Values of a block are one pass over arms (an arm is "knob=value knob=value" or "default"; more is better). Model: log value =
# arm + block + noise. An arm's effect within two standard errors of none is none; one of several settings counts as far as it
# differs from the product of its parts. sd_run is the residual, sd_alloc what blocks differ by beyond it. With "groups", arms
# that differ much in noise: effects are ratios of geometric means, and each group (arms with one of its texts) has a noise of its own.
import collections
import json
import math
import sys


def spread(values):
    mean = sum(values) / len(values)
    return sum((v - mean) ** 2 for v in values)


def two_way(obs, blocks):
    arms, shift = {}, [0.0] * blocks
    for _ in range(2000):
        for effects, at, other in ((arms, 1, lambda o: shift[o[0]]), (shift, 0, lambda o: arms[o[1]])):
            rest = collections.defaultdict(list)
            for o in obs:
                rest[o[at]].append(o[2] - other(o))
            for key, values in rest.items():
                effects[key] = sum(values) / len(values)
    ssr = sum((y - arms[a] - shift[b]) ** 2 for b, a, y in obs)
    return arms, shift, math.sqrt(ssr / (len(obs) - len(arms) - blocks + 1))


def text_of(arm):
    return " ".join("--" + part for part in arm.split())


def fit(surface):
    obs = [(b, arm, math.log(v)) for b, block in enumerate(surface["blocks"]) for arm, values in block.items()
           for v in (values if isinstance(values, list) else [values])]
    by_arm = collections.defaultdict(list)
    for b, arm, y in obs:
        by_arm[arm].append(y)
    groups = surface.get("groups")
    truth = dict(surface["truth"])
    if groups:
        level = {arm: sum(v) / len(v) for arm, v in by_arm.items()}
        group_of = {arm: next((i for i, g in enumerate(groups) if any(t in text_of(arm).split() for t in g)), -1) for arm in by_arm}
        noise = {}
        for g in set(group_of.values()):
            of = [v for arm, v in by_arm.items() if group_of[arm] == g]
            noise[g] = math.sqrt(sum(spread(v) for v in of) / sum(len(v) - 1 for v in of))
        sd = {arm: noise[group_of[arm]] for arm in by_arm}
        truth["sd_run"], truth["sd_alloc"] = round(noise[-1], 5), 0
        truth["noisier"] = {t: round(noise[i] / noise[-1], 4) for i, g in enumerate(groups) for t in g}
    else:
        level, shift, s = two_way(obs, len(surface["blocks"]))
        sd = dict.fromkeys(by_arm, s)
        size = len(obs) / len(shift)
        truth["sd_run"] = round(s, 5)
        truth["sd_alloc"] = round(math.sqrt(max(0, spread(shift) / (len(shift) - 1) - s * s / size)), 5) if len(shift) > 2 else 0
    var = {arm: sd[arm] ** 2 / len(v) for arm, v in by_arm.items()}
    kept, effects = {"default": 0.0}, {}
    for arm in sorted(by_arm, key=lambda a: (len(a.split()), a)):
        if arm == "default":
            continue
        parts = [p for p in arm.split() if p in kept] if " " in arm else []
        base = max(parts, key=lambda p: len(by_arm[p])) if parts else "default"
        expected = kept[base] + sum(kept[p] for p in parts if p != base)
        beyond = level[arm] - level[base] - (expected - kept[base])
        beyond = beyond if abs(beyond) > 2 * math.sqrt(var[arm] + var[base]) else 0.0
        kept[arm] = expected + beyond
        if beyond:
            effects[text_of(arm)] = round(math.expm1(beyond), 5)
    for text, like in surface.get("alike", {}).items():
        effects[text] = effects[like]
    truth["effects"] = effects
    return truth


def main():
    check = sys.argv[1] == "--check"
    for path in sys.argv[1 + check:]:
        with open(path, encoding="utf-8") as f:
            surface = json.load(f)
        if "blocks" not in surface:
            continue
        truth = fit(surface)
        if check and truth != surface["truth"]:
            sys.exit(f"{path}: the truth does not follow from the blocks: {truth}")
        if not check:
            surface["truth"] = truth
            lines = [f"\t{json.dumps(k)}: " + ("[\n" + ",\n".join("\t\t" + json.dumps(b) for b in v) + "\n\t]" if k == "blocks" else json.dumps(v))
                     for k, v in surface.items()]
            with open(path, "w", encoding="utf-8") as f:
                f.write("{\n" + ",\n".join(lines) + "\n}\n")


main()
