/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a machine is, read from a made-up one. */
#include "tests/unit/check.h"

#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/base/nodefacts.h"

static void put(const char *root, const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s%s", root, name), *parent = xstrdup(path);
	struct err e = {0};

	*strrchr(parent, '/') = '\0';
	assert_ok(fs_mkdirs(parent, 0700, &e));
	assert_ok(fs_write_atomic(path, text, strlen(text), 0600, &e));
}

static const struct {
	const char *path, *text;
} machine[] = {
	{"/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n"},
	{"/proc/sys/kernel/numa_balancing", "1\n"},
	{"/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"},
	{"/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\nmicrocode\t: 0xa101148\n"},
	{"/proc/meminfo", "MemTotal:       1583987204 kB\nMemFree: 1 kB\n"},
	{"/proc/cmdline",
	 "BOOT_IMAGE=/vmlinuz root=UUID=1 ro mitigations=off iommu=pt nosmt quiet\n"},
	{"/etc/os-release", "NAME=x\nPRETTY_NAME=\"Rocky Linux 9.4\"\n"},
	{"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
	{"/sys/devices/system/cpu/online", "0-95,192-287\n"},
	{"/sys/devices/system/node/online", "0-1\n"},
	{"/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"},
	{"/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave\n"},
	{"/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "performance\n"},
	{"/sys/devices/system/cpu/cpufreq/boost", "1\n"},
	{"/sys/class/dmi/id/bios_version", "2.21.1\n"},
	{"/sys/kernel/iommu_groups/0/type", "identity\n"},
	{"/sys/module/nvidia/version", "550.90.07\n"},
	{"/sys/module/nvidia_peermem/refcnt", "0\n"},
	{"/sys/class/net/eth0/device/x", ""},
	{"/sys/class/net/eth0/mtu", "9000\n"},
	{"/sys/class/net/eth0/speed", "100000\n"},
	{"/sys/class/net/eth1/device/x", ""},
	{"/sys/class/net/eth1/mtu", "1500\n"},
	{"/sys/class/net/eth1/speed", "-1\n"},
	{"/sys/class/net/docker0/mtu", "1500\n"},
	{"/sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n"},
	{"/sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n"},
	{"/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
	{"/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"},
};

static const struct {
	const char *key, *value;
} wanted[] = {
	{"kernel", "6.1.0-18-amd64"},
	{"numa_balancing", "1"},
	{"sysctl.net.ipv4.tcp_rmem", "4096 131072 6291456"},
	{"cpu", "AMD EPYC 9654"},
	{"microcode", "0xa101148"},
	{"memory", "1511 GiB"},
	{"cmdline", "mitigations=off iommu=pt nosmt"},
	{"os", "Rocky Linux 9.4"},
	{"thp", "madvise"},
	{"cpus", "192"},
	{"numa_nodes", "2"},
	{"governor", "performance, powersave"},
	{"turbo", "on"},
	{"bios", "2.21.1"},
	{"iommu", "identity"},
	{"nvidia_driver", "550.90.07"},
	{"gpudirect", "nvidia_peermem"},
	{"nic.eth0.mtu", "9000"},
	{"nic.eth0.speed", "100000 Mb/s"},
	{"nic.eth1.mtu", "1500"},
	{"ib.mlx5_0.fw", "28.39.1002"},
	{"ib.mlx5_0.board", "MT_0000000838"},
	{"ib.mlx5_0.rate", "400 Gb/sec (4X NDR)"},
	{"ib.mlx5_0.link", "InfiniBand"},
};

static void test_a_made_up_machine(void **state)
{
	_cleanup_scratch_ char *root = scratch_new();
	struct kvs keys = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(machine); i++)
		put(root, machine[i].path, machine[i].text);
	nodefacts_read(root, &keys);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		if (!kvs_has(&keys, wanted[i].key))
			fail_msg("%s is not there", wanted[i].key);
		assert_string_equal(kvs_get(&keys, wanted[i].key), wanted[i].value);
	}
	assert_int_equal(keys.n, ARRAY_LEN(wanted)); /* what is not there is left out */
	kvs_free(&keys);
}

static void test_an_empty_machine_tells_nothing(void **state)
{
	_cleanup_scratch_ char *root = scratch_new();
	struct kvs keys = {0};

	(void)state;
	nodefacts_read(root, &keys);
	assert_int_equal(keys.n, 0);
	kvs_free(&keys);
}

/* Nothing runs freely. */
static void test_this_machine_twice(void **state)
{
	struct kvs a = {0}, b = {0};

	(void)state;
	nodefacts_read("", &a);
	nodefacts_read("", &b);
	assert_true(kvs_has(&a, "kernel") && kvs_has(&a, "cpus") && kvs_has(&a, "memory"));
	assert_int_equal(a.n, b.n);
	for (size_t i = 0; i < a.n; i++)
		assert_string_equal(a.v[i].value, kvs_get(&b, a.v[i].key));
	kvs_free(&a);
	kvs_free(&b);
}

static void test_packages_of_an_interpreter(void **state)
{
	_cleanup_scratch_ char *root = scratch_new();
	_cleanup_free_ char *python = fs_join(root, "bin/python3"),
			    *other = fs_join(root, "other/bin/python3");
	struct kvs keys = {0};

	(void)state;
	put(root, "/lib/python3.11/site-packages/torch/version.py",
	    "from typing import Optional\n__version__ = '2.4.0+cu121'\ndebug = False\n"
	    "cuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n");
	put(root, "/lib/python3.11/site-packages/nvidia_nccl_cu12-2.20.5.dist-info/METADATA", "");
	put(root, "/other/lib/python3/dist-packages/torch/version.py",
	    "__version__ = '1.13.0a0'\ncuda = None\n");
	nodefacts_python(python, &keys);
	assert_int_equal(keys.n, 3);
	assert_string_equal(kvs_get(&keys, "framework"), "torch 2.4.0+cu121");
	assert_string_equal(kvs_get(&keys, "torch_cuda"), "12.1");
	assert_string_equal(kvs_get(&keys, "nccl"), "2.20.5");
	kvs_free(&keys);
	keys = (struct kvs){0};
	nodefacts_python(other, &keys);
	assert_int_equal(keys.n, 1);
	assert_string_equal(kvs_get(&keys, "framework"), "torch 1.13.0a0");
	nodefacts_python("python3", &keys);
	assert_int_equal(keys.n, 1);
	kvs_free(&keys);
}

static void assert_put(const char *text, const char *want)
{
	struct kvs keys = {0};

	nodefacts_put(&keys, "k", text);
	if (want)
		assert_string_equal(kvs_get(&keys, "k"), want);
	else
		assert_int_equal(keys.n, 0);
	kvs_free(&keys);
}

static void test_values_are_printable_and_bounded(void **state)
{
	char fits[NODEFACTS_VALUE_MAX + 1] = "", cut[NODEFACTS_VALUE_MAX] = "";
	_cleanup_free_ char *longer = NULL;

	(void)state;
	assert_put("", NULL);
	assert_put(" \t\n \n", NULL);
	assert_put("\n\n 1.2 \t 3 \nsecond line", "1.2 3");
	assert_put("a\033[31mred\x7f!", "a [31mred !");
	assert_put("a\xc2\x9b"
		   "b\xe2\x80\xae"
		   "c",
		   "a?b?c");
	assert_put("\xe7\x89\x88\xe6\x9c\xac 3", "\xe7\x89\x88\xe6\x9c\xac 3");
	memset(fits, 'a', NODEFACTS_VALUE_MAX);
	memset(cut, 'a', NODEFACTS_VALUE_MAX - 1);
	longer = xasprintf("%s\xe7\x89\x88", cut);
	assert_put(fits, fits);
	assert_put(longer, cut); /* not within a character */
}

static char *fixture(const char *path)
{
	struct buf b = {0};
	struct err e = {0};

	assert_ok(fs_read(path, 1 << 20, &b, &e));
	return buf_take(&b);
}

static void test_nvidia_smi(void **state)
{
	_cleanup_free_ char *text = fixture("tests/fixtures/probes/smi-q-h200.txt");
	struct kvs keys = {0};

	(void)state;
	nodefacts_smi(text, &keys);
	assert_string_equal(kvs_get(&keys, "nvidia_driver"), "580.159.04");
	assert_string_equal(kvs_get(&keys, "cuda"), "13.0");
	assert_string_equal(kvs_get(&keys, "gpu.count"), "1");
	assert_string_equal(kvs_get(&keys, "gpu.power_limit"), "700.00 W");
	assert_string_equal(kvs_get(&keys, "gpu.clock"), "1980 MHz");
	assert_string_equal(kvs_get(&keys, "gpu.memory_clock"), "3201 MHz");
	kvs_free(&keys);
	keys = (struct kvs){0};
	nodefacts_smi("GPU 1\n    Product Name : A\n    GSP Firmware Version : N/A\n    ECC Mode\n"
		      "        Current : Enabled\n        Pending : Disabled\n    MIG Mode \n"
		      "        Current : Disabled\nGPU 2\n    Product Name : A\nGPU 3\n"
		      "    Product Name : AB\n",
		      &keys);
	assert_string_equal(kvs_get(&keys, "gpu.ecc"), "Enabled");
	assert_string_equal(kvs_get(&keys, "gpu.mig"), "Disabled");
	assert_string_equal(kvs_get(&keys, "gpu.model"), "A, AB");
	assert_false(kvs_has(&keys, "gpu.gsp"));
	kvs_free(&keys);
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_made_up_machine),
		cmocka_unit_test(test_an_empty_machine_tells_nothing),
		cmocka_unit_test(test_this_machine_twice),
		cmocka_unit_test(test_packages_of_an_interpreter),
		cmocka_unit_test(test_values_are_printable_and_bounded),
		cmocka_unit_test(test_nvidia_smi),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
