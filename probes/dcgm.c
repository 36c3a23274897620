/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "probes/dcgm.h"

#include <string.h>
#include <strings.h>

#include "orchestrator/base/mem.h"

static const struct dcgm_field fields[] = {
	{100, "DEV_SM_CLOCK", NULL, "sm_clock", "SMCLK", "sm_clock_mhz", 1},
	{101, "DEV_MEM_CLOCK", NULL, "memory_clock", "MMCLK", "mem_clock_mhz", 1},
	{112, "DEV_CLOCKS_EVENT_REASONS", "DEV_CLOCK_THROTTLE_REASONS", NULL, "DVCCTR",
	 "clock_event_reasons", 1},
	{140, "DEV_MEMORY_TEMP_CELSIUS", "DEV_MEMORY_TEMP", "memory_temp", "MMTMP",
	 "gpu_mem_temp_c", 1},
	{150, "DEV_GPU_TEMP_CELSIUS", "DEV_GPU_TEMP", "gpu_temp", "TMPTR", "gpu_temp_c", 1},
	{155, "DEV_BOARD_POWER_WATTS", "DEV_POWER_USAGE", "power_usage", "POWER", "gpu_power_w", 1},
	{156, "DEV_TOTAL_ENERGY_CONSUMPTION", NULL, "total_energy_consumption", "TOTEC",
	 "gpu_energy_j_total", 1e-3},
	{202, "DEV_PCIE_REPLAY_TOTAL", "DEV_PCIE_REPLAY_COUNTER", "pcie_replay_counter", "RPCTR",
	 "gpu_pcie_replays_total", 1},
	{203, "DEV_GPU_UTIL_RATIO", "DEV_GPU_UTIL", "gpu_utilization", "GPUTL", "gpu_util_pct", 1},
	{204, "DEV_MEM_COPY_UTIL", NULL, "mem_copy_utilization", "MCUTL", "gpu_mem_util_pct", 1},
	{230, "DEV_XID_ERROR", "DEV_XID_ERRORS", "xid_errors", "XIDER", "gpu_xid_last", 1},
	{250, "DEV_FB_TOTAL", NULL, NULL, "FBTTL", "gpu_mem_total_mib", 1},
	{251, "DEV_FB_FREE", NULL, "fb_free", "FBFRE", "gpu_mem_free_mib", 1},
	{252, "DEV_FB_USED", NULL, "fb_used", "FBUSD", "gpu_mem_used_mib", 1},
	{310, "DEV_ECC_SBE_VOL_TOTAL", NULL, "ecc_sbe_volatile_total", "ESVTL",
	 "gpu_ecc_corrected_total", 1},
	{311, "DEV_ECC_DBE_VOL_TOTAL", NULL, "ecc_dbe_volatile_total", "EDVTL",
	 "gpu_ecc_uncorrected_total", 1},
	{1001, "PROF_GR_ENGINE_UTIL_RATIO", "PROF_GR_ENGINE_ACTIVE", NULL, "GRACT",
	 "gr_engine_active", 1},
	{1002, "PROF_SM_UTIL_RATIO", "PROF_SM_ACTIVE", NULL, "SMACT", "sm_active", 1},
	{1003, "PROF_SM_OCCUPANCY_RATIO", "PROF_SM_OCCUPANCY", NULL, "SMOCC", "sm_occupancy", 1},
	{1004, "PROF_TENSOR_UTIL_RATIO", "PROF_PIPE_TENSOR_ACTIVE", NULL, "TENSO", "tensor_active",
	 1},
	{1005, "PROF_DRAM_UTIL_RATIO", "PROF_DRAM_ACTIVE", NULL, "DRAMA", "dram_active", 1},
	{1006, "PROF_FP64_UTIL_RATIO", "PROF_PIPE_FP64_ACTIVE", NULL, "FP64A", "fp64_active", 1},
	{1007, "PROF_FP32_UTIL_RATIO", "PROF_PIPE_FP32_ACTIVE", NULL, "FP32A", "fp32_active", 1},
	{1008, "PROF_FP16_UTIL_RATIO", "PROF_PIPE_FP16_ACTIVE", NULL, "FP16A", "fp16_active", 1},
	{1009, "PROF_PCIE_TX_BYTES", NULL, NULL, "PCITX", "pcie_tx_bytes_per_s", 1},
	{1010, "PROF_PCIE_RX_BYTES", NULL, NULL, "PCIRX", "pcie_rx_bytes_per_s", 1},
	{1011, "PROF_NVLINK_TX_BYTES", NULL, NULL, "NVLTX", "nvlink_tx_bytes_per_s", 1},
	{1012, "PROF_NVLINK_RX_BYTES", NULL, NULL, "NVLRX", "nvlink_rx_bytes_per_s", 1},
};

static bool same(struct span t, const char *name)
{
	return name && t.n == strlen(name) && strncasecmp(t.s, name, t.n) == 0;
}

/* What follows a stem, in letters of any case; no text when name does not begin so. */
static struct span behind_stem(struct span name, const char *stem)
{
	size_t k = strlen(stem);

	if (name.n <= k || strncasecmp(name.s, stem, k) != 0)
		return (struct span){NULL, 0};
	return (struct span){name.s + k, name.n - k};
}

/* Before 2.0 all names of the exporter were of small letters. */
const struct dcgm_field *dcgm_by_name(struct span name)
{
	struct span behind = behind_stem(name, "dcgm_fi_"), legacy = behind_stem(name, "dcgm_");

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if ((behind.s &&
		     (same(behind, fields[i].name) || same(behind, fields[i].old_name))) ||
		    (legacy.s && same(legacy, fields[i].legacy)))
			return &fields[i];
	return NULL;
}

const struct dcgm_field *dcgm_by_column(struct span column)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (span_eq(column, fields[i].column))
			return &fields[i];
	return NULL;
}

/* dcgm_structs.h: DCGM_INT32_BLANK, DCGM_INT64_BLANK, DCGM_FP64_BLANK and the three codes behind
 * each. The 64-bit ones are one number as a double. */
enum { MEMORY_TEMP = 140 };

const char *dcgm_blank(const struct dcgm_field *f, double v)
{
	static const char *const codes[] = {"blank", "not found", "not supported", "not permitted"};
	static const double bases[] = {2147483632.0, 140737488355328.0};

	if (v >= 9223372036854775792.0)
		return "blank";
	if (f->id == MEMORY_TEMP && v == 0)
		return "not supported";
	for (size_t k = 0; k < ARRAY_LEN(bases); k++)
		for (size_t i = 0; i < ARRAY_LEN(codes); i++)
			if (v == bases[k] + (double)i)
				return codes[i];
	return NULL;
}
