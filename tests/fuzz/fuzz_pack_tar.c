/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as the tar file of an archive, gzipped or not: an error that names it, or its entries.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "orchestrator/method/pack_tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct archive a = {0};
	struct err e = {0};
	char path[64];

	if (fd < 0 || write(fd, data, n) != (ssize_t)n)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (pack_tar_read(path, NULL, NULL, &a, &e) < 0 && !strstr(e.text, path))
		abort();
	archive_done(&a);
	close(fd);
	return 0;
}
