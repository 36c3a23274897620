/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scrapes of the dcgm-exporter that sites run on each node: one small HTTP GET a second at most,
 * its text appended to a file with the time before it, as probes/probe_dcgm_exporter.c reads it.
 * The agent is static and cannot look names up (that needs the libc of the node): the host is an
 * IPv4 address or `localhost`. A node without an exporter costs one refused connection a scrape.
 */
#ifndef FETTLE_AGENT_DCGM_H
#define FETTLE_AGENT_DCGM_H

struct dcgm;

/* url: "http://localhost:9400/metrics" (base/address.h). *out stays NULL if it is none or the file
 * cannot be written. */
void dcgm_open(const char *url, const char *path, struct dcgm **out);
void dcgm_close(struct dcgm *d); /* NULL is fine */
/* Scrape if the last one is a second old. What goes wrong is left out: the next one may work. */
void dcgm_take(struct dcgm *d);

#endif
