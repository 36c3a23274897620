/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "orchestrator/base/fs.h"
#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/drive.h"
#include "orchestrator/cmd/init.h"

extern const struct cmd cmd_init;

enum {
	OPT_LAUNCH = 512,
	OPT_SAVE_ARG,
	OPT_SAVES_NOTHING,
	OPT_DROP,
	OPT_SKIP,
	OPT_ARRAY_INDEX,
	OPT_FORCE,
	EXIT_REFUSED = 2
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct init_options *o = state->input;

	switch (key) {
	case 'o':
		o->out = arg;
		return 0;
	case 's':
		o->scheduler = arg;
		if (!sched_find(arg))
			argp_error(state, "no scheduler is called %s: " SCHED_NAMES, arg);
		return 0;
	case 'p':
		o->pattern = arg;
		return 0;
	case OPT_LAUNCH:
		o->launch = arg;
		return 0;
	case OPT_SAVE_ARG:
		strv_add(&o->save_args, arg);
		return 0;
	case OPT_SAVES_NOTHING:
		o->saves_nothing = true;
		return 0;
	case OPT_DROP:
		strv_add(&o->drop, arg + strspn(arg, "-"));
		return 0;
	case OPT_SKIP:
		strv_add(&o->skip, arg);
		return 0;
	case OPT_ARRAY_INDEX:
		o->array_index = arg;
		return 0;
	case OPT_FORCE:
		o->force = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->script)
			strv_add(&o->args, arg);
		else
			o->script = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->script)
			argp_error(state, "which script?");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option opts[] = {
	{"output", 'o', "FILE", 0, "the campaign's file (default: the script's name, .lua)", 0},
	{"scheduler", 's', "SCHEDULER", 0, "where the campaign runs (default: slurm)", 0},
	{"pattern", 'p', "PCRE2", 0, "what matches once a step in the output", 0},
	{"launch", OPT_LAUNCH, "LINE", 0, "of several launches the one on this line", 0},
	{"save-arg", OPT_SAVE_ARG, "NAME", 0,
	 "an argument of the program that says where it saves (with a = at its end: in one word "
	 "with the value)",
	 0},
	{"saves-nothing", OPT_SAVES_NOTHING, 0, 0, "the program saves nothing", 0},
	{"drop", OPT_DROP, "OPTION", 0, "leave out an option of sbatch that fettle cannot ask for",
	 0},
	{"skip", OPT_SKIP, "LINE", 0, "leave out a line of the script", 0},
	{"array-index", OPT_ARRAY_INDEX, "N", 0, "of a job array this task (default: the first)",
	 0},
	{"force", OPT_FORCE, 0, 0, "write over files that are there", 0},
	{0}};

/* "train.sbatch" gives "train"; heap. */
static char *stem(const char *path)
{
	const char *base = fs_basename(path), *dot = strrchr(base, '.');

	return dot && dot > base ? xstrndup(base, (size_t)(dot - base)) : xstrdup(base);
}

/* Letters, digits and ._- of the job's name, else of the script's. */
static char *campaign_name(const struct init *i, const char *fallback)
{
	const struct sbatch_option *o = sbatch_option(i->s, "job-name", 0);
	char *name = xstrdup(o && o->value && *o->value ? o->value : fallback);

	for (char *p = name; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
		      (*p >= '0' && *p <= '9') || strchr("._-", *p)))
			*p = '-';
	return name;
}

static int free_to_write(const struct init_options *o, const char *path, struct err *e)
{
	if (o->force || !fs_exists(path))
		return 0;
	return err_set(e, ERR_USAGE,
		       "%s is there already: --force writes over it, -o names another", path);
}

/* The copy lies beside the campaign; whoever may run the original may run it. */
static int write_files(const struct init *i, const char *campaign, const char *copy,
		       const struct buf *recipe, const struct buf *script, struct err *e)
{
	struct stat st = {.st_mode = 0700};
	int rc = free_to_write(i->o, campaign, e);

	if (rc == 0)
		rc = free_to_write(i->o, copy, e);
	if (rc < 0)
		return rc;
	(void)stat(i->o->script, &st);
	if ((rc = fs_write_atomic(copy, script->data, script->len, (st.st_mode & 0777) | 0100, e)))
		return rc;
	return fs_write_atomic(campaign, recipe->data, recipe->len, 0644, e);
}

static int refused(const struct init *i)
{
	for (size_t k = 0; k < i->refused.n; k++)
		fprintf(stderr, "fettle init: error: %s\n", i->refused.v[k]);
	return EXIT_REFUSED;
}

static void tell(const struct init *i, const char *campaign, const char *copy)
{
	for (size_t k = 0; k < i->said.n; k++)
		printf("%s\n", i->said.v[k]);
	printf("%s: campaign %s of %s, %zu knob%s; its script is %s\n", campaign, i->name,
	       i->framework->title, i->knobs.n, i->knobs.n == 1 ? "" : "s", copy);
	printf("next: fettle check %s; fettle plan %s\n", campaign, campaign);
}

static int by_line(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	int64_t m = 0, n = 0;
	size_t at = 0;

	/* Both begin with the file's name. */
	while (x[at] && x[at] == y[at] && !(x[at] == ':' && strchr("123456789", x[at + 1])))
		at++;
	if (x[at] == ':' && y[at] == ':') {
		_cleanup_free_ char *p = xstrndup(x + at + 1, strcspn(x + at + 1, ":"));
		_cleanup_free_ char *q = xstrndup(y + at + 1, strcspn(y + at + 1, ":"));

		if (str_to_i64(p, &m) && str_to_i64(q, &n) && m != n)
			return m < n ? -1 : 1;
	}
	return strcmp(x, y);
}

/* sbatch's --chdir, else the directory that init is called in, as sbatch takes it. A campaign in
 * that directory need not say so; elsewhere its script needs a whole path. */
static int settle_places(struct init *i, const char *campaign, const char *copy, struct err *e)
{
	const struct sbatch_option *o = sbatch_option(i->s, "chdir", 0);
	size_t n = strlen(campaign) - strlen(fs_basename(campaign));
	_cleanup_free_ char *dir = n ? xstrndup(campaign, n) : xstrdup(".");
	_cleanup_free_ char *there = NULL;

	if (n == 0 && !(o && o->value)) {
		i->copy = xasprintf("./%s", copy);
		return 0;
	}
	there = fs_absolute(dir, e);
	i->workdir = there ? fs_absolute(o && o->value ? o->value : ".", e) : NULL;
	if (!i->workdir)
		return -(int)e->code;
	i->copy = fs_join(there, fs_basename(copy));
	return 0;
}

/* Everything that stands in the way is found before anything is said. */
static int make(struct init *i, const char *campaign, const char *copy, struct err *e)
{
	struct buf recipe = {0}, script = {0};
	int rc = 0;

	init_resources(i);
	if (i->s->components == 1)
		init_find_launch(i);
	if (i->launch) {
		init_recognise(i);
		init_script(i, &script);
	}
	if (i->said.n)
		qsort(i->said.v, i->said.n, sizeof *i->said.v, by_line);
	if (i->refused.n == 0)
		rc = settle_places(i, campaign, copy, e);
	if (i->refused.n == 0 && rc == 0) {
		init_recipe(i, &recipe);
		rc = write_files(i, campaign, copy, &recipe, &script, e);
		if (rc == 0)
			tell(i, campaign, copy);
	}
	buf_free(&recipe);
	buf_free(&script);
	return rc;
}

static int make_named(struct init *i, struct err *e)
{
	_cleanup_free_ char *name = stem(i->o->script);
	_cleanup_free_ char *campaign = i->o->out ? xstrdup(i->o->out) : xasprintf("%s.lua", name);
	_cleanup_free_ char *base = stem(campaign);
	size_t dir = strlen(campaign) - strlen(fs_basename(campaign));
	_cleanup_free_ char *copy = xasprintf("%.*s%s.fettle.sh", (int)dir, campaign, base);

	i->name = campaign_name(i, name);
	return make(i, campaign, copy, e);
}

static int init_from(const struct init_options *o, struct err *e)
{
	struct drive_path path = {0};
	struct sbatch s = {0};
	struct knob *catalogue = NULL;
	struct init i = {.o = o, .s = &s};
	int rc = sbatch_read(o->script, &s, e), status = 0;

	if (rc < 0)
		return rc;
	drive_path_init(&path);
	rc = script_catalogue(&path.path, &catalogue, &i.n_catalogue, e);
	i.catalogue = catalogue;
	if (rc == 0)
		rc = make_named(&i, e);
	if (rc == 0 && i.refused.n)
		status = refused(&i);
	for (size_t k = 0; k < i.n_catalogue; k++)
		knob_done(&catalogue[k]);
	free(catalogue);
	init_done(&i);
	sbatch_free(&s);
	drive_path_done(&path);
	return rc < 0 ? rc : status;
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = opts,
		.parser = parse,
		.args_doc = "SCRIPT [ARGUMENT...]",
		.doc = "Write a campaign from an sbatch script of yours: NAME.lua, and NAME.fettle.sh, "
		       "a copy of the script that takes the campaign's settings. The script is read, "
		       "not run. ARGUMENTs are those that it is submitted with.\v"
		       "Exit status 0, or 2 with a line for all that stands in the way: what fettle "
		       "cannot ask a cluster for, what it cannot keep out of your results."};
	struct init_options o = {.scheduler = "slurm"};
	struct err e = {0};
	int rc;

	cmd_parse(&argp, argc, argv, &o);
	rc = init_from(&o, &e);
	strv_free(&o.save_args);
	strv_free(&o.drop);
	strv_free(&o.skip);
	strv_free(&o.args);
	return rc < 0 ? cmd_fail(&cmd_init, &e) : rc;
}

const struct cmd cmd_init = {
	.name = "init", .summary = "write a campaign from an sbatch script of yours", .run = run};
