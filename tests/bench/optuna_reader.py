# SPDX-License-Identifier: GPL-2.0-or-later
"""optuna_reader.py URL READY STOP PAUSE: looks at the study, its trials and the best of them until the file STOP is there; makes the file READY
before. Prints: looks errors. For tests/bench/readers.sh."""
import os
import sys
import time

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
url, ready, stop, pause = sys.argv[1:]
looks = errors = 0
open(ready, "w").close()
while not os.path.exists(stop):
    try:
        study = optuna.load_study(study_name="bench", storage=url)
        assert study.trials and study.best_value
    except Exception as e:  # whatever a reader would have seen
        errors += 1
        print(e, file=sys.stderr)
    looks += 1
    time.sleep(float(pause))
print(looks, errors)
