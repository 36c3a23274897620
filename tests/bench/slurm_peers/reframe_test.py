# SPDX-License-Identifier: GPL-2.0-or-later
# N no-op tests of ReFrame, for slurm_peers.sh.
import os

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, sanity_function


@rfm.simple_test
class NoOp(rfm.RunOnlyRegressionTest):
    number = parameter(range(int(os.environ["BENCH_N"])))
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "/bin/true"
    exclusive_access = True
    time_limit = "1m"

    @sanity_function
    def ended(self):
        return sn.assert_true(1)
