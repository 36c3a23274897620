# SPDX-License-Identifier: GPL-2.0-or-later
"""optuna_trials.py URL N [SAMPLER]: N trials of five parameters, asked and told, in Optuna's storage at URL; the work of a
trial is nothing. SAMPLER: random (default) or tpe. For tests/bench/trial.sh and readers.sh."""
import sys

import optuna

optuna.logging.set_verbosity(optuna.logging.WARNING)
sampler = optuna.samplers.TPESampler(seed=1) if sys.argv[3:] == ["tpe"] else optuna.samplers.RandomSampler(seed=1)
study = optuna.create_study(storage=sys.argv[1], study_name="bench", sampler=sampler, load_if_exists=True)
for i in range(int(sys.argv[2])):
    trial = study.ask()
    value = trial.suggest_int("workers", 1, 16) + trial.suggest_int("prefetch", 1, 8) + trial.suggest_int("threads", 1, 32)
    value += {"ring": 1, "tree": 2}[trial.suggest_categorical("algorithm", ["ring", "tree"])]
    value += {"simple": 1, "ll": 2, "ll128": 3}[trial.suggest_categorical("protocol", ["simple", "ll", "ll128"])]
    study.tell(trial, value)
