/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "orchestrator/base/address.h"
#include "orchestrator/base/mem.h"

static void check(const char *url, const char *ip, int port, const char *path)
{
	_cleanup_free_ char *host = NULL, *where = NULL;
	struct sockaddr_in to;
	char text[INET_ADDRSTRLEN];

	assert_null(address_read(url, &to, &host, &where));
	assert_string_equal(inet_ntop(AF_INET, &to.sin_addr, text, sizeof text), ip);
	assert_int_equal(ntohs(to.sin_port), port);
	assert_string_equal(where, path);
}

static void addresses(void **state)
{
	(void)state;
	check("http://localhost:9400/metrics", "127.0.0.1", 9400, "/metrics");
	check("http://10.0.0.7", "10.0.0.7", 80, "/metrics");
	check("http://127.0.0.1:1/a?b=c", "127.0.0.1", 1, "/a?b=c");
}

static void faults(void **state)
{
	static const char *const bad[] = {"",
					  "localhost:9400",
					  "https://localhost",
					  "http://",
					  "http://gpu01:9400/metrics",
					  "http://[::1]:9400/metrics",
					  "http://localhost:0/",
					  "http://localhost:65536/",
					  "http://localhost:/",
					  "http://localhost/a b",
					  "http://localhost/a\r\nHost: x"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_non_null(address_fault(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(addresses), cmocka_unit_test(faults)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
