-- SPDX-License-Identifier: MIT
-- NCCL's environment. It reads names with getenv alone: a wrong name, or a number with a suffix
-- ("16M" is 16), is accepted without a word. So each of these must be acknowledged: NCCL's own line
-- "NAME set by environment to ..." (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS with ENV), from every rank.
local PATHS <const> = { "LOC", "NVL", "PIX", "PXB", "PHB", "SYS" } -- compared byte by byte, capitals only

local exposed <const> = relieves("comm_exposed_ratio", "communication that nothing hides")

-- Settings of the network between nodes.
local function between_nodes(value, s)
	if s.nodes == 1 then
		return { worth_trying = false, why = "all ranks are on one node: this network is not used" }
	end
	return exposed(value, s)
end

local function variable(t)
	t.env = t.name
	t.class = t.class or "neutral"
	t.proof = { level = "acknowledged", fact = "nccl.env." .. t.name }
	t.bottleneck = "communication"
	t.expect = t.expect or exposed
	return t
end

return {
	variable {
		name = "NCCL_ALGO",
		summary = "which algorithms NCCL may choose from",
		type = "text",
		values = { "allreduce:tree", "allreduce:ring", "^NVLS" },
		class = "numerics",
		lint = function(value)
			if not value:find("[:^]") then
				return "it restricts every collective: from NCCL 2.24 on, those that have no such algorithm fail (FSDP, "
					.. "ZeRO); name the function, as in allreduce:tree"
			end
		end,
		risk = "sums come in another order; a collective without a permitted algorithm ends the job",
		notes = "function names need NCCL 2.24; no effect on send, recv and all-to-all; 'Collnet' is gone since 2.14",
	},
	variable {
		name = "NCCL_PROTO",
		summary = "which protocols NCCL may choose from",
		type = "text",
		values = { "^LL128", "Simple" },
		class = "numerics",
		lint = function(value)
			if value:find("LL128", 1, true) and value:sub(1, 1) ~= "^" then
				return "naming LL128 switches off NCCL's check whether this platform keeps its order: data can be corrupted"
			end
		end,
		risk = "LL128 where it is not safe corrupts data: only exclude it",
		notes = "the choice by size that NCCL makes itself is usually right",
	},
	variable {
		name = "NCCL_BUFFSIZE",
		summary = "buffer of each channel to each peer, in bytes",
		type = "int", min = 65536, max = 268435456,
		values = { 2097152, 8388608, 16777216 },
		risk = "device memory grows with channels and peers",
		notes = "4194304 is NCCL's default, the plugin of AWS sets 8388608; only whole bytes: 16M would be 16",
	},
	variable {
		name = "NCCL_NTHREADS",
		summary = "threads of each CTA",
		one_of = { "64", "128", "256", "512" },
		values = { 256, 512 },
		risk = "low",
		notes = "only for Ring and Tree with LL and Simple; LL128 has NCCL_LL128_NTHREADS; NCCL_THREADS does not exist",
	},
	variable {
		name = "NCCL_MIN_CTAS",
		since = "nccl 2.17.1",
		excludes = { "NCCL_MIN_NCHANNELS" },
		summary = "least number of CTAs (channels) of a collective",
		type = "int", min = 1, max = 64,
		values = { 8, 16, 32 },
		risk = "CTAs are SMs that do not compute; many channels make each message small",
		notes = "from NCCL 2.17; before: NCCL_MIN_NCHANNELS; the larger of the two wins; NCCL_MIN_CHANNELS and "
			.. "NCCL_NCHANNELS do not exist",
	},
	variable {
		name = "NCCL_MAX_CTAS",
		summary = "most CTAs (channels) of a collective",
		type = "int", min = 1, max = 64,
		values = { 4, 8, 16 },
		risk = "communication may become slower; judge it by the step, not by bandwidth",
		notes = "gives SMs back to computing that overlaps; from NCCL 2.17; before: NCCL_MAX_NCHANNELS",
	},
	variable {
		name = "NCCL_P2P_LEVEL",
		summary = "how far apart two GPUs may be to copy directly",
		one_of = PATHS,
		values = { "NVL", "PXB", "SYS" },
		risk = "medium: direct copies over a slow path are slower than going through memory",
		notes = "other spellings ('nvl', 'NODE') are ignored without a line; NCCL_P2P_DISABLE wins over it",
	},
	variable {
		name = "NCCL_NET_GDR_LEVEL",
		summary = "how far apart GPU and network card may be for GPUDirect RDMA",
		one_of = PATHS,
		values = { "PHB", "SYS" },
		expect = between_nodes,
		risk = "medium: across sockets it can be slower than staging in host memory",
		notes = "needs nvidia-peermem or dma-buf; the proof of the effect is '/GDRDMA' in NCCL's transport lines; "
			.. "NCCL_IB_GDR_LEVEL and NCCL_GDR_LEVEL are not read",
	},
	variable {
		name = "NCCL_IB_QPS_PER_CONNECTION",
		summary = "queue pairs of each connection",
		type = "int", min = 1, max = 128,
		values = { 2, 4, 8 },
		expect = between_nodes,
		risk = "low",
		notes = "spreads one connection over several paths of a RoCE or ECMP network; not used by plugins such as EFA",
	},
	variable {
		name = "NCCL_SOCKET_NTHREADS",
		summary = "helper threads of each connection over TCP",
		type = "int", min = 1, max = 16,
		values = { 2, 4 },
		expect = between_nodes,
		risk = "CPU time; times NCCL_NSOCKS_PERTHREAD at most 64",
		notes = "only when NCCL says 'Using network Socket'",
	},
	variable {
		name = "NCCL_CROSS_NIC",
		summary = "may a ring leave a node through another card than it came in by",
		one_of = { "0", "1", "2" },
		values = { 0, 1 },
		expect = between_nodes,
		risk = "low",
		notes = "2, NCCL's default, decides by the topology; 0 for rails with slow links between them; no effect with one "
			.. "card a node",
	},
	variable {
		name = "NCCL_CTA_POLICY",
		summary = "how sparing NCCL is with SMs",
		since = "nccl 2.27.3",
		type = "text", one_of = { "DEFAULT", "EFFICIENCY", "ZERO" },
		values = { "EFFICIENCY", "ZERO" },
		risk = "medium",
		notes = "needs buffers that are registered",
	},
	variable {
		name = "NCCL_SHM_USE_CUDA_MEMCPY",
		summary = "copies through shared memory by the copy engine",
		since = "nccl 2.13.4", gone = "nccl 2.30.7",
		type = "int", min = 0, max = 1,
		values = { 1 },
		risk = "low",
		notes = "undocumented",
	},
	variable {
		name = "NCCL_MIN_NCHANNELS",
		summary = "older name of NCCL_MIN_CTAS",
		type = "int", min = 1, max = 64,
		values = { 8, 16, 32 },
		risk = "low",
		notes = "deprecated",
	},
}
