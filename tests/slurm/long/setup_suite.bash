# SPDX-License-Identifier: GPL-2.0-or-later
source "$(dirname "${BASH_SOURCE[0]}")/../setup_suite.bash"
