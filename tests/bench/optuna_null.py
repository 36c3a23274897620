# SPDX-License-Identifier: GPL-2.0-or-later
# optuna_null.py : what Optuna at its defaults reports where no setting does anything: a search of ten switches, a run a
# trial, noise of a run 2 %. Printed: how much better than one run of the default its best trial looks, on average, and
# how often it looks better by 1 % or more. fettle in the same world: rows 2 and 12 of experiments/reports/verdicts.md.
#   python3 -m venv build/optuna && build/optuna/bin/pip install optuna==4.5.0
#   build/optuna/bin/python tests/bench/optuna_null.py [STUDIES [TRIALS]]
import math
import random
import sys

import optuna

NOISE = 0.02
SWITCHES = [f"knob{i}" for i in range(10)]


def main():
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    trials = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    noise = random.Random(20261129)
    gains = []
    for seed in range(studies):
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

        def run(trial):
            for name in SWITCHES:
                trial.suggest_categorical(name, [False, True])
            return math.exp(noise.gauss(0, NOISE))

        default = math.exp(noise.gauss(0, NOISE))
        study.optimize(run, n_trials=trials)
        gains.append(study.best_value / default - 1)
    print(f"optuna {optuna.__version__}, {studies} studies of {trials} trials, noise {100 * NOISE:.0f} %, nothing helps:")
    print(f"the best trial looks {100 * sum(gains) / studies:+.1f} % better than one run of the default; by 1 % or more in "
          f"{100 * sum(g >= 0.01 for g in gains) / studies:.0f} % of studies")


main()
