/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

/* Numbers, not the names of slurm_errno.h: this file must compile and be tested without it. */
enum {
	TRANSPORT_LAST = 1999, /* from 1000: SLURM_* and SLURMCTLD_COMMUNICATIONS_* */
	PROTOCOL_VERSION = 1005,
	AUTHENTICATION = 1007,
	INVALID_JOB_ID = 2017,
	INVALID_NODE_NAME = 2018,
	ALREADY_DONE = 2021,
	NO_CONTROLLER = 1800,
	SOCKET_TIMED_OUT = 5004,
	SOCKET_FIRST = 5000,
	SOCKET_LAST = 5999, /* SLURM_PROTOCOL_SOCKET_*: 5004 timed out, 5005 cut short */
	AUTH_FIRST = 6000,
	AUTH_LAST = 6999,
};

/* It ends the connection of a message that munge does not accept, and says why in its log only. */
#define HUNG_UP                                                                                 \
	"slurmctld hung up: it has just been started, or munge does not accept this machine's " \
	"messages: is the clock the same here as there (munge bears 5 minutes), and the key?"

static const struct known {
	int number;
	const char *text; /* the beginning of Slurm's own, which its commands print */
	enum err_code class;
	const char *advice;
} known[] = {
	{EAGAIN, "Resource temporarily unavailable", ERR_TEMP,
	 "the cluster holds as many jobs as it may (MaxJobCount)"},
	{PROTOCOL_VERSION, "Incompatible versions of client and server code", ERR_RECIPE,
	 "client and controller are of different Slurm releases: rebuild fettle-slurm "
	 "against the cluster's own slurm.h"},
	{AUTHENTICATION, "Protocol authentication error", ERR_TEMP,
	 "munge refused: is munged running here, with the cluster's key and time?"},
	{2000, "Invalid partition name specified", ERR_NOT_FOUND,
	 "`sinfo -s` lists the partitions"},
	{2001, "No partition specified or system default partition", ERR_RECIPE,
	 "the cluster has no default partition: name one"},
	{2002, "Access/permission denied", ERR_RECIPE, NULL},
	{2003, "User's group not permitted to use this partition", ERR_RECIPE,
	 "your groups may not use this partition"},
	{2004, "Requested nodes not in this partition", ERR_RECIPE,
	 "the named nodes are not in this partition"},
	{2006, "Node count specification invalid", ERR_RECIPE,
	 "the number of nodes is outside the limits of the partition: `scontrol show partition`"},
	{2014, "Requested node configuration is not available", ERR_RECIPE,
	 "no set of nodes has what is asked for (cpus, memory, gpus a node, constraint)"},
	{2015, "Requested partition configuration not available now", ERR_RECIPE,
	 "the request is beyond a limit of the partition (MaxNodes, MaxTime): `scontrol show "
	 "partition`"},
	{2016, "Requested nodes are busy", ERR_TEMP, NULL},
	{INVALID_JOB_ID, "Invalid job id specified", ERR_NOT_FOUND, NULL},
	{INVALID_NODE_NAME, "Invalid node name specified", ERR_NOT_FOUND,
	 "`sinfo -N` lists the nodes"},
	{2027, "Slurm backup controller in standby mode", ERR_TEMP,
	 "this controller is the backup, in standby"},
	{2029, "Invalid feature specification", ERR_NOT_FOUND,
	 "`sinfo -o %f` lists the features that a constraint may name"},
	{2045, "Invalid account or account/partition combination specified", ERR_RECIPE,
	 "`sacctmgr show assoc user=$USER` lists your accounts"},
	{2048, "Invalid license specification", ERR_NOT_FOUND,
	 "`scontrol show licenses` lists the licences"},
	{2050, "Job violates accounting/QOS policy", ERR_TEMP,
	 "a limit of your account or QOS is reached (MaxSubmitJobs and the like)"},
	{2051, "Requested time limit is invalid", ERR_RECIPE,
	 "the time limit is beyond the partition's MaxTime"},
	{2052, "Access denied to requested reservation", ERR_RECIPE,
	 "this reservation is not for you: `scontrol show reservation`"},
	{2053, "Requested reservation is invalid", ERR_NOT_FOUND,
	 "`scontrol show reservation` lists the reservations"},
	{2056, "Requested reservation not usable now", ERR_RECIPE,
	 "the reservation cannot be used now: `scontrol show reservation`"},
	{2066, "Invalid qos specification", ERR_RECIPE,
	 "`sacctmgr show assoc user=$USER format=account,qos` lists what you may use"},
	{2070, "Required partition not available", ERR_RECIPE,
	 "the partition is not available to you"},
	{2072, "Invalid generic resource (gres) specification", ERR_RECIPE,
	 "the cluster has no such generic resource: `sinfo -o %G`"},
	{2101, "Partition in DOWN state", ERR_TEMP, "the partition is down"},
	{2105, "System submissions disabled", ERR_TEMP,
	 "the controller takes no jobs at the moment"},
	{2115, "Invalid Trackable RESource (TRES) specification", ERR_RECIPE,
	 "generic resource not understood"},
	{2119, "Invalid GRES specification", ERR_RECIPE,
	 "the cluster has no generic resource of this type: `sinfo -o %G`"},
	{2125, "Immediate execution impossible", ERR_TEMP, NULL},
	{1802, "Unable to contact slurm controller (receive failure)", ERR_TEMP, HUNG_UP},
	{NO_CONTROLLER, "Unable to contact slurm controller", ERR_TEMP,
	 "the controller cannot be reached: `scontrol ping`"},
	{SOCKET_TIMED_OUT, "Socket timed out on send/recv operation", ERR_TEMP,
	 "slurmctld took longer than MessageTimeout: it is busy, hangs, or waits for a name server "
	 "that is to know this machine: `scontrol ping`, `sdiag`"},
	{5005, "Zero Bytes were transmitted or received", ERR_TEMP, HUNG_UP},
	{2009, "Job script not specified", ERR_RECIPE, NULL},
	{2021, "Job/step already completing or completed", ERR_RECIPE, NULL},
	{2038, "Job dependency problem", ERR_RECIPE,
	 "the job to wait for is unknown: Slurm forgets jobs minutes after their end"},
	{SLURM_ERRORS_NO_CONF, "Could not establish a configuration source", ERR_NOT_FOUND,
	 "run fettle where `sinfo` answers, as on a login node of the cluster, let SLURM_CONF name "
	 "the cluster's slurm.conf, or use scheduler local"},
	{6000, "Invalid authentication credential", ERR_TEMP,
	 "munge refused: is munged running here, with the cluster's key and time?"},
};

static const struct known *look_up(int number)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].number == number)
			return &known[i];
	return NULL;
}

/* Below 1000 are the system's own errors, which come from sockets here; 0 and -1: libslurm
 * did not say what it was, as when the other side speaks a newer protocol. */
static bool is_transport(int number)
{
	return number <= TRANSPORT_LAST || (number >= SOCKET_FIRST && number <= SOCKET_LAST) ||
	       (number >= AUTH_FIRST && number <= AUTH_LAST);
}

enum err_code slurm_errors_class(int number)
{
	const struct known *k = look_up(number);

	if (k)
		return k->class;
	return is_transport(number) ? ERR_TEMP : ERR_RECIPE;
}

const char *slurm_errors_advice(int number)
{
	const struct known *k = look_up(number);

	if (k)
		return k->advice;
	return is_transport(number) ? "the controller cannot be reached: `scontrol ping`" : NULL;
}

int slurm_errors_number(const char *words)
{
	/* What only munge, the system and the commands say. */
	static const struct {
		const char *text;
		int number;
	} others[] = {{"Munge encode failed", AUTHENTICATION},
		      {"Protocol authentication error", AUTHENTICATION},
		      {"Invalid MUNGE", AUTHENTICATION},
		      {"Unable to process configuration file", SLURM_ERRORS_NO_CONF},
		      {"Invalid node list specified", INVALID_NODE_NAME},
		      {"getaddrinfo() failed", NO_CONTROLLER},
		      {"Connection refused", NO_CONTROLLER},
		      {"Connection timed out", NO_CONTROLLER}};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strstr(words, others[i].text))
			return others[i].number;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcasestr(words, known[i].text))
			return known[i].number;
	return SLURM_ERRORS_UNKNOWN;
}

/* Without the number that it ends with: libslurm counts its attempts in its lines. */
static size_t without_number(const char *line, size_t n)
{
	while (n > 0 && strchr("-0123456789", line[n - 1]))
		n--;
	return n;
}

static const char *skip(const char *text, const char *prefix)
{
	return text + (str_starts(text, prefix) ? strlen(prefix) : 0);
}

void slurm_errors_put_lines(struct buf *out, const char *said, const char *before)
{
	while (said && *said) {
		const char *line = skip(skip(said, "fettle-slurm: "), "error: "), *next = line;
		size_t n = strcspn(line, "\n"), alike = without_number(line, n);
		int times = 0;

		do {
			times++;
			said = next + strcspn(next, "\n");
			said += *said == '\n';
			next = skip(skip(said, "fettle-slurm: "), "error: ");
		} while (alike > 0 && without_number(next, strcspn(next, "\n")) == alike &&
			 memcmp(next, line, alike) == 0);
		if (n > 0)
			buf_printf(out, "%s%.*s", before, (int)n, line);
		if (times > 1)
			buf_printf(out, " (%d times)", times);
	}
}

bool slurm_errors_already_gone(int number)
{
	return number == INVALID_JOB_ID || number == ALREADY_DONE;
}
