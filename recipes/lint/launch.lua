-- SPDX-License-Identifier: MIT
-- Job scripts and command lines: what reaches the ranks, and what launchers overwrite on the way.

local function number(text)
	return type(text) == "string" and tonumber(text) or nil
end

-- The words of launchers, before the program that they start; and what comes behind it.
local function split(c)
	local before_it, behind, at = {}, {}, nil
	for i, word in ipairs(c.words) do
		local python = i > 1 and c.words[i - 1]:find("python[%d.]*$")
		if c.program then -- a script's reader knows where it is
			at = i >= c.program and c.program or nil
		elseif not at and i > 1 and (word:find("%.py$") or word:find("%.sh$")
			or (python and not word:find("^%-") and word ~= "torch.distributed.run")) then
			at = i
		end
		local list = at and i >= at and behind or before_it
		list[#list + 1] = word
	end
	return { words = before_it, file = c.file, line = c.line }, { words = behind, file = c.file, line = c.line }
end

local function is_torchrun(c)
	return runs(c, "torchrun") or set_of(c.words)["torch.distributed.run"] or set_of(c.words)["torch.distributed.launch"]
end

local function ranks_asked(c)
	return number(option(c, "--nproc_per_node", "--nproc-per-node", "--num_processes_per_node"))
end

-- Of `#SBATCH --NAME=value`, nil where there is none.
local function sbatch(x, name)
	local o = x.sbatch and x.sbatch[name]
	return o and o.value or nil, o
end

-- Does the setting concern how fast or whether the job runs: is it worth a finding when it gets lost?
local function of_ours(s, x)
	return s.layer ~= "shell" and s.layer ~= "nccl.conf" and s.layer ~= "knob"
		and (x.facts.nccl[s.name] ~= nil or x.facts.env[s.name] ~= nil) and s.name ~= "CUDA_HOME" and s.name ~= "CUDA_PATH"
		and s.name ~= "LD_LIBRARY_PATH"
end

local function exported(env, x, but)
	local names = {}
	for name, s in pairs(env) do
		if of_ours(s, x) and s.layer ~= "prefix" and s.layer ~= "command" and not (but and but(name)) then
			names[#names + 1] = name
		end
	end
	return names
end

local function listed(names)
	local shown = table.concat(names, ", ", 1, math.min(#names, 4))
	return #names > 4 and shown .. string.format(" and %d more", #names - 4) or shown
end

-- --- what srun passes ----------------------------------------------------------------------

-- The names that --export lets through; true: all.
local function let_through(list)
	local names, all = {}, false
	for _, part in ipairs(parts(list, ",")) do
		if part:upper() == "ALL" then
			all = true
		elseif part:upper() ~= "NONE" and part:upper() ~= "NIL" then
			names[part:match("^[^=]*")] = true
		end
	end
	return all or names, names
end

local function srun_export(c, x, env)
	local launcher = split(c)
	local list = runs(launcher, "srun") and option(launcher, "--export")
	if type(list) ~= "string" then
		return nil
	end
	local through, own = let_through(list)
	local lost = through ~= true and exported(env, x, function(name) return through[name] end) or {}
	if #lost > 0 then
		return wrong(string.format("srun --export=%s passes nothing else on: %s stay%s in the script", list, listed(lost),
			#lost == 1 and "s" or ""), "srun --export=ALL")
	end
	for name in pairs(own) do
		if env[name] and list:find(name .. "=", 1, true) and env[name].layer == "export" then
			return risky(string.format("the script exports %s too, and its value may be the one that the ranks get (srun(1))",
				name), "one of the two", env[name])
		end
	end
end

local function sbatch_export(x)
	local list, at = sbatch(x, "export")
	local env_again = false
	for _, s in ipairs(x.settings) do
		env_again = env_again or (s.name == "SLURM_EXPORT_ENV" and (s.value == nil or s.value == "ALL"))
	end
	for _, c in ipairs(x.commands) do
		local launcher = split(c)
		env_again = env_again or option(launcher, "--export") == "ALL" or not runs(launcher, "srun")
	end
	if list and list:upper() == "NONE" and #x.commands > 0 and not env_again then
		local names = {}
		for _, s in ipairs(x.settings) do
			if of_ours(s, x) then
				names[#names + 1] = s.name
			end
		end
		if #names > 0 then
			return wrong("sbatch hands --export=NONE on as SLURM_EXPORT_ENV=NONE, which srun obeys: what the script exports ("
				.. listed(names) .. ") does not reach the ranks", "unset SLURM_EXPORT_ENV before srun, or srun --export=ALL",
				{ name = "#SBATCH --export", value = "NONE", file = at.file, line = at.line })
		end
	end
end

-- --- ranks ---------------------------------------------------------------------------------

local function ranks(c, x)
	local launcher = split(c)
	local per_node, gpus = ranks_asked(launcher), x.gpus_per_node
	local tasks = number((sbatch(x, "ntasks-per-node"))) or nil
	local total = number((sbatch(x, "ntasks")))
	local out = {}
	if is_torchrun(launcher) and runs(launcher, "srun") then
		local asked = number(option(launcher, "--ntasks-per-node")) or tasks
		if not asked and total and x.nodes and x.nodes > 0 then
			asked = total / x.nodes
		end
		if number(option(launcher, "--ntasks", "-n")) and x.nodes then
			asked = number(option(launcher, "--ntasks", "-n")) / x.nodes
		end
		if asked and asked > 1 and (per_node or 1) > 1 then
			out[#out + 1] = wrong(string.format("srun starts torchrun %d times on each node, and each starts %d ranks: %d in "
				.. "place of %d", asked, per_node, asked * per_node, per_node), "srun --ntasks-per-node=1")
		end
	end
	if is_torchrun(launcher) and gpus and gpus > 0 and per_node and per_node > gpus then
		out[#out + 1] = wrong(string.format("%d ranks for %d GPUs of the node: those above have no device and end the job",
			per_node, gpus), string.format("--nproc-per-node=%d", gpus))
	elseif is_torchrun(launcher) and gpus and per_node and per_node < gpus then
		out[#out + 1] = risky(string.format("%d ranks, and the node has %d GPUs: the others idle", per_node, gpus),
			string.format("--nproc-per-node=%d", gpus))
	end
	if is_torchrun(launcher) and x.sbatch and (x.nodes or 1) > 1 and not runs(launcher, "srun")
		and not runs(launcher, "pdsh") and not runs(launcher, "mpirun") and not runs(launcher, "ssh") then
		out[#out + 1] = wrong(string.format("a script runs on the first node alone: torchrun starts on one of %d", x.nodes),
			"srun --ntasks-per-node=1 torchrun ...")
	end
	if is_torchrun(launcher) and (x.nodes or 1) > 1 and not option(launcher, "--nnodes") then
		out[#out + 1] = wrong(string.format("without --nnodes each of the %d nodes trains a job of its own", x.nodes),
			string.format("--nnodes=%d --rdzv-backend=c10d --rdzv-endpoint=...", x.nodes))
	end
	return out
end

-- --- threads -------------------------------------------------------------------------------

local function threads(c, x, env)
	local launcher = split(c)
	local per_node = ranks_asked(launcher)
	local text = value_of(env, "OMP_NUM_THREADS")
	local asked = text and c_integer(text)
	if is_torchrun(launcher) and not env.OMP_NUM_THREADS and (per_node == nil or per_node > 1) then
		return mention("torchrun sets OMP_NUM_THREADS=1 where it is not set and there are several ranks; srun does not",
			"export OMP_NUM_THREADS=<CPUs of a rank>")
	end
	local cpus = x.cpus_per_task and x.cpus_per_task / (is_torchrun(launcher) and per_node or 1)
	if asked and cpus and asked > cpus and not (is_torchrun(launcher) and not per_node) then
		return risky(string.format("%d threads, and a rank has %g CPUs", asked, cpus),
			string.format("OMP_NUM_THREADS=%d", math.max(1, math.floor(cpus))), env.OMP_NUM_THREADS)
	end
end

-- --- the loader ----------------------------------------------------------------------------

local function loader(c, x)
	local _, program = split(c)
	local workers = option(program, "--num_workers", "--num-workers", "--dataloader_num_workers", "--workers",
		"--data.num_workers")
	local prefetch = option(program, "--prefetch_factor", "--prefetch-factor", "--dataloader_prefetch_factor")
	local persistent = option(program, "--persistent_workers", "--persistent-workers", "--dataloader_persistent_workers")
	local hf = option(program, "--dataloader_prefetch_factor") or option(program, "--dataloader_persistent_workers")
	local none = number(workers) == 0 or (workers == nil and hf)
	if none and number(prefetch) then
		return wrong("prefetch_factor with no workers is a ValueError: nothing prefetches then",
			"--num-workers above 0, or no prefetch factor")
	elseif none and persistent and persistent ~= "False" and persistent ~= "false" then
		return wrong("persistent workers with no workers are a ValueError", "--num-workers above 0, or take it out")
	elseif number(prefetch) == 0 then
		return wrong("a prefetch factor of 0 passes the constructor and fails at the first batch", "2 or more")
	elseif number(workers) and x.cpus_per_task and not is_torchrun(c)
		and number(workers) > math.max(1, math.floor(x.cpus_per_task) - 1) then
		return risky(string.format("%d workers a rank, and a rank has %g CPUs", number(workers), x.cpus_per_task),
			string.format("at most %d", math.max(1, math.floor(x.cpus_per_task) - 1)))
	end
end

-- --- frameworks ----------------------------------------------------------------------------

local function megatron(c, env)
	local _, program = split(c)
	local function flag(name) return option(program, name) ~= nil end
	local out = {}
	if flag("--overlap-param-gather") and not flag("--use-distributed-optimizer") then
		out[1] = wrong("--overlap-param-gather asserts without the distributed optimizer",
			"--use-distributed-optimizer beside it")
	end
	if flag("--async-save") and flag("--tensor-model-parallel-size") and not flag("--use-persistent-ckpt-worker") then
		out[#out + 1] = wrong("Megatron's --async-save asserts without --use-persistent-ckpt-worker",
			"--use-persistent-ckpt-worker beside it")
	end
	if flag("--tp-comm-overlap") and not flag("--sequence-parallel") then
		out[#out + 1] = wrong("--tp-comm-overlap needs sequence parallelism", "--sequence-parallel beside it")
	end
	if flag("--sequence-parallel") and flag("--tensor-model-parallel-size") then
		local queues = value_of(env, "CUDA_DEVICE_MAX_CONNECTIONS")
		if queues and queues ~= "1" then
			out[#out + 1] = wrong("Megatron's tensor and sequence parallelism rely on one queue: the order of kernels is lost",
				"CUDA_DEVICE_MAX_CONNECTIONS=1", env.CUDA_DEVICE_MAX_CONNECTIONS)
		elseif not env.CUDA_DEVICE_MAX_CONNECTIONS then
			out[#out + 1] = risky("Megatron's tensor and sequence parallelism rely on CUDA_DEVICE_MAX_CONNECTIONS=1",
				"export CUDA_DEVICE_MAX_CONNECTIONS=1")
		end
	end
	return out
end

local function true_flag(value)
	return value ~= nil and value ~= "False" and value ~= "false"
end

local function precision(c)
	local _, program = split(c)
	if true_flag(option(program, "--bf16")) and true_flag(option(program, "--fp16")) then
		return wrong("--bf16 and --fp16 exclude each other", "one of the two")
	end
end

-- What DeepSpeed's launcher carries to other nodes.
local function deepspeed_forwards(name)
	for _, prefix in ipairs { "NCCL", "PYTHON", "MLFLOW", "MV2", "UCX" } do
		if name:sub(1, #prefix) == prefix then
			return true
		end
	end
	return false
end

local function deepspeed(c, x, env)
	local launcher = split(c)
	if not runs(launcher, "deepspeed") or runs(launcher, "srun") or (x.nodes or 1) < 2 then
		return nil
	end
	local lost = exported(env, x, deepspeed_forwards)
	if #lost > 0 then
		return wrong("DeepSpeed's launcher carries variables that begin with NCCL, PYTHON, MLFLOW, MV2 or UCX alone: "
			.. listed(lost) .. " do not reach the other nodes", "a file .deepspeed_env with NAME=VALUE lines")
	end
end

-- --- containers ----------------------------------------------------------------------------

local function containers(c, x, env)
	local launcher = split(c)
	local names = exported(env, x)
	if #names == 0 then
		return nil
	end
	local enclosed = set_of(c.words)
	if (runs(launcher, "apptainer") or runs(launcher, "singularity"))
		and (enclosed["--cleanenv"] or enclosed["-e"] or enclosed["--containall"] or enclosed["-C"]) then
		local lost = exported(env, x, function(name)
			local given = option(launcher, "--env")
			return type(given) == "string" and given:find(name, 1, true) ~= nil
		end)
		return #lost > 0 and wrong("the container starts with an empty environment: " .. listed(lost)
			.. " do not reach it", "--env NAME=VALUE, or APPTAINERENV_NAME=VALUE") or nil
	end
	if (runs(launcher, "docker") or runs(launcher, "podman")) and enclosed.run then
		local text = table.concat(c.words, " ")
		local lost = exported(env, x, function(name) return text:find(name, 1, true) ~= nil end)
		if #lost > 0 and not text:find("%-%-env%-file") then
			return wrong("docker passes on what -e names and nothing else: " .. listed(lost) .. " do not reach the container",
				"-e " .. lost[1])
		end
	end
	if type(option(launcher, "--container-image")) == "string" and not option(launcher, "--container-env") then
		return mention("where the image sets a variable too, the image's value wins over the job's unless --container-env "
			.. "names it: " .. listed(names), "--container-env=" .. table.concat(names, ","))
	end
end

-- --- binding -------------------------------------------------------------------------------

local function binding(c, x)
	local several = (ranks_asked(split(c)) or x.ranks_per_node or 1) > 1
	local node = option(c, "--cpunodebind", "-N")
	if several and runs(c, "numactl") and type(node) == "string" and node:find("^%d+$") then
		return risky(string.format("every rank goes to NUMA node %s: GPUs of another node are far from their rank", node),
			"a node for each rank, or torchrun --numa-binding=node")
	elseif several and runs(c, "taskset") then
		return risky("all ranks get the same CPUs", "srun --cpu-bind=cores")
	end
end

local function gpu_binding(c, x)
	local bind = option(split(c), "--gpu-bind")
	local _, at = sbatch(x, "gpus-per-task")
	local single = type(bind) == "string" and bind:find("^single") or (at and at.value == "1" and not bind)
	if single and (x.ranks_per_node or 2) > 1 then
		return risky("each rank sees one GPU: direct copies between GPUs (CUDA IPC) are not possible, and NCCL goes through "
			.. "shared memory", "--gpu-bind=none, and let each rank choose its device",
			at and not bind and { name = "#SBATCH --gpus-per-task", value = at.value, file = at.file, line = at.line } or nil)
	end
end

-- srun of 22.05 to 23.02 does not take -c from sbatch.
local function cpus_per_task(c, x, env)
	local cpus, at = sbatch(x, "cpus-per-task")
	local launcher = split(c)
	if not cpus or not at or cpus == "1" or not runs(launcher, "srun") or option(launcher, "--cpus-per-task", "-c")
		or env.SRUN_CPUS_PER_TASK or (x.slurm and (before(x.slurm, "22.05") or from(x.slurm, "23.11"))) then
		return nil
	end
	for _, word in ipairs(launcher.words) do
		if word:find("^%-c%d") then
			return nil
		end
	end
	return (x.slurm and wrong or mention)("srun of Slurm 22.05 to 23.02 does not take --cpus-per-task from sbatch: each "
		.. "rank gets one CPU", "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK")
end

return rules {
	{ name = "srun_export", command = srun_export },
	{ name = "sbatch_export_none", all = sbatch_export },
	{ name = "ranks", command = ranks },
	{ name = "threads", command = threads },
	{ name = "loader", command = loader },
	{ name = "megatron", command = function(c, _, env) return megatron(c, env) end },
	{ name = "precision", command = precision },
	{ name = "deepspeed_env", command = deepspeed },
	{ name = "container_env", command = containers },
	{ name = "binding", command = binding },
	{ name = "gpu_binding", command = gpu_binding },
	{ name = "srun_cpus", command = cpus_per_task },
	{ name = "profiled", command = function(c)
		if runs(c, "nsys") or runs(c, "ncu") then
			return mention("a profiler slows the run down: its times are no result", nil)
		end
	end },
	{ name = "not_exported", setting = function(s, x)
		if s.layer ~= "shell" or s.value == nil or s.used or not (x.facts.nccl[s.name] or x.facts.env[s.name])
			or s.name:find("^MASTER_") then
			return nil
		end
		for _, other in ipairs(x.settings) do
			if other.name == s.name and other.layer ~= "shell" then
				return nil
			end
		end
		local inherited = (s.text or ""):find(s.name, 1, true) -- NAME=${NAME:-value}
		return (inherited and mention or wrong)("it is not exported: no process that the script starts sees it"
			.. (inherited and ", unless the script itself was given it" or ""), "export " .. s.name .. "=" .. s.value)
	end },
	{ name = "set_again", setting = function(s, x)
		if s.layer ~= "export" or s.conditional then
			return nil
		end
		for _, other in ipairs(x.settings) do
			local later = other.name == s.name and other.layer == "export" and not other.conditional
				and (other.line or 0) > (s.line or 0) and other.file == s.file
			if later and other.value ~= s.value and of_ours(s, x)
				and not (other.dynamic and (other.text or ""):find(s.name, 1, true)) then
				for _, c in ipairs(x.commands) do
					if (c.line or 0) > s.line and (c.line or 0) < other.line then
						return nil
					end
				end
				return risky(string.format("line %d sets it again, to %s, before anything is started", other.line,
					other.value or "something else"), "one of the two")
			end
		end
	end },
	{ name = "visible_devices", setting = function(s, x)
		if s.name == "CUDA_VISIBLE_DEVICES" and s.value and not s.dynamic and x.gpus_per_node and s.layer ~= "knob" then
			local n = #parts(s.value, ",")
			if s.value ~= "" and n ~= x.gpus_per_node then
				return risky(string.format("it shows %d of the %d GPUs that the job has", n, x.gpus_per_node), "take it out: Slurm "
					.. "sets it")
			end
		end
	end },
}
