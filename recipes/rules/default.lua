-- SPDX-License-Identifier: MIT
-- Where the time goes. Thresholds are heuristics, from knowledge/method.md D and E; a site may put its own
-- rules/default.lua before this one on the recipe path.
local DATA_WAIT <const> = 0.10 -- "data wait > 10 % of the step"
local COMM_SHARE <const> = 0.10 -- exposed communication; 0.40 is where practitioners call a job unhealthy
local IOWAIT_PCT <const> = 10 -- CPUs idle with a disk request open
local CPU_BUSY_PCT <const> = 85 -- of all CPUs in user code: nothing is left to run on
local CORES_BUSY <const> = 0.85 -- of the CPUs that the trial may use
local LAUNCH_GAP <const> = 0.10 -- device idle between kernels
local GPU_BUSY_PCT <const> = 95 -- "GPU busy (> 95 %), step still slow"
local FRAGMENTED <const> = 0.20 -- (reserved - allocated) / reserved

local function cores_bound(s)
	return s.tree_cpu_cores ~= nil and over(s.ncpu, 0) and s.tree_cpu_cores / s.ncpu > CORES_BUSY
end

local function cpu_bound(s)
	return over(s.cpu_user_pct, CPU_BUSY_PCT) or cores_bound(s)
end

local function cpu_words(s)
	if cores_bound(s) then
		return string.format("%.1f of %d CPUs are busy", s.tree_cpu_cores, s.ncpu)
	end
	return string.format("CPUs are %.0f %% busy", s.cpu_user_pct)
end

return {
	{ name = "data_wait", when = function(s)
		if not over(s.data_wait_ratio, DATA_WAIT) then
			return nil
		end
		local cpu = cpu_bound(s)
		return {
			bottleneck = cpu and "host" or "storage",
			share = s.data_wait_ratio,
			evidence = string.format("the step waits %s of its time for data: without it %s could be gained%s",
				percent(s.data_wait_ratio), percent(ceiling_of(s.data_wait_ratio)),
				cpu and "; " .. cpu_words(s) .. ", so decoding competes with computing" or ""),
		}
	end },
	{ name = "exposed_communication", when = function(s)
		if over(s.comm_exposed_ratio, COMM_SHARE) then
			return {
				bottleneck = "communication",
				share = s.comm_exposed_ratio,
				evidence = string.format("communication that nothing hides takes %s of the step",
					percent(s.comm_exposed_ratio)),
			}
		end
	end },
	{ name = "iowait", when = function(s)
		if over(s.cpu_iowait_pct, IOWAIT_PCT) then
			return {
				bottleneck = "storage",
				share = math.min(s.cpu_iowait_pct / 100, 1),
				evidence = string.format("CPUs are idle with a disk request open %.0f %% of the time%s", s.cpu_iowait_pct,
					s.disk_r_await_ms and string.format("; a read takes %.1f ms", s.disk_r_await_ms) or ""),
			}
		end
	end },
	{ name = "launch_gaps", when = function(s)
		if over(s.launch_gap_ratio, LAUNCH_GAP) then
			return {
				bottleneck = "host",
				share = s.launch_gap_ratio,
				evidence = string.format("the device is idle between kernels for %s of the step: the host cannot "
					.. "launch them fast enough", percent(s.launch_gap_ratio)),
			}
		end
	end },
	{ name = "allocator", when = function(s)
		local held = over(s.mem_reserved_gib, 0) and s.mem_allocated_gib
			and (s.mem_reserved_gib - s.mem_allocated_gib) / s.mem_reserved_gib
		if over(s.alloc_retries, 0) or (held and held > FRAGMENTED) then
			return {
				bottleneck = "memory",
				evidence = over(s.alloc_retries, 0)
					and string.format("the allocator had to flush and retry %.0f times in the window", s.alloc_retries)
					or string.format("%s of the memory that the allocator holds is not in use", percent(held)),
			}
		end
	end },
	{ name = "device_busy", when = function(s)
		if over(s.gpu_util_pct, GPU_BUSY_PCT) and not over(s.data_wait_ratio, DATA_WAIT) then
			return {
				bottleneck = "compute",
				share = math.max(0, 1 - (s.data_wait_ratio or 0) - (s.comm_exposed_ratio or 0)),
				evidence = string.format("the GPU has a kernel running %.0f %% of the time; that alone does not say "
					.. "that the kernels are fast", s.gpu_util_pct),
			}
		end
	end },
	{ name = "cpus_busy", when = function(s)
		if (s.gpus_per_node or 0) == 0 and cpu_bound(s) and not over(s.data_wait_ratio, DATA_WAIT) then
			return {
				bottleneck = "compute",
				share = math.max(0, 1 - (s.data_wait_ratio or 0)),
				evidence = cpu_words(s) .. (s.data_wait_ratio and ", and the step waits only "
					.. percent(s.data_wait_ratio) .. " of its time for data" or ""),
			}
		end
	end },
}
