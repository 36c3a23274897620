-- SPDX-License-Identifier: MIT
-- The fault tree of a slow-down: where the step's time goes, and what each loss comes from. Every limit is a
-- heuristic with its source beside it, and `thresholds = { data_wait = 0.2 }` in a campaign, in site.lua or
-- `fettle diagnose --threshold data_wait=0.2` sets another. "heuristic of ours" was set on the recorded captures in
-- tests/fixtures/diagnose and then tried on planted slow-downs of other sizes and places.
local NCCL_LOG <const> = "the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET, its output kept"
local PROFILE <const> = "PYTHONPATH=RECIPES/profile FETTLE_PROFILE_DIR=trace COMMAND (RECIPES: where fettle's "
	.. "recipes are), or a trace of PyTorch's profiler or nsys of your own"
local IOSTAT <const> = "iostat -xty 1 > iostat.txt on the node while the job runs"
local SMI <const> = "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,clocks.sm,clocks_event_reasons.active,"
	.. "power.draw --format=csv -l 1 > gpu.csv while the job runs"
local DCGM <const> = "dcgmi dmon -e 1002,1004,1005,203,155 -d 1000 > dcgm.txt while the job runs"

local CORES_BUSY <const> = 0.85 -- of the CPUs that the trial may use: heuristic of ours
local CPU_BUSY_PCT <const> = 85 -- of all CPUs in user code: heuristic of ours

local SHORT_KERNELS <const> = 0.5 -- of the kernels run less than 10 us: heuristic of ours
local HOST_BUSY <const> = 0.8 -- cores of a rank whose one thread is always running: heuristic of ours
local FAULTS_PER_MS <const> = 120 -- pages first touched in a ms of CPU time (healthy: some 50): heuristic of ours
local NO_CPU <const> = 0.25 -- ready to run and no CPU, of the time: heuristic of ours

-- Bits of clocks_event_reasons: power cap, hardware slowdown, thermal slowdowns, power brake (nvml.h).
local HELD_BACK <const> = 0x4 | 0x8 | 0x20 | 0x40 | 0x80

local function cores_bound(s)
	return s.tree_cpu_cores ~= nil and over(s.ncpu, 0) and s.tree_cpu_cores / s.ncpu > CORES_BUSY
end

local function cpu_bound(s)
	return over(s.cpu_user_pct, CPU_BUSY_PCT) or cores_bound(s)
end

local function cpu_words(s)
	if cores_bound(s) then
		return string.format("%.1f of %.0f CPUs are busy", s.tree_cpu_cores, s.ncpu)
	end
	return string.format("CPUs are %.0f %% busy", s.cpu_user_pct)
end

-- A program without a device: its operators are what computes.
local function on_host(s)
	return s.host_other_ratio ~= nil
end

local function sum(...)
	local total = 0
	for _, share in ipairs({ ... }) do
		total = total + share
	end
	return total
end

-- Of a rank's CPU time, the part that the kernel took.
local function kernel_share(s)
	return over(s.rank_cpu_cores, 0) and s.rank_system_ratio and math.min(1, s.rank_system_ratio / s.rank_cpu_cores)
end

-- Pages touched for the first time in a millisecond of CPU time.
local function faults_per_ms(s)
	local cpu_ms = (s.trace_step_ms or 0) * (s.rank_cpu_cores or 0)
	return s.minor_faults_per_step and cpu_ms > 0 and s.minor_faults_per_step / cpu_ms or nil
end

-- What computing is slowed down by having no CPU, of the step: all ranks suffer the least of it.
local function starved_share(s)
	local ready = s["rank_ready_ratio.min"] or s.rank_ready_ratio
	return on_host(s) and ready and s.compute_ratio and ready * s.compute_ratio or 0
end

-- Is there a sign that the host is why the device idles?
local function launch_bound(s)
	return over(s.kernel_short_ratio, SHORT_KERNELS) or over(s.rank_cpu_cores, HOST_BUSY)
		or over(s.rank_ready_ratio, NO_CPU)
end

-- What is lost for a known reason.
local function lost(s)
	return math.min(1, sum(s.data_wait_ratio or 0, s.comm_exposed_ratio or 0, s.launch_gap_ratio or 0,
		s.sync_gap_ratio or 0, s.alloc_gap_ratio or 0, s.copy_exposed_ratio or 0, on_host(s) and s.host_other_ratio or 0))
end

-- What a host allocator costs that gives pages back and takes them again, of the step.
local function churn_share(s, limit)
	local kernel = kernel_share(s)
	return over(faults_per_ms(s), limit) and kernel and kernel * math.max(0, 1 - lost(s)) or 0
end

return {
	-- storage and input ------------------------------------------------------------------------------------
	{ name = "data_wait", limit = 0.10, source = "practitioners: data wait above 10 % of the step",
		asks = "does the step wait for its data?", needs = { "data_wait_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.data_wait_ratio, limit) then
				return {
					bottleneck = "storage",
					share = s.data_wait_ratio,
					evidence = string.format("the step waits %s of its time for data: without it %s could be gained",
						percent(s.data_wait_ratio), percent(ceiling_of(s.data_wait_ratio))),
					try = { "num_workers", "prefetch_factor", "persistent_workers", "pin_memory" },
				}
			end
		end },
	{ name = "loader", under = "data_wait", limit = 0.5, source = "heuristic of ours: most of the loading",
		asks = "does loading wait for files, or for a CPU?", run = PROFILE,
		needs = { "loader_cpu_ratio|tree_cpu_cores|cpu_user_pct", "loader_blocked_ratio|ncpu|cpu_user_pct" },
		when = function(s, limit)
			local who = "the training process itself (no workers)"
			if over(s.loader_workers, 0) then
				who = string.format("%.0f worker%s", s.loader_workers, s.loader_workers > 1 and "s" or "")
			end
			if over(s.loader_blocked_ratio, limit) then
				return {
					bottleneck = "storage",
					evidence = string.format("loading, done by %s, waits %s of its time for files, not for a CPU", who,
						percent(s.loader_blocked_ratio)),
				}
			end
			if over(s.loader_ready_ratio, NO_CPU) then
				return {
					bottleneck = "host",
					evidence = string.format("loading, done by %s, has no CPU for %s of its time: decoding competes with "
						.. "computing", who, percent(s.loader_ready_ratio)),
					try = { "OMP_NUM_THREADS" },
				}
			end
			if cpu_bound(s) then
				return {
					bottleneck = "host",
					evidence = cpu_words(s) .. ", so decoding competes with computing",
					try = { "OMP_NUM_THREADS" },
				}
			end
			if over(s.loader_cpu_ratio, limit) then
				return {
					evidence = string.format("loading, done by %s, computes for %s of its time: more workers decode more at once",
						who, percent(s.loader_cpu_ratio)),
				}
			end
		end },
	{ name = "disk", under = "data_wait", limit = 50, source = "heuristic of ours: a disk busy half of the time",
		asks = "is it a local disk, or a file system over the network?", run = IOSTAT,
		needs = { "disk_util_pct|disk_r_await_ms|cpu_iowait_pct|fs_op_time_us" },
		when = function(s, limit)
			if over(s.disk_util_pct, limit) then
				return { evidence = string.format("a local disk is busy %.0f %% of the time%s", s.disk_util_pct,
					s.disk_r_await_ms and string.format(", a read takes %.1f ms", s.disk_r_await_ms) or "") }
			end
			if over(s.fs_op_time_us, 1000) then
				return { evidence = string.format("an operation on the network file system takes %.1f ms",
					s.fs_op_time_us / 1000) }
			end
			if s.disk_util_pct and over(s.loader_blocked_ratio, 0.5) then
				return { evidence = string.format("no local disk is busy (%.0f %%): a file system over the network, or "
					.. "what lies before the disk", s.disk_util_pct) }
			end
		end },
	{ name = "iowait", limit = 10, source = "probes: iowait above 10 %", asks = "do CPUs idle for a disk?",
		needs = { "cpu_iowait_pct|data_wait_ratio" }, run = IOSTAT,
		when = function(s, limit)
			if over(s.cpu_iowait_pct, limit) and not over(s.data_wait_ratio, 0.10) then
				return {
					bottleneck = "storage",
					share = math.min(s.cpu_iowait_pct / 100, 1),
					evidence = string.format("CPUs are idle with a disk request open %.0f %% of the time%s", s.cpu_iowait_pct,
						s.disk_r_await_ms and string.format("; a read takes %.1f ms", s.disk_r_await_ms) or ""),
				}
			end
		end },
	{ name = "copies", limit = 0.05, source = "heuristic of ours", asks = "do copies to the device hold it up?",
		needs = { "copy_exposed_ratio|host_other_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.copy_exposed_ratio, limit) then
				return {
					bottleneck = "host",
					share = s.copy_exposed_ratio,
					evidence = string.format("the device only copies for %s of the step%s", percent(s.copy_exposed_ratio),
						over(s.h2d_pageable_ratio, 0) and string.format("; copies from pageable memory run for %s of it",
							percent(s.h2d_pageable_ratio)) or ""),
					try = { "pin_memory" },
				}
			end
		end },

	-- communication ----------------------------------------------------------------------------------------
	{ name = "straggler", limit = 0.05, source = "heuristic of ours", asks = "does one rank keep the others waiting?",
		needs = { "straggler_ratio|coll_wait_ratio|comm_exposed_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.straggler_ratio, limit) then
				return {
					bottleneck = "host",
					share = s.straggler_ratio,
					evidence = string.format("rank %.0f comes late to collectives: the others wait %s of their steps for it",
						s.straggler_rank or -1, percent(s.straggler_ratio)),
				}
			end
		end },
	{ name = "straggler_cpu", under = "straggler", limit = 0.25, source = "heuristic of ours",
		asks = "has that rank no CPU, or is its device slow?", needs = { "rank_ready_ratio.max|clock_event_reasons" },
		run = SMI,
		when = function(s, limit)
			local most, least = s["rank_ready_ratio.max"], s["rank_ready_ratio.min"]
			if over(most, limit) and least and most - least > limit / 2 then
				return { evidence = string.format("one rank has no CPU for %s of its time, another for %s", percent(most),
					percent(least)) }
			end
			if s.clock_event_reasons and math.tointeger(s.clock_event_reasons // 1) & HELD_BACK ~= 0 then
				return { bottleneck = "compute", evidence = "a device's clocks were held back by power or heat" }
			end
		end },
	{ name = "exposed_communication", limit = 0.10,
		source = "heuristic of ours; practitioners call a job unhealthy at 40 %",
		asks = "does the step wait for communication?", needs = { "comm_exposed_ratio" }, run = PROFILE,
		when = function(s, limit)
			local share = s.comm_exposed_ratio
			-- A straggler's part of it is no matter of bandwidth.
			local own = math.max(0, share - (s.straggler_ratio or 0))
			if own > limit then
				return {
					bottleneck = "communication",
					share = own,
					evidence = string.format("communication that nothing hides takes %s of the step%s", percent(share),
						own < share and string.format(", %s of it without waiting for a slow rank", percent(own)) or ""),
					try = { "bucket_cap_mb", "static_graph", "gradient_as_bucket_view", "NCCL_MIN_CTAS", "NCCL_ALGO",
						"NCCL_NET_GDR_LEVEL", "NCCL_SOCKET_NTHREADS" },
				}
			end
		end },
	{ name = "bandwidth", under = "exposed_communication", limit = 0.8,
		source = "probes: bus bandwidth below 80 % of the reference",
		asks = "is the network slow, or the transport the wrong one?", run = NCCL_LOG,
		needs = { "nccl_gdr|nccl_transport_channels|busbw_avg_gb_per_s|rdma_bw_bytes_per_s" },
		when = function(s)
			if s.nccl_gdr == 0 and over(s.nccl_nnodes, 1) then
				return { evidence = "NCCL does not use GPU Direct RDMA between nodes", try = { "NCCL_NET_GDR_LEVEL" } }
			end
			if s.busbw_avg_gb_per_s then
				return { evidence = string.format("nccl-tests reach %.1f GB/s on average: compare it with the link",
					s.busbw_avg_gb_per_s) }
			end
		end },
	{ name = "slow_rank", under = "exposed_communication", asks = "is it bandwidth, or one slow rank?",
		needs = { "straggler_ratio" }, run = "the same trace of every rank: fettle compares them",
		when = function(s)
			return s.straggler_ratio < 0.05 and { evidence = "no single rank keeps the others waiting" } or nil
		end },

	-- host -------------------------------------------------------------------------------------------------
	{ name = "launch_gaps", limit = 0.15, source = "probes: device idle above 15 % with little data wait",
		asks = "does the host launch kernels fast enough?", needs = { "launch_gap_ratio|host_other_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.launch_gap_ratio, limit) then
				local words = string.format("the device is idle for %s of the step, and not for data, copies or "
					.. "synchronisation", percent(s.launch_gap_ratio))
				if launch_bound(s) then
					return { bottleneck = "host", share = s.launch_gap_ratio, try = { "OMP_NUM_THREADS" },
						evidence = words .. ": the host does not launch kernels fast enough" }
				end
				-- Events may be missing: without a sign that the host is busy this is no finding with a figure.
				return { bottleneck = "host", evidence = words .. "; that the host is busy meanwhile is not shown" }
			end
		end },
	{ name = "launch_cause", under = "launch_gaps", limit = SHORT_KERNELS,
		source = "probes: many kernels below 10 us",
		asks = "many short kernels, slow Python, or a host without a CPU?", needs = { "rank_ready_ratio", "rank_cpu_cores" },
		run = PROFILE,
		when = function(s, limit)
			if over(s.rank_ready_ratio, NO_CPU) then
				return { evidence = string.format("the rank has no CPU for %s of its time", percent(s.rank_ready_ratio)) }
			end
			if over(s.kernel_short_ratio, limit) then
				return { evidence = string.format("%s of the kernels run less than 10 us: compile, fuse, or capture a graph",
					percent(s.kernel_short_ratio)) }
			end
			if over(s.rank_cpu_cores, HOST_BUSY) then
				return { evidence = string.format("kernels are long enough, and the rank computes on %.1f cores: Python "
					.. "itself, or work that belongs into the loader", s.rank_cpu_cores) }
			end
		end },
	{ name = "synchronising", limit = 0.10, source = "heuristic of ours", asks = "does the host wait for the device?",
		needs = { "sync_gap_ratio|host_other_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.sync_gap_ratio, limit) then
				return {
					bottleneck = "host",
					share = s.sync_gap_ratio,
					evidence = string.format("the device is idle for %s of the step after the host had waited for it: "
						.. "item(), cpu(), or a print in the loop", percent(s.sync_gap_ratio)),
				}
			end
		end },
	{ name = "starved", limit = 0.15, source = "heuristic of ours", asks = "do ranks have a CPU when they need one?",
		needs = { "rank_ready_ratio|tree_cpu_cores|cpu_user_pct" }, run = PROFILE,
		when = function(s, limit)
			local share = starved_share(s)
			if share > limit then
				return {
					bottleneck = "host",
					share = share,
					evidence = string.format("ranks are ready to compute and have no CPU for %s of the step: too many "
						.. "threads or other programs on these CPUs", percent(share)),
					try = { "OMP_NUM_THREADS" },
				}
			end
		end },
	{ name = "python", limit = 0.25, source = "heuristic of ours", asks = "does Python hold the step up?",
		needs = { "host_other_ratio|launch_gap_ratio" }, run = PROFILE,
		when = function(s, limit)
			if over(s.host_other_ratio, limit) then
				return {
					bottleneck = "host",
					share = s.host_other_ratio,
					evidence = string.format("for %s of the step no operator runs and no data is awaited: Python, locks, or "
						.. "files that the loop itself reads and writes", percent(s.host_other_ratio)),
				}
			end
		end },

	-- memory -----------------------------------------------------------------------------------------------
	{ name = "allocator", limit = 0.20, source = "heuristic of ours: (reserved - allocated) / reserved",
		asks = "does the device's allocator get in the way?",
		needs = { "alloc_retries|mem_fragmentation_ratio|mem_reserved_gib|alloc_gap_ratio|host_other_ratio" },
		run = "torch.cuda.memory_summary() printed at the end of the job",
		when = function(s, limit)
			local held = s.mem_fragmentation_ratio or over(s.mem_reserved_gib, 0) and s.mem_allocated_gib
				and (s.mem_reserved_gib - s.mem_allocated_gib) / s.mem_reserved_gib
			local try = { "expandable_segments", "max_split_size_mb", "roundup_power2_divisions" }
			if over(s.alloc_retries, 0) then
				return { bottleneck = "memory", try = try, evidence = string.format(
					"the allocator had to flush and retry %.0f times in the window", s.alloc_retries) }
			end
			if over(s.alloc_gap_ratio, 0.02) then
				return { bottleneck = "memory", try = try, share = s.alloc_gap_ratio, evidence = string.format(
					"the device is idle for %s of the step in cudaMalloc and cudaFree (%.0f calls a step)",
					percent(s.alloc_gap_ratio), s.alloc_calls or 0) }
			end
			if held and held > limit then
				return { bottleneck = "memory", try = try, evidence = string.format(
					"%s of the memory that the allocator holds is not in use", percent(held)) }
			end
		end },
	{ name = "host_allocator", limit = FAULTS_PER_MS, source = "heuristic of ours: 120 page faults in a ms of CPU time",
		asks = "does the host's allocator give memory back and take it again?",
		needs = { "minor_faults_per_step|alloc_gap_ratio" }, run = PROFILE,
		when = function(s, limit)
			local rate, kernel, share = faults_per_ms(s), kernel_share(s), churn_share(s, limit)
			if share > 0 then
				return {
					bottleneck = "memory",
					share = share,
					evidence = string.format("%.0f pages a step are touched for the first time, %.0f in a ms of CPU time, and "
						.. "the kernel takes %s of that time: malloc gives memory back that the next operator asks for again",
						s.minor_faults_per_step, rate, percent(kernel)),
					try = { "jemalloc", "tcmalloc", "MALLOC_ARENA_MAX" },
				}
			end
		end },

	-- compute ----------------------------------------------------------------------------------------------
	{ name = "device_busy", limit = 0.10, source = "probes: idle, communication and data each below 10 %",
		asks = "does the device compute all the time?", run = PROFILE,
		needs = { "gpu_idle_ratio|gpu_util_pct|host_other_ratio|tree_cpu_cores|cpu_user_pct" },
		when = function(s, limit)
			local words
			if s.gpu_idle_ratio and s.compute_ratio then
				if s.compute_ratio < 1 - 2 * limit or lost(s) > 2 * limit then
					return nil
				end
				words = string.format("kernels run for %s of the step", percent(s.compute_ratio))
			elseif over(s.gpu_util_pct, 95) and not over(s.data_wait_ratio, limit) then
				words = string.format("the GPU has a kernel running %.0f %% of the time; that alone does not say that the "
					.. "kernels are fast", s.gpu_util_pct)
			end
			return words and {
				bottleneck = "compute",
				share = math.max(0, 1 - lost(s)),
				evidence = words,
			} or nil
		end },
	{ name = "pipes", under = "device_busy", limit = 0.5, source = "probes: tensor pipe active half of the time",
		asks = "are its kernels fast: precision, shapes, memory?", run = DCGM,
		needs = { "tensor_active|dram_active|mfu_pct" },
		when = function(s, limit)
			if over(s.dram_active, 0.7) then
				return { bottleneck = "memory", evidence = string.format("device memory is busy %s of the time: kernels are "
					.. "bound by its bandwidth; fuse them", percent(s.dram_active)) }
			end
			if s.tensor_active and s.tensor_active < limit then
				return { evidence = string.format("the tensor pipe is busy %s of the time only: lower precision, "
					.. "TF32, or larger shapes", percent(s.tensor_active)) }
			end
			if s.mfu_pct and s.mfu_pct < 30 then
				return { evidence = string.format("MFU is %.1f %%: below 30 %% much is left to gain", s.mfu_pct) }
			end
		end },
	{ name = "clocks", under = "device_busy", asks = "are the clocks held back?", run = SMI,
		needs = { "clock_event_reasons" },
		when = function(s)
			if math.tointeger(s.clock_event_reasons // 1) & HELD_BACK ~= 0 then
				return { evidence = "power or heat held the clocks back" }
			end
		end },
	{ name = "cpus_busy", limit = 0.10, source = "probes: idle, communication and data each below 10 %",
		asks = "is the CPU what computes?",
		needs = { "host_other_ratio|tree_cpu_cores|cpu_user_pct|gpus_per_node|gpu_idle_ratio" },
		run = PROFILE,
		when = function(s, limit)
			if (s.gpus_per_node or 0) > 0 or s.gpu_idle_ratio or s.gpu_util_pct or over(s.data_wait_ratio, limit)
				or over(s.comm_exposed_ratio, limit) then
				return nil
			end
			local waits = s.data_wait_ratio and ", and the step waits only " .. percent(s.data_wait_ratio)
				.. " of its time for data" or ""
			-- What is left when nothing else has a name: it is no rival of what has one.
			if on_host(s) and over(s.compute_ratio, 0.5) and starved_share(s) < 0.15
				and churn_share(s, FAULTS_PER_MS) < 0.10 then
				return {
					bottleneck = "compute",
					share = math.max(0, 1 - lost(s)),
					evidence = string.format("operators run for %s of the step%s", percent(s.compute_ratio), waits),
					try = { "OMP_NUM_THREADS" },
				}
			end
			if not on_host(s) and cpu_bound(s) then
				return {
					bottleneck = "compute",
					share = math.max(0, 1 - (s.data_wait_ratio or 0)),
					evidence = cpu_words(s) .. waits,
					try = { "OMP_NUM_THREADS" },
				}
			end
		end },
}
