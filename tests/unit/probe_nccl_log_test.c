/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/probe_check.h"

extern const struct probe probe_nccl_log;

static void test_modern(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_log,
					     "nccl-log-2.28-ib-gdr-nvls-tuning-warn.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "nccl.version", "2.28.9+cuda12.9");
	check_fact(&f, "nccl.env.NCCL_SOCKET_IFNAME", "eth0");
	check_fact(&f, "nccl.env.NCCL_IB_HCA", "mlx5_0,mlx5_1");
	check_fact(&f, "nccl.env.NCCL_IB_GID_INDEX", "3");
	check_fact(&f, "nccl.env.NCCL_ALGO", "Ring,NVLS");
	assert_int_equal(found_nth(&f, "nccl.env.NCCL_ALGO", 0)->rank, 0);
	assert_int_equal(found_nth(&f, "nccl.env.NCCL_ALGO", 0)->line, 7);
	check_fact(&f, "nccl.network", "IB");
	check_fact(&f, "nccl.nvls", "available");
	check_at(&f, "nccl_nranks", -1, NULL, 16);
	check_at(&f, "nccl_nnodes", -1, NULL, 2);
	check_at(&f, "nccl_coll_channels", -1, NULL, 16);
	check_at(&f, "nccl_nvls_channels", -1, NULL, 16);
	check_at(&f, "nccl_p2p_channels", -1, NULL, 32);
	check_at(&f, "nccl_transport_channels", -1, "transport=NET/IB", 2);
	check_at(&f, "nccl_transport_channels", -1, "transport=P2P/CUMEM", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=SHM", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=NET/Socket", 1);
	check_at(&f, "nccl_gdr_channels", -1, NULL, 2);
	check_at(&f, "nccl_gdr", -1, NULL, 1);
	check_at(&f, "nccl_init_s", -1, NULL, 3.41);
	check_fact(&f, "nccl.algo", "AllReduce 268435456 RING SIMPLE");
	assert_int_equal(found_count(&f, "nccl.warn"), 1);
	assert_non_null(strstr(found_nth(&f, "nccl.warn", 0)->text, "with status=12"));
	check_fact(&f, "nccl.warn_class", "network: a peer did not answer (IBV_WC_RETRY_EXC_ERR)");
	check_fact(&f, "nccl.net_devices", "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]");
	findings_free(&f);
}

/* Older and other wordings, what is chosen, what is wrong. */
static void test_versions(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_log, "nccl-log-versions.txt");

	(void)state;
	check_status(&f, PROBE_FAILED);
	assert_non_null(strstr(f.detail.data, "line 28: a collective timed out"));
	check_fact(&f, "nccl.net_plugin", "AWS Libfabric (v8)");
	check_fact(&f, "nccl.network", "AWS Libfabric");
	check_fact(&f, "nccl.tuner", "nccl_ofi_tuner (v3)");
	check_fact(&f, "nccl.env_refused.NCCL_NTHREADS", "100");
	check_fact(&f, "nccl.comm", "0xaa nranks 16");
	assert_string_equal(found_nth(&f, "nccl.comm", 1)->text, "0xbb nranks 2");
	check_at(&f, "nccl_communicators", -1, NULL, 2);
	check_at(&f, "nccl_nranks", -1, NULL, 16); /* not 64 of a multicast group */
	check_at(&f, "nccl_nnodes", -1, NULL, 2);
	check_at(&f, "nccl_transport_channels", -1, "transport=NET/AWS Libfabric", 2);
	check_at(&f, "nccl_transport_channels", -1, "transport=COLLNET/SHARP", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=P2P/IPC", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=P2P/indirect", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=SHM", 1);
	check_at(&f, "nccl_gdr", -1, NULL, 1);
	check_fact(&f, "nccl.pxn", "1");
	check_fact(&f, "nccl.graph",
		   "4, crossNic 1, nChannels 16, bw 20.000000/20.000000, type NVL/PIX, "
		   "sameChannels 1");
	check_fact(&f, "nccl.algo", "? 33554432 RING SIMPLE");
	assert_string_equal(found_nth(&f, "nccl.algo", 1)->text, "? 1024 TREE LL");
	check_fact(&f, "nccl.warn_class", "host: /dev/shm is full or too small");
	assert_non_null(strstr(found_nth(&f, "nccl.watchdog", 0)->text, "OpType=ALLREDUCE"));
	assert_int_equal(found_nth(&f, "nccl.watchdog", 0)->rank, 8);
	assert_int_equal(found_count(&f, "nccl.suspect"), 3);
	check_fact(&f, "nccl.suspect", "channels inside a node go through host memory (SHM)");
	assert_non_null(strstr(found_nth(&f, "nccl.suspect", 2)->text, "NVLink SHARP"));
	findings_free(&f);
}

/* What PyTorch and vLLM say when NCCL failed; a log whose communicators all began is no success. */
static void test_failures(void **state)
{
	static const char *const said[] = {
		"[rank1]: torch.distributed.DistBackendError: NCCL error in: "
		"../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled system error "
		"(run with NCCL_DEBUG=INFO for details), NCCL version 2.21.5\n"
		"[rank1]: ncclSystemError: System call (e.g. socket, malloc) or external library "
		"call failed or device error.\n"
		"[rank1]: Last error:\n"
		"n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 - Abort COMPLETE\n"
		"[rank0]: Traceback (most recent call last):\n"
		"[rank1]: Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)\n",
		"RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)\n",
		"[rank25]:[F ProcessGroupNCCL.cpp:1169] [PG 0 Rank 25] [PG 0 Rank 25] "
		"ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in "
		"monitoring enqueued collectives.\n",
	};
	static const char *const facts[] = {"nccl.error", "nccl.error", "nccl.watchdog_stuck"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		_cleanup_free_ char *text = xasprintf(
			"n1:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n%s", said[i]);
		struct findings f = findings_text(&probe_nccl_log, text);

		check_status(&f, PROBE_FAILED);
		assert_int_equal(found_count(&f, facts[i]), 1);
		if (!i) {
			check_fact(&f, "nccl.warn",
				   "Error while creating shared memory segment "
				   "/dev/shm/nccl-x (size 9637888)");
			check_fact(&f, "nccl.warn_class", "host: /dev/shm is full or too small");
			assert_int_equal(found_count(&f, "nccl.warn"), 1);
		}
		findings_free(&f);
	}
}

static void test_suspects(void **state)
{
	static const char text[] =
		"n1:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
		"n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0\n";
	struct findings f = findings_text(&probe_nccl_log, text);

	(void)state;
	check_fact(&f, "nccl.net_devices", "NET/IB : Using [0]mlx5_0:1/IB [RO]");
	assert_int_equal(found_count(&f, "nccl.suspect"), 1);
	assert_non_null(strstr(found_nth(&f, "nccl.suspect", 0)->text, "although NET/IB"));
	findings_free(&f);
	f = findings_text(&probe_nccl_log,
			  "n1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n"
			  "n1:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU 0 / HCA 0 "
			  "(distance 8 > 5)\n");
	check_fact(&f, "nccl.suspect", "no network channel uses GPU Direct RDMA");
	check_fact(&f, "nccl.gdr", "Disabled for GPU 0 / HCA 0 (distance 8 > 5)");
	check_at(&f, "nccl_gdr", -1, NULL, 0);
	findings_free(&f);
}

static void test_blank_lines(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_log,
					     "nccl-log-blank-lines-timestamps.txt");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "nccl.env.NCCL_TOPO_FILE", "/etc/topo.xml");
	check_fact(&f, "nccl.nvls", "not available");
	assert_null(found_nth(&f, "nccl_nranks", 0));
	findings_free(&f);
}

/* A variable that does not exist leaves no line, and that is what an arm is judged by. */
static void test_lab(void **state)
{
	struct findings f = findings_fixture(&probe_nccl_log, "nccl-h200.log");

	(void)state;
	check_status(&f, PROBE_OK);
	check_fact(&f, "nccl.version", "2.28.9+cuda13.0");
	check_fact(&f, "nccl.env.NCCL_BUFFSIZE", "8388608");
	check_fact(&f, "nccl.env.NCCL_NTHREADS", "256");
	assert_null(found_nth(&f, "nccl.env.NCCL_THREADS", 0));
	check_fact(&f, "nccl.network", "Socket");
	check_at(&f, "nccl_nranks", -1, NULL, 1);
	check_at(&f, "nccl_nvls_channels", -1, NULL, 0);
	findings_free(&f);
	f = findings_fixture(&probe_nccl_log, "nccl-x2.log");
	check_status(&f, PROBE_OK);
	check_at(&f, "nccl_nranks", -1, NULL, 2);
	check_at(&f, "nccl_nnodes", -1, NULL, 1);
	check_at(&f, "nccl_coll_channels", -1, NULL, 8);
	check_at(&f, "nccl_transport_channels", -1, "transport=P2P/CUMEM", 16);
	assert_int_equal(found_count(&f, "nccl.env.NCCL_MAX_CTAS"), 2);
	assert_int_equal(found_nth(&f, "nccl.env.NCCL_MAX_CTAS", 0)->rank, 0);
	assert_int_equal(found_nth(&f, "nccl.env.NCCL_MAX_CTAS", 1)->rank, 1);
	assert_int_equal(found_count(&f, "nccl.env.NCCL_BUFFSIZE"), 2);
	assert_int_equal(found_count(&f, "nccl.env.NCCL_NVLS_ENABLE"), 2);
	assert_null(found_nth(&f, "nccl.env.NCCL_NCHANNELS", 0));
	assert_null(found_nth(&f, "nccl.env.NCCL_P2P_LEVEL", 0));
	assert_null(found_nth(&f, "nccl_gdr", 0));
	assert_true(found_count(&f, "nccl.algo") >= 20);
	findings_free(&f);
}

static void test_odd_lines(void **state)
{
	struct findings f = findings_text(
		&probe_nccl_log,
		"3: h.a-b:7:8 [0] NCCL INFO Invalid value 9999 for NCCL_NTHREADS, using default "
		"512.\n"
		"3: h.a-b:7:8 [0] NCCL INFO NCCL_NTHREADS set by environment to 64.\n"
		"3: h.a-b:7:8 [0] NCCL INFO NCCL_NTHREADS set by environment to 64.\n"
		"3: h.a-b:7:8 [0] NCCL INFO P2P Chunksize set to 524288\n"
		"3: h.a-b:7:8 [0] NCCL INFO Channel 0 : 0[1] -> 1[2] via NET/AWS "
		"Libfabric/0(1)/GDRDMA/Shared comm 0x5 nRanks 16\n"
		"3: h.a-b:7:8 [0] NCCL INFO Channel 0 : 0[1] -> 1[2] via direct shared memory\n"
		"3: h.a-b:7:8 [0] NCCL INFO CollNet 00/0 : 1 [send] via COLLNET/SHARP/0/GDRDMA\n"
		"3: h.a-b:7:8 [0] NCCL INFO 4096 Bytes -> Algo 4 proto 2 time 12.5\n"
		"3: h.a-b:7:8 [0] NCCL INFO x rank 3 nranks 16 cudaDev 0 - Init START\n"
		"h.a-b:7:8 NCCL CALL ncclGroupStart()\n"
		"we use NCCL INFO here\n"
		"h.a-b:7:8 [0] NCCL INFO NCCL_ALGO set by environment to Ri");

	(void)state;
	check_status(&f, PROBE_PARTIAL);
	check_fact(&f, "nccl.env_refused.NCCL_NTHREADS", "9999");
	check_fact(&f, "nccl.env.NCCL_NTHREADS", "64");
	assert_int_equal(found_count(&f, "nccl.env.NCCL_NTHREADS"), 1);
	assert_int_equal(found_nth(&f, "nccl.env.NCCL_NTHREADS", 0)->rank, 3);
	assert_null(found_nth(&f, "nccl.env.NCCL_ALGO", 0));
	check_at(&f, "nccl_transport_channels", -1, "transport=NET/AWS Libfabric", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=SHM", 1);
	check_at(&f, "nccl_transport_channels", -1, "transport=COLLNET/SHARP", 1);
	check_at(&f, "nccl_gdr_channels", -1, NULL, 1);
	check_fact(&f, "nccl.algo", "? 4096 NVLS SIMPLE");
	assert_non_null(strstr(f.detail.data, "did not complete"));
	findings_free(&f);
	f = findings_text(&probe_nccl_log, "no such line\n");
	check_status(&f, PROBE_ABSENT);
	assert_int_equal(f.n, 0);
	findings_free(&f);
}

/* RCCL names itself in its version alone; other wordings of what ran, is missing, went wrong. */
static void test_wordings(void **state)
{
	static const char text[] =
		"RCCL version 2.18.3+hip6.0 HEAD:1a2b3c4+\n"
		"RCCL version : 2.22.3-develop:5d6e7f8\n"
		"n1:7:9 [0] NCCL INFO Using internal Network Socket\n"
		"n1:7:9 [0] NCCL INFO Failed to initialize NET plugin IB\n"
		"n1:7:9 [0] NCCL INFO TUNER/Plugin: Using tuner plugin my_tuner\n"
		"n1:7:9 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_LL_R "
		"nchannels 8 nthreads 512 nWorks 1\n"
		"n1:7:9 [0] NCCL INFO AllGather [Copy Engine]: 8192 Bytes -> cudaMemcpyAsync\n"
		"n1:7:9 [0] NCCL INFO Broadcast: 64 Bytes -> Algo 1 proto 0 time 9.5\n"
		"n1:7:9 [0] net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 12, opcode "
		"1, len 0, vendor err 129\n"
		"n1:7:9 [0] p2p.cc:9 (f) NCCL WARN NET/IB: Got completion from peer n2<5> with "
		"status=IBV_WC_WR_FLUSH_ERR(5) opcode=IBV_WC_SEND(0) vendor_err=249\n";
	struct findings f = findings_text(&probe_nccl_log, text);

	(void)state;
	check_status(&f, PROBE_OK);
	assert_string_equal(found_nth(&f, "nccl.version", 0)->text, "2.18.3+hip6.0 HEAD:1a2b3c4+");
	assert_string_equal(found_nth(&f, "nccl.version", 1)->text, "2.22.3-develop:5d6e7f8");
	check_fact(&f, "nccl.network", "Socket");
	check_fact(&f, "nccl.net_missing", "IB");
	check_fact(&f, "nccl.tuner", "my_tuner");
	check_fact(&f, "nccl.algo", "AllReduce 4096 SYMMETRIC AllReduce_LL_R");
	assert_string_equal(found_nth(&f, "nccl.algo", 1)->text,
			    "AllGather 8192 COPY_ENGINE cudaMemcpyAsync");
	assert_string_equal(found_nth(&f, "nccl.algo", 2)->text, "Broadcast 64 RING LL");
	assert_non_null(strstr(found_nth(&f, "nccl.warn_class", 0)->text, "RETRY_EXC"));
	assert_non_null(strstr(found_nth(&f, "nccl.warn_class", 1)->text, "WR_FLUSH"));
	findings_free(&f);
}

static void test_samples(void **state)
{
	struct findings f;

	(void)state;
	if (findings_sample(&probe_nccl_log, "nccl-log/nccl-2.10.3-a100-4node-hfi1-no-gdr.txt",
			    &f)) {
		check_fact(&f, "nccl.version", "2.10.3+cuda11.3");
		check_at(&f, "nccl_nranks", -1, NULL, 32);
		check_at(&f, "nccl_nnodes", -1, NULL, 4);
		check_at(&f, "nccl_transport_channels", -1, "transport=NET/IB", 40);
		check_at(&f, "nccl_transport_channels", -1, "transport=P2P/IPC", 112);
		check_at(&f, "nccl_gdr", -1, NULL, 0);
		check_at(&f, "nccl_coll_channels", -1, NULL, 2);
		check_fact(&f, "nccl.network", "IB");
		findings_free(&f);
	}
	if (findings_sample(&probe_nccl_log, "nccl-log/nccl-2.7.8-v100-1node-p2p-ipc.txt", &f)) {
		check_fact(&f, "nccl.version", "2.7.8+cuda10.2");
		check_at(&f, "nccl_nranks", -1, NULL, 4);
		check_at(&f, "nccl_transport_channels", -1, "transport=P2P/IPC", 100);
		check_at(&f, "nccl_coll_channels", -1, NULL, 12);
		check_at(&f, "nccl_p2p_channels", -1, NULL, 16);
		findings_free(&f);
	}
	if (findings_sample(&probe_nccl_log, "nccl-log/nccl-2.30-docs-examples.rst", &f)) {
		check_at(&f, "nccl_init_s", -1, NULL, 0.37);
		check_fact(&f, "nccl.version", "2.30.3+cuda13.0");
		check_fact(&f, "nccl.env.NCCL_SHM_DISABLE", "1");
		assert_non_null(found_nth(&f, "nccl.warn", 0));
		assert_non_null(found_nth(&f, "nccl.algo", 0));
		findings_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),    cmocka_unit_test(test_failures),
		cmocka_unit_test(test_suspects),    cmocka_unit_test(test_modern),
		cmocka_unit_test(test_blank_lines), cmocka_unit_test(test_lab),
		cmocka_unit_test(test_odd_lines),   cmocka_unit_test(test_samples),
		cmocka_unit_test(test_wordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
