-- SPDX-License-Identifier: MIT
-- Which CPUs, memory and cards a rank is near. Most are options of a launcher, which fettle does not vary:
-- they stand here for what they do, and to be put in the command of both arms. As a knob: a bundle with a
-- command for each way.
local late <const> = told("ranks near their GPU and card wait less for memory; how much was not measured")

local function by_launcher(t)
	t.class = "neutral"
	t.proof = "delivered"
	t.documented = "user"
	t.bottleneck = t.bottleneck or "host"
	t.expect = t.expect or late
	return t
end

return {
	by_launcher {
		name = "cpu_bind",
		summary = "CPUs of each rank, by srun",
		passed = { srun = "--cpu-bind=cores, or ldoms, mask_cpu:..., map_ldom:..." },
		type = "text",
		applies = "srun with task/affinity",
		safe = "cores, ldoms",
		when = "ranks and their GPUs are on unlike NUMA nodes, or steps are uneven",
		evidence = "--cpu-bind=verbose prints a mask for each task; Cpus_allowed_list in /proc",
		risk = "a wrong mask puts all ranks on the same CPUs",
		mistakes = {
			"map_cpu and mask_cpu count only when the step has all CPUs of the node: --exclusive",
			"--ntasks-per-core and others switch some ways of binding off",
		},
		notes = "none, and --cpus-per-task as large as it goes, is a fair start",
	},
	by_launcher {
		name = "cpus_per_task",
		summary = "CPUs of each rank",
		passed = {
			srun = "srun --cpus-per-task=N, or SRUN_CPUS_PER_TASK=N",
			script = "resources = { cpus_per_task = N } in a campaign: for all arms",
		},
		type = "int", min = 1, max = 1024,
		since = "slurm 20.11",
		applies = "Slurm",
		safe = "CPUs of the node over ranks of the node",
		when = "workers or threads share one CPU",
		evidence = "Cpus_allowed_list of the ranks; ncpu",
		risk = "low",
		mistakes = { "srun of Slurm 22.05 to 23.02 does not take it from sbatch: everything on one CPU" },
		notes = "23.11 takes it from sbatch again",
	},
	by_launcher {
		name = "mem_bind",
		summary = "NUMA node of each rank's memory, by srun",
		passed = { srun = "--mem-bind=local" },
		one_of = { "none", "local" },
		applies = "srun with task/affinity",
		safe = "none, local",
		when = "pages of a rank are on the other NUMA node",
		evidence = "/proc/PID/numa_maps, numastat -p",
		risk = "low",
		mistakes = { "other ways than none and local are not recommended" },
		notes = "only with bound CPUs",
	},
	by_launcher {
		name = "gpu_bind",
		summary = "GPUs that each rank sees, by srun",
		passed = { srun = "--gpu-bind=closest, or none, single:1, map:..." },
		type = "text",
		applies = "srun",
		safe = "none, closest",
		when = "ranks drive GPUs of the other socket",
		evidence = "channel lines of NCCL: 'via P2P', not 'via SHM'",
		risk = "medium",
		mistakes = {
			"single:1 hides the peers: no direct copies, everything goes through host memory",
			"with one visible GPU it is device 0 for all ranks: LOCAL_RANK is wrong",
		},
		notes = "--gpus-per-task binds as well",
	},
	by_launcher {
		name = "numactl",
		summary = "NUMA node of each rank's CPUs and memory",
		passed = { shell = "numactl --cpunodebind=N --preferred=N before the rank's command, N by its GPU" },
		type = "text",
		excludes = { "numa_binding", "cpu_bind" },
		applies = "ranks that are started one by one",
		safe = "the node of the rank's own GPU (nvidia-smi topo -m)",
		when = "ranks and their GPUs are on unlike NUMA nodes",
		evidence = "/proc/PID/numa_maps, numastat -p",
		risk = "medium: --membind ends a rank whose node is full; --preferred does not",
		mistakes = { "node 0 for all ranks: half of the GPUs are far, and half of the CPUs idle" },
		notes = "through a wrapper that reads LOCAL_RANK",
	},
	by_launcher {
		name = "numa_binding",
		summary = "NUMA node of each rank, by torchrun",
		passed = { torchrun = "--numa-binding=node" },
		one_of = { "node", "socket", "exclusive", "core-complex" },
		since = "torch 2.9",
		excludes = { "numactl", "cpu_bind" },
		applies = "torchrun",
		safe = "node",
		when = "ranks and their GPUs are on unlike NUMA nodes, or steps are uneven",
		evidence = "Cpus_allowed_list in /proc of the ranks",
		risk = "low",
		mistakes = { "srun's binding comes first: what it leaves out cannot be had" },
		notes = "1 to 10 % by its documents",
	},
	by_launcher {
		name = "taskset",
		summary = "a list of CPUs for a command",
		passed = { shell = "taskset -c LIST before the rank's command" },
		type = "text",
		excludes = { "cpu_bind", "numactl" },
		applies = "a single process",
		safe = "a list of its own for each rank",
		when = "one process on a shared machine",
		evidence = "Cpus_allowed_list in /proc",
		risk = "medium",
		mistakes = { "one list for all ranks: they take turns", "torch then suggests fewer workers" },
		notes = "numactl or the launcher's binding do it by rank",
	},
	by_launcher {
		name = "gpu_clocks",
		summary = "fixed clocks or power of the GPUs",
		passed = { shell = "nvidia-smi -lgc MIN,MAX or -pl W, as root; srun --gpu-freq" },
		type = "text",
		bottleneck = "compute",
		applies = "nodes whose administrator allows it",
		safe = "the base clock, in all arms",
		when = "clocks differ between trials: to compare other settings, not to be faster",
		expect = told("it makes trials comparable; a lower clock is slower"),
		evidence = "sm_clock_mhz, clock_event_reasons",
		risk = "a lock that stays slows every job after",
		mistakes = { "in one arm only it is the cause of the difference" },
		notes = "part of the environment's fingerprint, not of a campaign",
	},
}
