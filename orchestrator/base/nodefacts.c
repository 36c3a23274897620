/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "orchestrator/base/nodefacts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"

enum {
	FILE_MAX = 1 << 20, /* /proc/cpuinfo of 512 CPUs is about 800 KB */
	DEVICES_MAX = 32,   /* of a kind that are told: 8 GPUs' worth of adapters, and more */
	WORDS_MAX = 16,     /* different values of one thing that are told */
};

/* -- values ------------------------------------------------------------------------------------ */

/* Bytes of the character at p that a terminal would not show but obey: C1 controls, and marks that
 * turn the direction of what follows. 0: it is none. */
static size_t obeyed(const unsigned char *p)
{
	if (p[0] == 0xC2 && p[1] >= 0x80 && p[1] <= 0x9F)
		return 2;
	if (p[0] == 0xE2 && p[1] == 0x80 && p[2] >= 0xAA && p[2] <= 0xAE)
		return 3;
	if (p[0] == 0xE2 && p[1] == 0x81 && p[2] >= 0xA6 && p[2] <= 0xA9)
		return 3;
	return 0;
}

static bool is_blank(unsigned char c)
{
	return c <= ' ' || c == 0x7F;
}

void nodefacts_put(struct kvs *out, const char *key, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char value[NODEFACTS_VALUE_MAX + 1];
	size_t n = 0, skip;

	while (*p && is_blank(*p))
		p++;
	for (; *p && *p != '\n' && n < NODEFACTS_VALUE_MAX; p++) {
		if (is_blank(*p)) {
			if (value[n - 1] != ' ')
				value[n++] = ' ';
		} else if ((skip = obeyed(p)) > 0) {
			value[n++] = '?';
			p += skip - 1;
		} else {
			value[n++] = (char)*p;
		}
	}
	if (n == NODEFACTS_VALUE_MAX) /* not in the middle of a character */
		while (n > 0 && ((unsigned char)*p & 0xC0) == 0x80)
			p = (const unsigned char *)&value[--n];
	while (n > 0 && value[n - 1] == ' ')
		n--;
	value[n] = '\0';
	if (n > 0)
		kvs_set(out, key, value);
}

int nodefacts_line(const char *path, char *out, size_t n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got = fd >= 0 ? read(fd, out, n - 1) : -1;
	int rc = got < 0 ? errno : 0;

	if (fd >= 0)
		close(fd);
	out[got > 0 ? got : 0] = '\0';
	return rc ? rc : out[strspn(out, " \t\r\n")] ? 0 : ENODATA;
}

static void putf(struct kvs *out, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void putf(struct kvs *out, const char *key, const char *fmt, ...)
{
	struct buf b = {0};
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	nodefacts_put(out, key, b.data ? b.data : "");
	buf_free(&b);
}

/* The text of a file, "" when there is none; heap. */
static char *text_of(const char *root, const char *path)
{
	_cleanup_free_ char *full = xasprintf("%s%s", root, path);
	struct buf b = {0};

	if (fs_read(full, FILE_MAX, &b, NULL) < 0)
		buf_clear(&b);
	return buf_take(&b);
}

static char *first_line(const char *root, const char *path)
{
	char *text = text_of(root, path);

	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* The text after "key<blanks>:" or "key=" on its first line; heap, NULL: there is none. */
static char *field_of(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	if (!p)
		return NULL;
	p += strlen(key);
	p += strspn(p, " \t:=\"");
	return xstrndup(p, strcspn(p, "\"\n"));
}

static void put_field(struct kvs *out, const char *key, const char *text, const char *name)
{
	_cleanup_free_ char *value = field_of(text, name);

	if (value)
		nodefacts_put(out, key, value);
}

/* -- files that hold one value ----------------------------------------------------------------- */

#define SYSCTL(name, path)                               \
	{                                                \
		"sysctl." name, "/proc/sys/" path, WHOLE \
	}

static const struct {
	const char *key, *path;
	enum { WHOLE, BRACKETED, COUNTED } how;
} single[] = {
	{"kernel", "/proc/sys/kernel/osrelease", WHOLE},
	{"numa_balancing", "/proc/sys/kernel/numa_balancing", WHOLE},
	{"thp", "/sys/kernel/mm/transparent_hugepage/enabled", BRACKETED},
	{"thp_defrag", "/sys/kernel/mm/transparent_hugepage/defrag", BRACKETED},
	{"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource", WHOLE},
	{"cpus", "/sys/devices/system/cpu/online", COUNTED},
	{"smt", "/sys/devices/system/cpu/smt/active", WHOLE},
	{"cpuidle", "/sys/devices/system/cpu/cpuidle/current_driver", WHOLE},
	{"numa_nodes", "/sys/devices/system/node/online", COUNTED},
	{"bios", "/sys/class/dmi/id/bios_version", WHOLE},
	{"product", "/sys/class/dmi/id/product_name", WHOLE},
	{"nvidia_driver", "/sys/module/nvidia/version", WHOLE},
	{"mlx5_core", "/sys/module/mlx5_core/version", WHOLE},
	{"gdrcopy", "/sys/module/gdrdrv/version", WHOLE},
	{"efa", "/sys/module/efa/version", WHOLE},
	{"lustre", "/sys/fs/lustre/version", WHOLE},
	SYSCTL("net.core.rmem_max", "net/core/rmem_max"),
	SYSCTL("net.core.wmem_max", "net/core/wmem_max"),
	SYSCTL("net.core.rmem_default", "net/core/rmem_default"),
	SYSCTL("net.core.wmem_default", "net/core/wmem_default"),
	SYSCTL("net.core.netdev_max_backlog", "net/core/netdev_max_backlog"),
	SYSCTL("net.core.somaxconn", "net/core/somaxconn"),
	SYSCTL("net.core.default_qdisc", "net/core/default_qdisc"),
	SYSCTL("net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"),
	SYSCTL("net.ipv4.tcp_wmem", "net/ipv4/tcp_wmem"),
	SYSCTL("net.ipv4.tcp_congestion_control", "net/ipv4/tcp_congestion_control"),
	SYSCTL("net.ipv4.tcp_mtu_probing", "net/ipv4/tcp_mtu_probing"),
	SYSCTL("vm.zone_reclaim_mode", "vm/zone_reclaim_mode"),
	SYSCTL("vm.swappiness", "vm/swappiness"),
	SYSCTL("vm.dirty_ratio", "vm/dirty_ratio"),
	SYSCTL("vm.dirty_background_ratio", "vm/dirty_background_ratio"),
	SYSCTL("vm.overcommit_memory", "vm/overcommit_memory"),
	SYSCTL("vm.nr_hugepages", "vm/nr_hugepages"),
	SYSCTL("vm.max_map_count", "vm/max_map_count"),
};

/* "always [madvise] never": the word in brackets. */
static void put_bracketed(struct kvs *out, const char *key, const char *text)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	if (close)
		putf(out, key, "%.*s", (int)(close - open - 1), open + 1);
}

/* How many numbers there are in "0-63,128-191"; 0: it is no such list. */
static long count_list(const char *text)
{
	long n = 0, from, to;
	int used;

	while (isdigit((unsigned char)*text)) {
		if (sscanf(text, "%ld%n", &from, &used) != 1)
			return 0;
		text += used;
		to = from;
		if (*text == '-' && sscanf(text + 1, "%ld%n", &to, &used) == 1)
			text += 1 + used;
		if (to < from || to - from > 1 << 20)
			return 0;
		n += to - from + 1;
		text += *text == ',';
	}
	return n;
}

static void read_single(const char *root, struct kvs *out)
{
	for (size_t i = 0; i < ARRAY_LEN(single); i++) {
		_cleanup_free_ char *text = first_line(root, single[i].path);

		switch (single[i].how) {
		case WHOLE:
			nodefacts_put(out, single[i].key, text);
			break;
		case BRACKETED:
			put_bracketed(out, single[i].key, text);
			break;
		case COUNTED:
			if (count_list(text) > 0)
				putf(out, single[i].key, "%ld", count_list(text));
			break;
		}
	}
}

/* -- files that hold several ------------------------------------------------------------------- */

/* The kernel keeps some memory for itself, not the same after each boot: in GiB it is equal. */
static void put_memory(struct kvs *out, const char *meminfo)
{
	_cleanup_free_ char *text = field_of(meminfo, "MemTotal");
	double kib;

	if (!text)
		return;
	text[strcspn(text, " k")] = '\0';
	if (str_to_double(text, &kib) && kib > 0)
		putf(out, "memory", kib < 10.0 * 1048576 ? "%.1f GiB" : "%.0f GiB", kib / 1048576);
}

/* Parameters of the kernel by which it runs faster or slower; others (its image, the root file
 * system's id) say nothing. */
static void put_cmdline(struct kvs *out, const char *text)
{
	static const char *const names[] = {"mitigations",
					    "isolcpus",
					    "nohz_full",
					    "rcu_nocbs",
					    "idle",
					    "iommu",
					    "intel_iommu",
					    "amd_iommu",
					    "iommu.",
					    "processor.max_cstate",
					    "pcie_aspm",
					    "intel_idle.",
					    "intel_pstate",
					    "amd_pstate",
					    "transparent_hugepage",
					    "nosmt",
					    "numa_balancing",
					    "hugepages",
					    "hugepagesz",
					    "default_hugepagesz",
					    "pci",
					    "tsc",
					    "clocksource",
					    "skew_tick",
					    "preempt"};
	struct buf b = {0};

	while (*text) {
		size_t len = strcspn(text, " \n");

		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			size_t n = strlen(names[i]);

			if (str_starts(text, names[i]) &&
			    (names[i][n - 1] == '.' || n == len || text[n] == '=')) {
				buf_printf(&b, "%s%.*s", b.len ? " " : "", (int)len, text);
				break;
			}
		}
		text += len + (text[len] != '\0');
	}
	if (b.len)
		nodefacts_put(out, "cmdline", b.data);
	buf_free(&b);
}

static void read_several(const char *root, struct kvs *out)
{
	_cleanup_free_ char *cpu = text_of(root, "/proc/cpuinfo"),
			    *mem = text_of(root, "/proc/meminfo"),
			    *os = text_of(root, "/etc/os-release"),
			    *cmdline = text_of(root, "/proc/cmdline"),
			    *no_turbo = first_line(root,
						   "/sys/devices/system/cpu/intel_pstate/no_turbo"),
			    *boost = first_line(root, "/sys/devices/system/cpu/cpufreq/boost");

	put_field(out, "cpu", cpu, "model name");
	put_field(out, "microcode", cpu, "microcode");
	put_field(out, "os", os, "PRETTY_NAME");
	put_memory(out, mem);
	put_cmdline(out, cmdline);
	if (*no_turbo)
		nodefacts_put(out, "turbo", *no_turbo == '0' ? "on" : "off");
	else if (*boost)
		nodefacts_put(out, "turbo", *boost == '1' ? "on" : "off");
}

/* -- directories ------------------------------------------------------------------------------- */

static int is_entry(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Names in a directory, sorted, DEVICES_MAX at most; -1: there is no such directory. */
static int names_of(const char *root, const char *dir, int (*filter)(const struct dirent *),
		    struct strv *out)
{
	_cleanup_free_ char *full = xasprintf("%s%s", root, dir);
	struct dirent **v = NULL;
	int n = scandir(full, &v, filter, alphasort);

	for (int i = 0; i < n; i++) {
		if (i < DEVICES_MAX)
			strv_add(out, v[i]->d_name);
		free(v[i]);
	}
	free(v);
	return n;
}

static int names_in(const char *root, const char *dir, struct strv *out)
{
	return names_of(root, dir, is_entry, out);
}

static bool has_word(const struct strv *v, const char *word)
{
	for (size_t i = 0; i < v->n; i++)
		if (str_eq(v->v[i], word))
			return true;
	return false;
}

/* The different values of a file below each entry of a directory: "performance", "a, b". */
static void put_distinct(const char *root, const char *dir, const char *file, const char *key,
			 struct kvs *out)
{
	struct strv names = {0}, words = {0};
	struct buf b = {0};

	names_in(root, dir, &names);
	for (size_t i = 0; i < names.n && words.n < WORDS_MAX; i++) {
		_cleanup_free_ char *path = xasprintf("%s/%s/%s", dir, names.v[i], file);
		_cleanup_free_ char *text = first_line(root, path);

		if (*text && !has_word(&words, text)) {
			strv_add(&words, text);
			buf_printf(&b, "%s%s", b.len ? ", " : "", text);
		}
	}
	if (b.len)
		nodefacts_put(out, key, b.data);
	buf_free(&b);
	strv_free(&names);
	strv_free(&words);
}

static void read_frequency(const char *root, struct kvs *out)
{
	static const char dir[] = "/sys/devices/system/cpu/cpufreq";

	put_distinct(root, dir, "scaling_governor", "governor", out);
	put_distinct(root, dir, "scaling_driver", "cpufreq_driver", out);
	put_distinct(root, dir, "energy_performance_preference", "energy_preference", out);
}

/* How devices reach memory: "DMA-FQ" (translated), "identity" (passed through), "off". */
static void read_iommu(const char *root, struct kvs *out)
{
	static const char dir[] = "/sys/kernel/iommu_groups";
	struct strv names = {0};

	if (names_in(root, dir, &names) == 0)
		nodefacts_put(out, "iommu", "off");
	strv_free(&names);
	put_distinct(root, dir, "type", "iommu", out);
}

/* GPUs and adapters talk without memory of the host where one of these is loaded. */
static void read_peermem(const char *root, struct kvs *out)
{
	static const char *const modules[] = {"nvidia_peermem", "nv_peer_mem"};

	for (size_t i = 0; i < ARRAY_LEN(modules); i++) {
		_cleanup_free_ char *path = xasprintf("%s/sys/module/%s", root, modules[i]);

		if (fs_exists(path))
			nodefacts_put(out, "gpudirect", modules[i]);
	}
}

/* -- network ----------------------------------------------------------------------------------- */

static void put_file(const char *root, const char *path, const char *key, struct kvs *out)
{
	_cleanup_free_ char *text = first_line(root, path);

	nodefacts_put(out, key, text);
}

/* Driver and firmware by the interface itself. */
static void ask_driver(const char *name, struct kvs *out)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq r = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	r.ifr_data = (char *)&info;
	if (str_copy(r.ifr_name, sizeof r.ifr_name, name) && ioctl(fd, SIOCETHTOOL, &r) == 0) {
		_cleanup_free_ char *driver = xasprintf("nic.%s.driver", name),
				    *firmware = xasprintf("nic.%s.firmware", name);

		putf(out, driver, "%.*s %.*s", (int)sizeof info.driver, info.driver,
		     (int)sizeof info.version, info.version);
		putf(out, firmware, "%.*s", (int)sizeof info.fw_version, info.fw_version);
	}
	close(fd);
}

static void read_interface(const char *root, const char *name, struct kvs *out)
{
	_cleanup_free_ char *dir = xasprintf("/sys/class/net/%s", name),
			    *device = xasprintf("%s%s/device", root, dir),
			    *speed_path = xasprintf("%s/speed", dir),
			    *mtu_path = xasprintf("%s/mtu", dir),
			    *speed_key = xasprintf("nic.%s.speed", name),
			    *mtu_key = xasprintf("nic.%s.mtu", name), *speed = NULL;

	if (!fs_exists(device)) /* loopback, bridges, veth: not of the machine */
		return;
	speed = first_line(root, speed_path);
	if (*speed && *speed != '-') /* -1: the link is down */
		putf(out, speed_key, "%s Mb/s", speed);
	put_file(root, mtu_path, mtu_key, out);
	if (!*root)
		ask_driver(name, out);
}

static void read_port(const char *root, const char *dir, const char *device, const char *port,
		      struct kvs *out)
{
	_cleanup_free_ char *rate = xasprintf("%s/ports/%s/rate", dir, port),
			    *layer = xasprintf("%s/ports/%s/link_layer", dir, port),
			    *rate_key = xasprintf("ib.%s.%s%srate", device,
						  str_eq(port, "1") ? "" : port,
						  str_eq(port, "1") ? "" : "."),
			    *layer_key = xasprintf("ib.%s.%s%slink", device,
						   str_eq(port, "1") ? "" : port,
						   str_eq(port, "1") ? "" : ".");

	put_file(root, rate, rate_key, out);
	put_file(root, layer, layer_key, out);
}

static void read_adapter(const char *root, const char *device, struct kvs *out)
{
	_cleanup_free_ char *dir = xasprintf("/sys/class/infiniband/%s", device),
			    *fw = xasprintf("%s/fw_ver", dir),
			    *board = xasprintf("%s/board_id", dir),
			    *fw_key = xasprintf("ib.%s.fw", device),
			    *board_key = xasprintf("ib.%s.board", device),
			    *ports_dir = xasprintf("%s/ports", dir);
	struct strv ports = {0};

	put_file(root, fw, fw_key, out);
	put_file(root, board, board_key, out);
	names_in(root, ports_dir, &ports);
	for (size_t i = 0; i < ports.n; i++)
		read_port(root, dir, device, ports.v[i], out);
	strv_free(&ports);
}

static void each_device(const char *root, const char *dir, struct kvs *out,
			void (*visit)(const char *root, const char *name, struct kvs *out))
{
	struct strv names = {0};

	names_in(root, dir, &names);
	for (size_t i = 0; i < names.n; i++)
		visit(root, names.v[i], out);
	strv_free(&names);
}

void nodefacts_read(const char *root, struct kvs *out)
{
	read_single(root, out);
	read_several(root, out);
	read_frequency(root, out);
	read_iommu(root, out);
	read_peermem(root, out);
	each_device(root, "/sys/class/net", out, read_interface);
	each_device(root, "/sys/class/infiniband", out, read_adapter);
}

/* -- nvidia-smi -q ----------------------------------------------------------------------------- */

/* Lines are "key : value", or a heading above lines that are indented further. */
static const struct {
	const char *heading, *name, *key; /* heading NULL: any */
} smi_fields[] = {
	{NULL, "Driver Version", "nvidia_driver"},
	{NULL, "CUDA Version", "cuda"},
	{NULL, "Attached GPUs", "gpu.count"},
	{NULL, "Product Name", "gpu.model"},
	{NULL, "VBIOS Version", "gpu.vbios"},
	{NULL, "GSP Firmware Version", "gpu.gsp"},
	{NULL, "Persistence Mode", "gpu.persistence"},
	{NULL, "Compute Mode", "gpu.compute_mode"},
	{"MIG Mode", "Current", "gpu.mig"},
	{"ECC Mode", "Current", "gpu.ecc"},
	{"GPU Power Readings", "Current Power Limit", "gpu.power_limit"},
	{"Power Readings", "Power Limit", "gpu.power_limit"},
	{"Applications Clocks", "Graphics", "gpu.clock"},
	{"Applications Clocks", "Memory", "gpu.memory_clock"},
};

/* Is `value` among those of "a, b"? */
static bool lists(const char *list, const char *value)
{
	size_t n = strlen(value);

	for (const char *p = list; p; p = strstr(p, ", "), p = p ? p + 2 : NULL)
		if (strncmp(p, value, n) == 0 && (!p[n] || str_starts(p + n, ", ")))
			return true;
	return false;
}

/* GPUs that differ are told: "NVIDIA A100, NVIDIA H100". */
static void add_value(struct kvs *out, struct kvs *met, const char *key, const char *value)
{
	const char *before = kvs_get(met, key);
	_cleanup_free_ char *both = before && !lists(before, value)
					    ? xasprintf("%s, %s", before, value)
					    : NULL;

	if (!*value || str_eq(value, "N/A") || str_starts(value, "[N/A]") || (before && !both) ||
	    str_starts(value, "Requested functionality"))
		return;
	kvs_set(met, key, both ? both : value);
	nodefacts_put(out, key, both ? both : value);
}

static void read_smi_line(const char *line, size_t n, char heading[64], struct kvs *met,
			  struct kvs *out)
{
	_cleanup_free_ char *text = xstrndup(line, n);
	char *name = text + strspn(text, " \t"), *colon = strstr(name, " : "), *end;

	if (!colon) {
		for (end = name + strlen(name); end > name && strchr(" \r", end[-1]); end--)
			;
		*end = '\0';
		str_copy(heading, 64, name);
		return;
	}
	for (end = colon; end > name && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = '\0';
	colon += 3;
	colon[strcspn(colon, "\r")] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(smi_fields); i++)
		if (str_eq(name, smi_fields[i].name) &&
		    (!smi_fields[i].heading || str_eq(heading, smi_fields[i].heading)))
			add_value(out, met, smi_fields[i].key, colon);
}

void nodefacts_smi(const char *text, struct kvs *out)
{
	char heading[64] = "";
	struct kvs met = {0};

	while (*text) {
		size_t n = strcspn(text, "\n");

		read_smi_line(text, n, heading, &met, out);
		text += n + (text[n] == '\n');
	}
	kvs_free(&met);
}

/* -- Python ------------------------------------------------------------------------------------ */

/* "__version__ = '2.4.0+cu121'", "cuda: Optional[str] = '12.1'"; a value that is no text is none.
 */
static void put_assigned(struct kvs *out, const char *key, const char *text, const char *name)
{
	const char *at = strstr(text, name), *eq;

	if (!at)
		return;
	at += *at == '\n';
	eq = strstr(at, " = '");
	if (eq && eq < at + strcspn(at, "\n")) {
		eq += strlen(" = '");
		putf(out, key, "%s%.*s", str_eq(key, "framework") ? "torch " : "",
		     (int)strcspn(eq, "'\n"), eq);
	}
}

/* "nvidia_nccl_cu12-2.20.5.dist-info" */
static void put_nccl(const char *packages, struct kvs *out)
{
	DIR *d = opendir(packages);
	const struct dirent *f;

	while (d && (f = readdir(d))) {
		const char *dash = strchr(f->d_name, '-');

		if (dash && str_starts(f->d_name, "nvidia_nccl_") &&
		    str_ends(f->d_name, ".dist-info"))
			putf(out, "nccl", "%.*s", (int)(strlen(dash + 1) - strlen(".dist-info")),
			     dash + 1);
	}
	if (d)
		closedir(d);
}

static bool read_packages(const char *packages, struct kvs *out)
{
	_cleanup_free_ char *text = text_of(packages, "/torch/version.py");

	if (!*text)
		return false;
	put_assigned(out, "framework", text, "__version__");
	put_assigned(out, "torch_cuda", text, "\ncuda");
	put_nccl(packages, out);
	return true;
}

static int is_python(const struct dirent *d)
{
	return str_starts(d->d_name, "python3");
}

void nodefacts_python(const char *interpreter, struct kvs *out)
{
	static const char *const kinds[] = {"site-packages", "dist-packages"};
	_cleanup_free_ char *prefix = xstrdup(interpreter);
	struct strv names = {0};
	bool found = false;
	char *slash;

	for (int i = 0; i < 2; i++) /* PREFIX/bin/python3 */
		if ((slash = strrchr(prefix, '/')))
			*slash = '\0';
	names_of(prefix, "/lib", is_python, &names);
	for (size_t i = 0; i < names.n && !found; i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds) && !found; k++) {
			_cleanup_free_ char *packages = xasprintf("%s/lib/%s/%s", prefix,
								  names.v[i], kinds[k]);

			found = read_packages(packages, out);
		}
	strv_free(&names);
}
