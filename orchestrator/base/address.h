/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Addresses of small HTTP services: "http://localhost:9400/metrics". A static program cannot look
 * names up (that needs the libc of the machine that it runs on), so the host is an IPv4 address or
 * `localhost`.
 */
#ifndef FETTLE_BASE_ADDRESS_H
#define FETTLE_BASE_ADDRESS_H

#include <netinet/in.h>

/* NULL, or what is wrong with it (static). *host and *path (heap) may be set in either case; path
 * "/metrics" where there is none. */
const char *address_read(const char *url, struct sockaddr_in *to, char **host, char **path);

/* The same without taking it apart. */
const char *address_fault(const char *url);

#endif
