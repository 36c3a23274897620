/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `fettle-agent sample BLOCKDIR...`: what the agent is on the other nodes of its allocation, one
 * process a node, told what to do on stdin (nodestep.h says how). It samples the node into the
 * block's directory, reads argv and environment of the ranks of this node, and ends what a trial
 * left here, also when stdin ends because the agent is dead. It claims nothing and starts no trial.
 */
#ifndef FETTLE_AGENT_NODESIDE_H
#define FETTLE_AGENT_NODESIDE_H

/* The program's exit status: 0, or 4 when the first block cannot be read. dirs ends with NULL. */
int nodeside_run(char **dirs);

#endif
