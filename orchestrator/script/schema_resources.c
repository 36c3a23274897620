/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `resources`: what a job is asked for, by the names that sbatch's options have. */
#include "orchestrator/script/schema.h"

#include <stddef.h>

static const char *const placement_words[] = {"any", "same", "spread", NULL};
static const char *const launcher_words[] = {"exec", "srun", "mpirun", "torchrun", "script", NULL};

#define IN(member) offsetof(struct resources, member)
#define COUNT(field, member, text)                                                             \
	{                                                                                      \
		.name = #field, .type = FIELD_INT, .min = 1, .max = 1e6, .offset = IN(member), \
		.dflt = "the scheduler's", .doc = text                                         \
	}
#define MEMORY(field, member, text)                                                            \
	{                                                                                      \
		.name = #field, .type = FIELD_SIZE, .min = 0, .max = 1e6, .above = true,       \
		.scale = 1024, .offset = IN(member), .unit = "GiB", .dflt = "the scheduler's", \
		.doc = text                                                                    \
	}
#define SLURM(member, text)                                                \
	{                                                                  \
		.name = #member, .type = FIELD_TEXT, .offset = IN(member), \
		.dflt = "the scheduler's", .doc = text                     \
	}
#define OPTION(member, text, like)                                                                 \
	{                                                                                          \
		.name = #member, .type = FIELD_TEXT, .offset = IN(options.member), .dflt = "none", \
		.doc = text, .example = like                                                       \
	}

static const struct field resources_fields[] = {
	COUNT(nodes, nodes, "nodes of a trial"),
	COUNT(tasks_per_node, tasks_per_node, "ranks on each node"),
	COUNT(cpus_per_task, cpus_per_task, "CPUs of a rank"),
	COUNT(gpus_per_node, gpus_per_node, "GPUs on each node"),
	MEMORY(mem_gib_per_node, mem_mib_per_node, "memory on each node"),
	{.name = "time_limit_min",
	 .type = FIELD_SIZE,
	 .min = 1,
	 .max = 1e6,
	 .scale = 60,
	 .offset = IN(time_limit_s),
	 .unit = "min",
	 .dflt = "from the trials",
	 .doc = "limit of a whole allocation"},
	SLURM(partition, "Slurm partition"),
	SLURM(account, "Slurm account"),
	SLURM(qos, "Slurm quality of service"),
	SLURM(reservation, "Slurm reservation"),
	SLURM(constraint, "node features that are asked for"),
	SLURM(nodelist, "nodes that must be used"),
	SLURM(exclude, "nodes that must not be used"),
	OPTION(gres, "generic resources on each node, beside `gpus_per_node`", "\"nvme:1\""),
	OPTION(gpus, "GPUs of the whole job, with a type or without", "\"h200:8\""),
	OPTION(gpus_per_task, "GPUs of a rank, with a type or without", "\"1\""),
	COUNT(cpus_per_gpu, options.cpus_per_gpu, "CPUs for each GPU"),
	MEMORY(mem_gib_per_cpu, options.mem_mib_per_cpu, "memory for each CPU"),
	MEMORY(mem_gib_per_gpu, options.mem_mib_per_gpu, "memory for each GPU"),
	OPTION(licenses, "licences of the cluster that the job holds", "\"matlab:1\""),
	OPTION(switches, "most leaf switches, and how many minutes to wait for that", "\"1@60\""),
	OPTION(begin, "not started before, as sbatch takes it", "\"now+2hours\""),
	OPTION(deadline, "a job that cannot end by then is taken out of the queue",
	       "\"2026-11-30T06:00\""),
	OPTION(dependency, "jobs to wait for", "\"afterok:1234\""),
	{.name = "nice",
	 .type = FIELD_INT,
	 .min = -1e6,
	 .max = 1e6,
	 .offset = IN(options.nice),
	 .dflt = "0",
	 .doc = "how much lower the priority; below 0 only as Slurm's operator"},
	OPTION(comment, "a comment on each job", "\"tuning\""),
	OPTION(mail_type, "events of a job that are mailed", "\"FAIL,TIME_LIMIT\""),
	OPTION(mail_user, "who gets the mail", "\"me@example.org\""),
	{.name = "placement",
	 .type = FIELD_WORD,
	 .words = placement_words,
	 .offset = IN(placement),
	 .dflt = "`\"any\"`",
	 .doc = "where blocks run: `any`, wherever the scheduler puts them; `same`, all on the nodes "
		"of the first; `spread`, on nodes that had fewest so far",
	 .example = "\"spread\""},
	{.name = "among",
	 .type = FIELD_TEXTS,
	 .offset = IN(among),
	 .dflt = "all nodes",
	 .doc = "nodes that blocks take turns on, those that had fewest so far first",
	 .example = "{ \"n1\", \"n2\", \"n3\" }"},
	{.name = "launcher",
	 .type = FIELD_CHOICE,
	 .words = launcher_words,
	 .offset = IN(launcher),
	 .dflt = "`\"exec\"` for one task, else `\"srun\"`",
	 .doc = "what starts the ranks; `script`: the command does so itself"},
	{0},
};
const struct schema schema_resources = {"resources", resources_fields};
