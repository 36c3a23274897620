# SPDX-License-Identifier: GPL-2.0-or-later
"""A year of nights in ReFrame's results database, for tests/bench/trend.sh. As a check of ReFrame's (`reframe -c`): a
performance test that does nothing. As a program, reframe_year.py DB SERIES NIGHTS: what ReFrame itself stored of
one run of this check in DB is stored again for each of SERIES and NIGHTS, the last of them today."""
import copy
import json
import random
import sqlite3
import sys
import time

import reframe as rfm
import reframe.utility.sanity as sn

DAY_S = 86400


@rfm.simple_test
class bench(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "echo rate=100"

    @sanity_function
    def ran(self):
        return sn.assert_found(r"rate=", self.stdout)

    @performance_function("samples/s")
    def rate(self):
        return sn.extractsingle(r"rate=(\S+)", self.stdout, 1, float)


def main(path, series, nights):
    db = sqlite3.connect(path)
    [[blob]] = db.execute("SELECT json_blob FROM sessions").fetchall()
    report = json.loads(blob)
    model = report["runs"][0]["testcases"][0]
    rng = random.Random(1)
    now = time.time()
    text = json.dumps(model)
    db.execute("DELETE FROM testcases")
    db.execute("DELETE FROM sessions")
    for night in range(nights):
        at = now - 3600 - (nights - 1 - night) * DAY_S
        uuid = f"night{night}"
        session = copy.deepcopy(report)
        session["session_info"].update(uuid=uuid, time_start_unix=at - 60, time_end_unix=at)
        cases = []
        for s in range(series):
            case = json.loads(text)
            name = f"bench_{s}"
            value = 100 * (1 + 0.02 * rng.gauss(0, 1))
            case.update(name=name, display_name=name, unique_name=name, uuid=f"{uuid}:0:{s}", job_completion_time_unix=at)
            case["perfvalues"] = {k: [value, *v[1:]] for k, v in case["perfvalues"].items()}
            cases.append(case)
        session["runs"][0].update(testcases=cases, num_cases=series)
        db.execute("INSERT INTO sessions VALUES(?, ?, ?, ?, ?)", (uuid, at - 60, at, json.dumps(session), None))
        db.executemany("INSERT INTO testcases VALUES(?, ?, ?, ?, ?, ?, ?)",
                       [(c["name"], c["system"], c["partition"], c["environ"], at, uuid, c["uuid"]) for c in cases])
    db.commit()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
