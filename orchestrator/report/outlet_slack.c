/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A message for an incoming webhook of Slack, and of what understands the same (Mattermost,
 * Rocket.Chat): `text` for notifications, `blocks` for reading. Slack takes 50 blocks, 150
 * characters of a header and 3000 of a section.
 */
#include <stdlib.h>

#include "orchestrator/base/json.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/report/outlet.h"
#include "orchestrator/report/text.h"

enum { SECTIONS_MAX = 10 };

/* The three characters that mean something ("<!channel>" calls everybody), and the one that would
 * end a piece of code. */
static void put_text(struct buf *out, const char *clean)
{
	for (; clean && *clean; clean++)
		switch (*clean) {
		case '&':
			buf_str(out, "&amp;");
			break;
		case '<':
			buf_str(out, "&lt;");
			break;
		case '>':
			buf_str(out, "&gt;");
			break;
		case '`':
			buf_char(out, '\'');
			break;
		default:
			buf_char(out, *clean);
		}
}

static struct json *block(const char *type, const char *text_type, const char *text)
{
	struct json *b = json_object(), *t = json_object();

	json_set_text(b, "type", type);
	json_set_text(t, "type", text_type);
	json_set_text(t, "text", text);
	/* else names of channels and users in it become links */
	if (str_eq(text_type, "mrkdwn"))
		json_set_bool(t, "verbatim", true);
	json_set(b, "text", t);
	return b;
}

static void add_section(struct json *blocks, struct buf *text)
{
	json_add(blocks, block("section", "mrkdwn", text->data));
	buf_free(text);
}

static void put_regression(struct buf *b, const struct outlet_view *v,
			   const struct regression_view *r)
{
	struct buf moved = {0}, cause = {0}, command = {0};

	outlet_moved(&moved, r);
	outlet_cause(&cause, r);
	buf_printf(&command, "fettle regressions show %lld -w ", (long long)r->row.id);
	text_sh(&command, v->workspace);
	put_text(b, moved.len ? moved.data : "something");
	buf_printf(b, ", since %s", r->row.night);
	if (r->n_moved > 1)
		buf_printf(b, ", and %zu more series", r->n_moved - 1);
	if (cause.len) {
		buf_printf(b, "\n%s ", r->causes[0].proved ? "proved cause:" : "likeliest cause:");
		put_text(b, cause.data);
	}
	buf_str(b, "\n`");
	put_text(b, command.data);
	buf_char(b, '`');
	buf_free(&moved);
	buf_free(&cause);
	buf_free(&command);
}

/* In a list of notifications this is all that is seen: what, and the first of them. */
static void put_summary(struct buf *b, const struct outlet_view *v)
{
	struct buf moved = {0};

	buf_str(b, "fettle: ");
	outlet_headline(b, v);
	for (size_t i = 0; i < v->n_regressions; i++)
		if (outlet_is_told(v, &v->regressions[i].row)) {
			outlet_moved(&moved, &v->regressions[i]);
			buf_str(b, ": ");
			put_text(b, moved.data);
			break;
		}
	buf_free(&moved);
}

static void write_slack(const struct outlet_view *v, struct buf *out)
{
	struct json *doc = json_object(), *blocks = json_array();
	_cleanup_free_ char *text = NULL;
	struct buf b = {0};
	size_t shown = 0, all = outlet_count_told(v);

	put_summary(&b, v);
	json_set_text(doc, "text", b.data);
	buf_clear(&b);
	buf_str(&b, "fettle: ");
	outlet_headline(&b, v);
	json_add(blocks, block("header", "plain_text", b.data));
	buf_free(&b);
	for (size_t i = 0; i < v->n_regressions && shown < SECTIONS_MAX; i++)
		if (outlet_is_told(v, &v->regressions[i].row)) {
			put_regression(&b, v, &v->regressions[i]);
			add_section(blocks, &b);
			shown++;
		}
	if (shown < all) {
		buf_printf(&b, "and %zu more: `fettle regressions`", all - shown);
		add_section(blocks, &b);
	}
	json_set(doc, "blocks", blocks);
	text = json_print(doc, false);
	buf_str(out, text);
	buf_char(out, '\n');
	json_free(doc);
}

const struct outlet outlet_slack = {.name = "slack",
				    .summary = "JSON of a message for a Slack-compatible webhook",
				    .write = write_slack};
