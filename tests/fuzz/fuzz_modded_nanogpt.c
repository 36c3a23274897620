/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/probe_fuzz.h"

PROBE_FUZZ(modded_nanogpt)
