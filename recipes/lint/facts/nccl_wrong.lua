-- SPDX-License-Identifier: MIT
-- Names that look like NCCL's and are not, or no longer: what is meant, and why. `write` is a name that NCCL reads.
local function meant(write, why)
	return { write = write, why = why }
end
local function of(owner, write)
	return { owner = owner, write = write }
end

return {
	meant = {
		NCCL_THREADS = meant("NCCL_NTHREADS"),
		NCCL_NCHANNELS = meant("NCCL_MIN_CTAS", "NCCL_MIN_CTAS and NCCL_MAX_CTAS bound the number of channels"),
		NCCL_MIN_CHANNELS = meant("NCCL_MIN_CTAS", "a slip that stands in AWS's own EFA cheat sheet"),
		NCCL_MAX_CHANNELS = meant("NCCL_MAX_CTAS"),
		NCCL_CHANNELS = meant("NCCL_MIN_CTAS"),
		NCCL_BUFFER_SIZE = meant("NCCL_BUFFSIZE"),
		NCCL_BUFSIZE = meant("NCCL_BUFFSIZE"),
		NCCL_BUFF_SIZE = meant("NCCL_BUFFSIZE"),
		NCCL_IFNAME = meant("NCCL_SOCKET_IFNAME"),
		NCCL_IB_IFNAME = meant("NCCL_IB_HCA", "RDMA devices are chosen by NCCL_IB_HCA, IP interfaces by NCCL_SOCKET_IFNAME"),
		NCCL_HCA = meant("NCCL_IB_HCA"),
		NCCL_SOCKET_NSOCKS_PERTHREAD = meant("NCCL_NSOCKS_PERTHREAD"),
		NCCL_SOCKET_NTHREAD = meant("NCCL_SOCKET_NTHREADS"),
		NCCL_GDR_LEVEL = meant("NCCL_NET_GDR_LEVEL"),
		NCCL_GDR_READ = meant("NCCL_NET_GDR_READ"),
		NCCL_IB_GDR_LEVEL = meant("NCCL_NET_GDR_LEVEL"),
		NCCL_IB_CUDA_SUPPORT = meant("NCCL_NET_GDR_LEVEL"),
		NCCL_TREE_THRESHOLD = meant("NCCL_ALGO"),
		NCCL_LL_THRESHOLD = meant("NCCL_PROTO"),
		NCCL_THREAD_THRESHOLD = meant("NCCL_THREAD_THRESHOLDS"),
		NCCL_RINGS = meant("NCCL_MIN_CTAS"),
		NCCL_SINGLE_RING_THRESHOLD = meant(),
		NCCL_CHECKS_DISABLE = meant(nil, "gone since 2.2.12"),
		NCCL_NVLS_DISABLE = meant("NCCL_NVLS_ENABLE", "NCCL_NVLS_ENABLE=0 is what switches it off"),
		NCCL_IB_ENABLE = meant("NCCL_IB_DISABLE", "InfiniBand is on unless NCCL_IB_DISABLE=1"),
		NCCL_P2P_ENABLE = meant("NCCL_P2P_DISABLE", "P2P is on unless NCCL_P2P_DISABLE=1"),
		NCCL_SHM_ENABLE = meant("NCCL_SHM_DISABLE", "shared memory is on unless NCCL_SHM_DISABLE=1"),
		NCCL_SHARP_ENABLE = meant("NCCL_COLLNET_ENABLE"),
		NCCL_SHARP_DISABLE = meant("NCCL_COLLNET_ENABLE"),
		NCCL_MNNVL = meant("NCCL_MNNVL_ENABLE"),
		NCCL_WORK_FIFO_DEPTH = meant("NCCL_WORK_FIFO_BYTES"),
		NCCL_ALGORITHM = meant("NCCL_ALGO"),
		NCCL_PROTOCOL = meant("NCCL_PROTO"),
		NCCL_LOG_LEVEL = meant("NCCL_DEBUG"),
		NCCL_DEBUG_LEVEL = meant("NCCL_DEBUG"),
	},
	-- Read by somebody else. A * at the end stands for any rest.
	others = {
		NCCL_ASYNC_ERROR_HANDLING = of("PyTorch", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
		NCCL_BLOCKING_WAIT = of("PyTorch", "TORCH_NCCL_BLOCKING_WAIT"),
		NCCL_AVOID_RECORD_STREAMS = of("PyTorch", "TORCH_NCCL_AVOID_RECORD_STREAMS"),
		NCCL_DESYNC_DEBUG = of("PyTorch", "TORCH_NCCL_DESYNC_DEBUG"),
		NCCL_ENABLE_TIMING = of("PyTorch", "TORCH_NCCL_ENABLE_TIMING"),
		NCCL_HOME = of("build scripts"),
		NCCL_ROOT = of("build scripts"),
		NCCL_ROOT_DIR = of("build scripts"),
		NCCL_DIR = of("build scripts"),
		NCCL_PATH = of("build scripts"),
		NCCL_INCLUDE_DIR = of("build scripts"),
		NCCL_LIB_DIR = of("build scripts"),
		NCCL_LIB = of("build scripts"),
		NCCL_LIBRARY = of("build scripts"),
		NCCL_VERSION = of("container images"),
		NCCL_TEST_DIR = of("build scripts"),
		NCCL_IBEXT_DISABLE = of("the HPC-X RDMA plugin"),
		["NCCL_FASTRAK_*"] = of("Google's network plugin"),
		["NCCL_GPUDIRECTTCPX_*"] = of("Google's network plugin"),
		["NCCL_TESTS_*"] = of("nccl-tests"),
		NCCL_TUNER_CONFIG_PATH = of("Google's tuner plugin"),
		NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE = of("Google's network plugin"),
		NCCL_TUNER_CONFIG_FILE = of("the example tuner plugin"),
		["NCCL_PROFILE_*"] = of("profiler plugins"),
		["NCCL_INSPECTOR_*"] = of("the inspector plugin"),
	},
	-- Read by nobody at all.
	nobody = {
		NCCL_TIMEOUT = "a timeout is an argument of init_process_group(timeout=...), or TORCH_NCCL_BLOCKING_WAIT's",
		NCCL_SOCKET_TIMEOUT = "a timeout is an argument of init_process_group(timeout=...)",
		NCCL_NET_MAX_REQUESTS = "it is a constant of the source",
	},
}
