/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slow nodes: found when they are there, and no other one accused; simulated campaigns. */
#include "experiments/nodes.h"

#include "tests/unit/check.h"

#include <math.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/base/rng.h"
#include "tests/unit/near.h"

enum { NODES = 16, UNITS_MAX = 256, RUNS = 1000, FIRST_SEED = 1 };

struct trial_of_nodes {
	size_t nodes, blocks; /* blocks a node */
	double sd, sd_node;   /* of a block; of healthy nodes, for good */
	double slow;          /* effect of node 3, log */
	size_t stages;        /* blocks are dealt to them in turn */
	size_t together;      /* nodes of a block */
};

struct tally {
	int found, accused, campaigns;
	int covered; /* the true effect of node 3 lies in its interval */
};

static void simulate(const struct trial_of_nodes *c, uint64_t seed, struct tally *t)
{
	static size_t who[UNITS_MAX][4];
	struct node_unit u[UNITS_MAX];
	struct node_effect v[NODES];
	struct node_fit fit;
	double effect[NODES];
	struct rng r = rng_at(seed, 17, 0, 0);
	size_t n = c->nodes * c->blocks / c->together;
	bool accused = false;

	for (size_t i = 0; i < c->nodes; i++)
		effect[i] = c->sd_node * rng_normal(&r) + (i == 3 ? c->slow : 0);
	for (size_t b = 0; b < n; b++) {
		double y = c->sd * rng_normal(&r) + 0.3 * (double)(b % c->stages);

		/* partners change from round to round */
		for (size_t k = 0; k < c->together; k++) {
			size_t round = b * c->together / c->nodes;

			who[b][k] = (b * c->together + k * (1 + round)) % c->nodes;
			y += effect[who[b][k]];
		}
		u[b] = (struct node_unit){b % c->stages, y, who[b], c->together};
	}
	assert_true(nodes_estimate(u, n, c->nodes, c->stages, 0.05, 0.01, v, &fit));
	for (size_t i = 0; i < c->nodes; i++)
		accused = accused || (v[i].slow && !(i == 3 && c->slow < 0));
	t->campaigns++;
	t->found += v[3].slow;
	t->accused += accused;
	t->covered += v[3].known && v[3].lo <= c->slow && c->slow <= v[3].hi;
}

static struct tally many(const char *what, struct trial_of_nodes c)
{
	struct tally t = {0};

	for (uint64_t s = FIRST_SEED; s < FIRST_SEED + RUNS; s++)
		simulate(&c, s, &t);
	print_message("# %s: found in %d of %d, a healthy one accused in %d, covered in %d\n", what,
		      t.found, t.campaigns, t.accused, t.covered);
	return t;
}

/* What the users were promised: two blocks a node, 1 % noise, one of 16 nodes 5 % slow. */
static void test_a_node_five_per_cent_slow_is_found(void **state)
{
	struct tally t = many("16 nodes, 2 blocks each", (struct trial_of_nodes){.nodes = NODES,
										 .blocks = 2,
										 .sd = 0.01,
										 .slow = log(0.95),
										 .stages = 1,
										 .together = 1});

	(void)state;
	assert_true(t.found >= RUNS * 9 / 10);
	assert_true(t.accused <= RUNS / 20);
	assert_true(t.covered >= RUNS * 9 / 10);
}

static void test_healthy_nodes_are_left_alone(void **state)
{
	struct tally t = many(
		"all healthy, noise of 3 %",
		(struct trial_of_nodes){
			.nodes = NODES, .blocks = 2, .sd = 0.03, .stages = 1, .together = 1});

	(void)state;
	assert_true(t.accused <= RUNS / 20);
	t = many("all healthy, nodes differ by 0.3 %", (struct trial_of_nodes){.nodes = NODES,
									       .blocks = 4,
									       .sd = 0.005,
									       .sd_node = 0.003,
									       .stages = 1,
									       .together = 1});
	assert_true(t.accused <= RUNS / 20);
}

static void test_stages_fall_out(void **state)
{
	struct tally t = many("blocks of 3 stages", (struct trial_of_nodes){.nodes = NODES,
									    .blocks = 3,
									    .sd = 0.01,
									    .slow = log(0.95),
									    .stages = 3,
									    .together = 1});

	(void)state;
	assert_true(t.found >= RUNS * 9 / 10);
	assert_true(t.accused <= RUNS / 20);
}

static void test_blocks_of_two_nodes(void **state)
{
	struct tally t = many("blocks of 2 nodes", (struct trial_of_nodes){.nodes = NODES,
									   .blocks = 6,
									   .sd = 0.01,
									   .slow = log(0.95),
									   .stages = 1,
									   .together = 2});

	(void)state;
	assert_true(t.found >= RUNS * 9 / 10);
	assert_true(t.accused <= RUNS / 20);
}

/* By hand: four nodes, two units each, noise of +-0.001. */
static void test_a_small_case(void **state)
{
	static const size_t who[4] = {0, 1, 2, 3};
	const double base[4] = {0, 0, 0, -0.1};
	struct node_unit u[8];
	struct node_effect v[4];
	struct node_fit fit;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		u[i] = (struct node_unit){0, 5 + base[i / 2] + (i % 2 ? 0.001 : -0.001),
					  &who[i / 2], 1};
	assert_true(nodes_estimate(u, 8, 4, 1, 0.05, 0.01, v, &fit));
	assert_near(fit.df, 4, 1e-9);
	assert_near(fit.sd, sqrt(8 * 1e-6 / 4), 1e-6);
	assert_true(v[3].slow);
	assert_near(v[3].est, -0.1, 1e-6);
	/* se = sd sqrt(1/2 + 1/6); t of 4 df at 1 - 0.05 / 4 = 3.4954 */
	assert_near(v[3].hi - v[3].est, 3.4954 * fit.sd * sqrt(1.0 / 2 + 1.0 / 6), 1e-5);
	assert_false(v[0].slow);
	assert_near(v[0].est, 0, 1e-6); /* against the other two that are not slow */
	assert_int_equal(v[0].units, 2);
}

static void test_what_cannot_be_known(void **state)
{
	static const size_t pair[2] = {0, 1}, two = 2, three = 3;
	struct node_effect v[5];
	struct node_fit fit;
	struct node_unit u[6] = {{0, 0.00, pair, 2}, {0, 0.01, pair, 2},   {0, 0.02, &two, 1},
				 {0, 0.01, &two, 1}, {0, 0.00, &three, 1}, {0, 0.02, &three, 1}};

	(void)state;
	assert_true(nodes_estimate(u, 6, 5, 1, 0.05, 0.01, v, &fit));
	assert_false(v[0].known); /* always beside node 1 */
	assert_false(v[1].known);
	assert_false(v[4].known); /* never ran */
	assert_true(isnan(v[4].est));
	for (size_t i = 0; i < 5; i++)
		assert_false(v[i].slow);
	/* one unit a node: nothing tells noise from nodes */
	assert_false(nodes_estimate(u + 2, 1, 5, 1, 0.05, 0.01, v, &fit));
	assert_false(v[2].known);
	assert_false(nodes_estimate(NULL, 0, 2, 1, 0.05, 0.01, v, &fit));
	assert_false(nodes_estimate(u, 6, NODES_MAX + 1, 1, 0.05, 0.01,
				    (struct node_effect[NODES_MAX + 1]){{0}}, &fit));
}

int main(void)
{
	const struct CMUnitTest t[] = {
		cmocka_unit_test(test_a_small_case),
		cmocka_unit_test(test_what_cannot_be_known),
		cmocka_unit_test(test_a_node_five_per_cent_slow_is_found),
		cmocka_unit_test(test_healthy_nodes_are_left_alone),
		cmocka_unit_test(test_stages_fall_out),
		cmocka_unit_test(test_blocks_of_two_nodes),
	};

	return cmocka_run_group_tests(t, NULL, NULL);
}
