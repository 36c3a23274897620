/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fuzz/import_fuzz.h"

IMPORT_FUZZ(IMPORT_CSV)
