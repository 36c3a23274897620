-- SPDX-License-Identifier: MIT
-- AWS's EFA: libfabric (FI_*) and the plugin for NCCL (OFI_NCCL_*). A stack of today needs almost none of
-- them, and AWS says to leave most alone: they stand here because old guides still set them. DeepSpeed's
-- launcher does not carry FI_* and OFI_* to other nodes. Nobody reports that a name was read, so the proof
-- is that every rank has it; that EFA is in use at all shows as "Using network AWS Libfabric".
local exposed <const> = between_nodes(relieves("comm_exposed_ratio", "communication that nothing hides"))

local function variable(t)
	t.env = t.name
	t.class = "neutral"
	t.proof = "delivered"
	t.documented = t.documented or "user"
	t.idle = t.idle or { "NCCL_NET=Socket", "NCCL_NET=IB", "NCCL_NET_PLUGIN=none" }
	t.bottleneck = "communication"
	t.applies = t.applies or "network AWS Libfabric (EFA)"
	t.expect = t.expect or exposed
	t.evidence = t.evidence or "lines NET/OFI of the plugin; counters of rdma statistic show"
	return t
end

-- Old guides set it; today the stack knows better.
local function obsolete(why)
	return function()
		return { worth_trying = false, why = why }
	end
end

return {
	variable {
		name = "FI_PROVIDER",
		summary = "which of libfabric's providers",
		one_of = { "efa" },
		gone = "aws-ofi-nccl 1.6.0",
		safe = "unset",
		when = "only with the plugin up to 1.5.0",
		expect = obsolete("the plugin has chosen EFA by itself since 1.6"),
		risk = "low",
		mistakes = { "it is not what brings EFA into NCCL: the plugin is" },
		notes = "give the value yourself if you run such a plugin",
	},
	variable {
		name = "FI_EFA_USE_DEVICE_RDMA",
		summary = "RDMA of the device",
		one_of = { "0", "1" },
		gone = "libfabric 1.18",
		safe = "unset",
		when = "only with libfabric before 1.18 and the plugin before 1.7",
		expect = obsolete("libfabric finds out by itself since 1.18"),
		risk = "1 on a device without RDMA ends the job",
		mistakes = { "copied from a guide of 2021" },
		notes = "give the value yourself if you run such a stack",
	},
	variable {
		name = "FI_EFA_FORK_SAFE",
		summary = "memory that stays right after a fork",
		one_of = { "0", "1" },
		safe = "unset",
		when = "never: the plugin sets it",
		expect = obsolete("the plugin sets it by itself"),
		risk = "it switches huge pages off on old kernels",
		notes = "DataLoader workers fork: that is what it is for",
	},
	variable {
		name = "FI_EFA_USE_HUGE_PAGE",
		summary = "huge pages for EFA's buffers",
		one_of = { "0", "1" },
		default = 1, values = { 0 },
		safe = "0, 1",
		when = "DataLoader workers fail with 'Cannot allocate memory'",
		expect = told("it mends forks that fail; seldom faster"),
		risk = "low",
		notes = "forks of processes with huge pages need them twice",
	},
	variable {
		name = "FI_EFA_ENABLE_SHM_TRANSFER",
		summary = "shared memory inside the node",
		one_of = { "0", "1" },
		default = 1,
		safe = "unset",
		when = "never with NCCL",
		expect = obsolete("the plugin switches it off: inside the node NCCL has its own ways"),
		risk = "none",
		mistakes = { "set in guides, and without effect" },
		notes = "MPI over libfabric reads it",
	},
	variable {
		name = "FI_EFA_SET_CUDA_SYNC_MEMOPS",
		summary = "synchronous memory operations for registered GPU memory",
		one_of = { "0", "1" },
		default = 1,
		safe = "unset",
		when = "NCCL from 2.19 on with an EFA installer before 1.29.1",
		expect = obsolete("only an installer before 1.29.1 with NCCL from 2.19 on needs 0"),
		risk = "low",
		notes = "an error in registration is what it mends",
	},
	variable {
		name = "RDMAV_FORK_SAFE",
		summary = "rdma-core's way to stay right after a fork",
		one_of = { "1" },
		documented = "no",
		safe = "unset",
		when = "never on EFA: AWS says not to",
		expect = obsolete("AWS advises against it: it can break newer kernels"),
		risk = "high: it can break newer kernels",
		mistakes = { "copied from guides for InfiniBand" },
		notes = "the plugin sets FI_EFA_FORK_SAFE, which is enough",
	},
	variable {
		name = "OFI_NCCL_PROTOCOL",
		summary = "the plugin's way to send",
		one_of = { "SENDRECV", "RDMA" },
		values = { "SENDRECV", "RDMA" },
		safe = "unset: by the machine",
		when = "to see what the other way gives",
		risk = "medium: RDMA needs a device that can",
		notes = "p5 takes RDMA by itself",
	},
	variable {
		name = "OFI_NCCL_TUNER_TYPE",
		summary = "who chooses algorithm and protocol",
		one_of = { "INTERNAL", "REGION", "MODEL" },
		default = "REGION", values = { "INTERNAL", "MODEL" },
		idle = { "NCCL_TUNER_PLUGIN=none" },
		safe = "all three",
		when = "collectives of some sizes are slower than NCCL's own choice would be",
		evidence = "NCCL's line 'TUNER/Plugin: Using ...' (fact nccl.tuner)",
		risk = "medium: every size is chosen anew",
		notes = "INTERNAL is NCCL's own model",
	},
	variable {
		name = "OFI_NCCL_MIN_STRIPE_SIZE",
		summary = "messages from this size on go over several rails, in bytes",
		type = "int", min = 0, max = 1073741824,
		default = 131072, values = { 65536, 262144 },
		safe = "65536 to 262144",
		when = "several cards a GPU, messages of middle size",
		risk = "low",
		notes = "131072 by default",
	},
	variable {
		name = "OFI_NCCL_EAGER_MAX_SIZE",
		summary = "messages up to this size are sent without asking, in bytes",
		type = "int", min = -1, max = 1048576,
		default = 8192, values = { -1, 16384 },
		safe = "-1 (off) to 16384",
		when = "small messages between nodes",
		risk = "low",
		notes = "8192 by default",
	},
	variable {
		name = "OFI_NCCL_NIC_DUP_CONNS",
		summary = "connections that a card counts for",
		type = "int", min = 0, max = 16,
		default = 0, values = { 2 },
		safe = "0, 2",
		when = "one card is not filled by one connection",
		risk = "medium: the topology that NCCL sees is another",
		notes = "0 is off",
	},
	variable {
		name = "OFI_NCCL_FORCE_NUM_RAILS",
		summary = "cards that go together as one",
		type = "int", min = 0, max = 16,
		default = 0,
		safe = "0: by the machine",
		when = "the plugin groups cards wrongly",
		risk = "medium: cards are left idle",
		notes = "give the values yourself",
	},
	variable {
		name = "OFI_NCCL_USE_LOW_LATENCY_TC",
		summary = "control messages in a class of low latency",
		one_of = { "0", "1" },
		default = 1, values = { 0 },
		safe = "0, 1",
		when = "to see what it gives",
		risk = "low",
		notes = "1 by default",
	},
	variable {
		name = "OFI_NCCL_CUDA_FLUSH_ENABLE",
		summary = "flush by CUDA after a receive into the GPU",
		one_of = { "0", "1" },
		default = 0, values = { 1 },
		safe = "0",
		when = "flushes by the network hold receives",
		risk = "medium",
		notes = "0 by default",
	},
	variable {
		name = "OFI_NCCL_DISABLE_DMABUF",
		summary = "register GPU memory without dma-buf",
		one_of = { "0", "1" },
		default = 0, values = { 1 },
		safe = "0",
		when = "registration by dma-buf fails",
		expect = told("it mends a registration that fails; seldom faster"),
		risk = "medium: needs the older kernel module",
		notes = "0 by default",
	},
}
