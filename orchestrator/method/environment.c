/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/method/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/history.h"
#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/str.h"
#include "orchestrator/method/fingerprint.h"
#include "orchestrator/method/method.h"

extern char **environ;

static const char *const allowed[] = {
	"PATH",        "HOME",          "USER",       "LOGNAME",          "SHELL",
	"LANG",        "LANGUAGE",      "TZ",         "LD_LIBRARY_PATH",  "LIBRARY_PATH",
	"VIRTUAL_ENV", "PYTHONPATH",    "PYTHONHOME", "PYTHONUNBUFFERED", "SLURM_CONF",
	"MODULEPATH",  "LOADEDMODULES", "_LMFILES_",  "http_proxy",       "https_proxy",
	"no_proxy"};
/* Settings that a workload reads: they are part of the default configuration and must not be lost.
 */
static const char *const allowed_prefixes[] = {
	"LC_",  "CONDA_",  "CUDA_",    "NCCL_",     "TORCH",   "PYTORCH_", "OMP_",
	"MKL_", "KMP_",    "GOMP_",    "OPENBLAS_", "MALLOC_", "HF_",      "TRANSFORMERS_",
	"UCX_", "FI_",     "HSA_",     "ROCM_",     "HIP_",    "NVIDIA_",  "TF_",
	"XLA_", "TRITON_", "NVSHMEM_", "GLOO_",     "CUBLAS_", "CUDNN_"};

static bool is_allowed(const char *name)
{
	/* One process's rank or device is not a setting of the workload. */
	if (strcmp(name, "CUDA_VISIBLE_DEVICES") == 0 || strcmp(name, "TORCHELASTIC_RUN_ID") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (strcmp(name, allowed[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(allowed_prefixes); i++)
		if (str_starts(name, allowed_prefixes[i]))
			return !strstr(name, "TOKEN") && !strstr(name, "SECRET") &&
			       !strstr(name, "PASSWORD");
	return false;
}

char *environment_capture(void)
{
	_cleanup_(json_freep) struct json *o = json_object();
	struct kvs found = {0};

	for (char **p = environ; p && *p; p++) {
		const char *eq = strchr(*p, '=');
		_cleanup_free_ char *name = eq ? xstrndup(*p, (size_t)(eq - *p)) : NULL;

		if (name && is_allowed(name))
			kvs_set(&found, name, eq + 1);
	}
	kvs_sort(&found);
	for (size_t i = 0; i < found.n; i++)
		json_set_text(o, found.v[i].key, found.v[i].value);
	kvs_free(&found);
	return json_print(o, false);
}

int environment_of_stage(struct campaign *c, const struct stage_row *s, int64_t *id, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	int rc = fingerprint_of_stage(c->ws->db, s->id, &text, e);

	*id = 0;
	return rc == 0 && text ? history_environment_put(c->ws->db, text, id, e) : rc;
}
