# SPDX-License-Identifier: GPL-2.0-or-later
# efficiency_tpe.py SURFACE CAMPAIGNS BUDGET REPEATS ORACLE... : Optuna's TPE at its defaults on a surface of tests/bench/surfaces:
# a study a campaign, in memory; the default is the first trial; a trial is the mean of REPEATS runs, which the command ORACLE
# (tests/bench/efficiency.c) measures; BUDGET runs in all. Prints a record a campaign for `efficiency judge`: the best trial.
import json
import subprocess
import sys

import optuna


def main():
    path, campaigns, budget, repeats, oracle = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
    with open(path, encoding="utf-8") as f:
        surface = json.load(f)
    trials = max(2, int(budget / repeats))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with subprocess.Popen(oracle, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as measure:
        for seed in range(surface["seed"], surface["seed"] + campaigns):
            study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
            study.enqueue_trial(dict.fromkeys(surface["knobs"], "default"))
            runs = 0

            def value(trial):
                nonlocal runs
                chosen = {k: trial.suggest_categorical(k, ["default"] + v) for k, v in surface["knobs"].items()}
                settings = " ".join(f"the_{k}={v}" for k, v in chosen.items() if v != "default")
                trial.set_user_attr("settings", settings)
                total = 0.0
                for _ in range(repeats):
                    measure.stdin.write(f"{seed} {runs} {settings}\n")
                    total += float(measure.stdout.readline())
                    runs += 1
                return total / repeats

            study.optimize(value, n_trials=trials)
            settings = study.best_trial.user_attrs["settings"]
            est = study.best_value / study.trials[0].value - 1
            print(f"TPE, {repeats} runs a trial", runs, runs * surface["truth"]["trial_s"], est if settings else "", "", "",
                  1 if settings else 0, settings, sep="\t")
        measure.stdin.close()


main()
