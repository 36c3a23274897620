/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/sched/slurm_agent.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"

enum { PROGRAM_MAX = 64 << 20 /* static and with debug symbols it is 3 MiB */ };

static const struct {
	int elf;
	const char *name;
} machines[] = {{EM_X86_64, "x86_64"},
		{EM_AARCH64, "aarch64"},
		{EM_PPC64, "ppc64le"},
		{EM_RISCV, "riscv64"},
		{EM_S390, "s390x"}};

/* All of these but s390x write the low byte first. */
const char *slurm_agent_machine(const char *path)
{
	unsigned char head[20];
	int fd = open(path, O_RDONLY | O_CLOEXEC), machine;
	ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : 0;

	if (fd >= 0)
		close(fd);
	if (n != (ssize_t)sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0 ||
	    head[EI_CLASS] != ELFCLASS64)
		return NULL;
	machine = head[EI_DATA] == ELFDATA2MSB ? head[18] << 8 | head[19]
					       : head[19] << 8 | head[18];
	for (size_t i = 0; i < ARRAY_LEN(machines); i++)
		if (machines[i].elf == machine)
			return machines[i].name;
	return NULL;
}

bool slurm_agent_is_hidden(const char *agent, const char *blocks_root)
{
	return *blocks_root && fs_is_network(blocks_root) && !fs_is_network(agent);
}

static int copy_one(const char *from, const char *to, struct err *e)
{
	struct buf b = {0};
	int rc = 0;

	if (!fs_exists(to) && (rc = fs_read(from, PROGRAM_MAX, &b, e)) == 0)
		rc = fs_write_atomic(to, b.data, b.len, 0700, e);
	buf_free(&b);
	return rc;
}

int slurm_agent_copy(const char *agent, const char *blocks_root, char **out, struct err *e)
{
	_cleanup_free_ char *dir = NULL, *to = NULL;
	char hash[33];
	int rc = fs_hash_file(agent, hash, e);

	if (rc)
		return rc;
	dir = xasprintf("%.*s/agent/%s", (int)(fs_basename(blocks_root) - blocks_root - 1),
			blocks_root, hash);
	to = fs_join(dir, "fettle-agent");
	rc = fs_mkdirs(dir, 0700, e);
	if (!rc)
		rc = copy_one(agent, to, e);
	for (size_t i = 0; !rc && i < ARRAY_LEN(machines); i++) {
		_cleanup_free_ char *from = xasprintf("%s-%s", agent, machines[i].name),
				    *beside = xasprintf("%s-%s", to, machines[i].name);

		if (fs_exists(from))
			rc = copy_one(from, beside, e);
	}
	if (!rc)
		*out = TAKE(to);
	return rc;
}
