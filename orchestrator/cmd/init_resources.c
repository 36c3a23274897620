/* SPDX-License-Identifier: GPL-2.0-or-later */
/* #SBATCH options become resources. What fettle does by itself is left out and said; what it cannot
 * ask for is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "orchestrator/base/mem.h"
#include "orchestrator/cmd/init.h"

enum action {
	COUNT,    /* a number into `field` */
	TEXT,     /* a text into `field` */
	MEMORY,   /* a size into `field`, in GiB */
	GPUS,     /* a number, or type:number */
	GRES,     /* a list, of which gpu:N is taken out */
	NODES,    /* a number, or least-most */
	TASKS,    /* of the whole job */
	VARIABLE, /* only for steps: srun finds it in its environment */
	LEFT_OUT, /* `field` says why, NULL: nobody needs to know */
};

static const struct rule {
	const char *option;
	enum action action;
	const char *field;    /* of the recipe */
	const char *variable; /* that sbatch sets for srun */
} rules[] = {
	{"nodes", NODES, "nodes", NULL},
	{"ntasks", TASKS, NULL, NULL},
	{"ntasks-per-node", COUNT, "tasks_per_node", "SLURM_NTASKS_PER_NODE"},
	{"cpus-per-task", COUNT, "cpus_per_task", "SLURM_CPUS_PER_TASK"},
	{"gpus-per-node", GPUS, "gpus_per_node", "SLURM_GPUS_PER_NODE"},
	{"gres", GRES, "gres", NULL},
	{"gpus", TEXT, "gpus", "SLURM_GPUS"},
	{"gpus-per-task", TEXT, "gpus_per_task", "SLURM_GPUS_PER_TASK"},
	{"cpus-per-gpu", COUNT, "cpus_per_gpu", "SLURM_CPUS_PER_GPU"},
	{"mem", MEMORY, "mem_gib_per_node", NULL},
	{"mem-per-cpu", MEMORY, "mem_gib_per_cpu", NULL},
	{"mem-per-gpu", MEMORY, "mem_gib_per_gpu", NULL},
	{"partition", TEXT, "partition", NULL},
	{"account", TEXT, "account", NULL},
	{"qos", TEXT, "qos", NULL},
	{"reservation", TEXT, "reservation", NULL},
	{"constraint", TEXT, "constraint", NULL},
	{"nodelist", TEXT, "nodelist", NULL},
	{"exclude", TEXT, "exclude", NULL},
	{"licenses", TEXT, "licenses", NULL},
	{"switches", TEXT, "switches", NULL},
	{"begin", TEXT, "begin", NULL},
	{"deadline", TEXT, "deadline", NULL},
	{"dependency", TEXT, "dependency", NULL},
	{"nice", COUNT, "nice", NULL},
	{"comment", TEXT, "comment", NULL},
	{"mail-type", TEXT, "mail_type", NULL},
	{"mail-user", TEXT, "mail_user", NULL},
	{"job-name", LEFT_OUT, NULL, "SLURM_JOB_NAME"},
	{"hint", VARIABLE, NULL, "SLURM_HINT"},
	{"distribution", VARIABLE, NULL, "SLURM_DISTRIBUTION"},
	{"mem-bind", VARIABLE, NULL, "SLURM_MEM_BIND"},
	{"gpu-bind", VARIABLE, NULL, "SLURM_GPU_BIND"},
	{"gpu-freq", VARIABLE, NULL, "SLURM_GPU_FREQ"},
	{"cpu-freq", VARIABLE, NULL, "SLURM_CPU_FREQ_REQ"},
	{"threads-per-core", VARIABLE, NULL, "SLURM_THREADS_PER_CORE"},
	{"ntasks-per-core", VARIABLE, NULL, "SLURM_NTASKS_PER_CORE"},
	{"ntasks-per-socket", VARIABLE, NULL, "SLURM_NTASKS_PER_SOCKET"},
	{"exclusive", LEFT_OUT, NULL, NULL},
	{"requeue", LEFT_OUT, "jobs of fettle are never requeued", NULL},
	{"no-requeue", LEFT_OUT, NULL, NULL},
	{"oversubscribe", LEFT_OUT, "jobs of fettle have their nodes for themselves", NULL},
	{"time", LEFT_OUT, NULL, NULL}, /* of a job: from its trials */
	{"time-min", LEFT_OUT, NULL, NULL},
	{"output", LEFT_OUT, NULL, NULL},
	{"error", LEFT_OUT, NULL, NULL},
	{"open-mode", LEFT_OUT, NULL, NULL},
	{"signal", LEFT_OUT, "fettle ends trials itself", NULL},
	{"chdir", LEFT_OUT, NULL, NULL},
	{"array", LEFT_OUT, NULL, NULL},
	{"export", LEFT_OUT, NULL, NULL},
	{"get-user-env", LEFT_OUT, "the environment is that of `fettle run`", NULL},
	{"hold", LEFT_OUT, "it would never start", NULL},
	{"parsable", LEFT_OUT, NULL, NULL},
	{"quiet", LEFT_OUT, NULL, NULL},
	{"verbose", LEFT_OUT, NULL, NULL},
	{"wait", LEFT_OUT, NULL, NULL},
	{"kill-on-invalid-dep", LEFT_OUT, NULL, NULL},
	{"no-kill", LEFT_OUT, "a trial that lost a node is void", NULL},
	{"profile", LEFT_OUT, NULL, NULL},
	{"acctg-freq", LEFT_OUT, NULL, NULL},
	{"ignore-pbs", LEFT_OUT, NULL, NULL},
};

static const struct rule *find_rule(const char *option)
{
	for (size_t k = 0; k < ARRAY_LEN(rules); k++)
		if (str_eq(rules[k].option, option))
			return &rules[k];
	return NULL;
}

/* Lua reads every byte but these three as itself. */
static char *lua_text(const char *s)
{
	struct buf b = {0};

	buf_char(&b, '"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			buf_char(&b, '\\');
		if (*s == '\n')
			buf_str(&b, "\\n");
		else
			buf_char(&b, *s);
	}
	buf_char(&b, '"');
	return buf_take(&b);
}

static void set_text(struct init *i, const char *field, const char *value)
{
	_cleanup_free_ char *lua = lua_text(value);

	kvs_set(&i->resources, field, lua);
}

static void set_count(struct init *i, const char *field, int64_t value)
{
	_cleanup_free_ char *lua = xasprintf("%lld", (long long)value);

	kvs_set(&i->resources, field, lua);
}

static void wants(struct init *i, const struct sbatch_option *o, const char *what)
{
	init_refuse(i, o->line, "%s: expected %s", o->text, what);
}

static bool count_of(struct init *i, const struct sbatch_option *o, int64_t *v)
{
	if (o->value && str_to_i64(o->value, v) && *v >= 1 && *v <= 1000000)
		return true;
	wants(i, o, "a whole number from 1");
	return false;
}

static void take_nodes(struct init *i, const struct sbatch_option *o)
{
	size_t n = o->value ? strcspn(o->value, "-") : 0;
	_cleanup_free_ char *least = xstrndup(o->value ? o->value : "", n);
	int64_t v;

	if (!str_to_i64(least, &v) || v < 1 || v > 1000000) {
		wants(i, o, "a number of nodes");
		return;
	}
	if (o->value[n])
		init_say(i, o->line, "%s: every trial runs on %lld nodes, the fewest", o->text,
			 (long long)v);
	i->nodes = (int)v;
	set_count(i, "nodes", v);
}

static void take_memory(struct init *i, const struct sbatch_option *o, const char *field)
{
	static const char units[] = "KMGT";
	size_t n = o->value ? strspn(o->value, "0123456789.") : 0;
	_cleanup_free_ char *number = xstrndup(o->value ? o->value : "", n);
	const char *unit = o->value ? o->value + n : "";
	struct buf b = {0};
	const char *at;
	double v;

	at = *unit ? strchr(units, *unit & ~0x20) : units + 1;
	if (!str_to_double(number, &v) || !at) {
		wants(i, o, "a size such as 64G");
		return;
	}
	if (v == 0) {
		init_say(i, o->line,
			 "%s: all memory of a node is the default of most clusters for a job that "
			 "has the node for itself; where it is not, say %s",
			 o->text, field);
		return;
	}
	for (const char *k = at; k < units + 2; k++)
		v /= 1024;
	if (at == units + 3)
		v *= 1024;
	buf_number(&b, v);
	kvs_set(&i->resources, field, b.data);
	buf_free(&b);
}

static void add_gres(struct init *i, struct buf *list, const char *item)
{
	const char *number = strrchr(item, ':');
	int64_t n = 1;

	if (str_eq(item, "gpu") ||
	    (str_starts(item, "gpu:") && number == item + 3 && str_to_i64(number + 1, &n))) {
		i->gpus = true;
		set_count(i, "gpus_per_node", n);
		return;
	}
	i->gpus = i->gpus || str_starts(item, "gpu:");
	buf_printf(list, "%s%s", list->len ? "," : "", item);
}

static void take_gres(struct init *i, const struct sbatch_option *o)
{
	struct buf rest = {0};

	for (const char *p = o->value; p && *p;) {
		size_t n = strcspn(p, ",");
		_cleanup_free_ char *item = xstrndup(p, n);

		add_gres(i, &rest, item);
		p += n + (p[n] == ',');
	}
	if (rest.len)
		set_text(i, "gres", rest.data);
	buf_free(&rest);
}

static void take_gpus(struct init *i, const struct sbatch_option *o)
{
	int64_t v;

	i->gpus = true;
	if (o->value && str_to_i64(o->value, &v)) {
		set_count(i, "gpus_per_node", v);
	} else if (o->value && strchr(o->value, ':')) {
		_cleanup_free_ char *gres = xasprintf("gpu:%s", o->value);

		set_text(i, "gres", gres);
	} else {
		wants(i, o, "a number of GPUs, or type:number");
	}
}

static void take(struct init *i, const struct sbatch_option *o, const struct rule *r)
{
	int64_t v;

	switch (r->action) {
	case COUNT:
		if (str_eq(o->name, "nice") && !o->value)
			set_count(i, r->field, 100); /* as sbatch takes it */
		else if (count_of(i, o, &v))
			set_count(i, r->field, v);
		break;
	case TEXT:
		set_text(i, r->field, o->value ? o->value : "");
		i->gpus = i->gpus || str_starts(r->option, "gpus");
		break;
	case MEMORY:
		take_memory(i, o, r->field);
		break;
	case GPUS:
		take_gpus(i, o);
		break;
	case GRES:
		take_gres(i, o);
		break;
	case NODES:
		take_nodes(i, o);
		break;
	case TASKS:
	case VARIABLE:
		break;
	case LEFT_OUT:
		if (r->field)
			init_say(i, o->line, "%s is left out: %s", o->text, r->field);
		break;
	}
	if (r->variable && o->value)
		strv_addf(&i->variables, "%s=%s", r->variable, o->value);
}

static bool is_dropped(const struct init *i, const char *name)
{
	for (size_t k = 0; k < i->o->drop.n; k++)
		if (str_eq(i->o->drop.v[k], name))
			return true;
	return false;
}

static void take_option(struct init *i, const struct sbatch_option *o)
{
	const struct rule *r = find_rule(o->name);

	if (is_dropped(i, o->name))
		init_say(i, o->line, "%s is left out, as --drop says", o->text);
	else if (!r)
		init_refuse(i, o->line,
			    "%s: fettle cannot ask for this; --drop %s leaves it out if trials "
			    "can do without",
			    o->text, o->name);
	else
		take(i, o, r);
}

/* Ranks on a node, when only those of the whole job are said. */
static void settle_tasks(struct init *i)
{
	const struct sbatch_option *all = sbatch_option(i->s, "ntasks", 0);
	const char *each = kvs_get(&i->resources, "tasks_per_node"),
		   *cpus = kvs_get(&i->resources, "cpus_per_task");
	int nodes = i->nodes ? i->nodes : 1;
	int64_t v = 0;

	if (each && str_to_i64(each, &v)) {
		i->tasks = (int)v;
	} else if (all && !is_dropped(i, "ntasks") && count_of(i, all, &v)) {
		if (v % nodes) {
			init_refuse(i, all->line,
				    "%s on %d nodes: fettle puts equally many ranks on each node; "
				    "say --ntasks-per-node",
				    all->text, nodes);
			return;
		}
		if (!i->nodes)
			init_say(i, all->line, "%s without --nodes: on one node", all->text);
		i->tasks = (int)(v / nodes);
		set_count(i, "tasks_per_node", i->tasks);
	}
	if (i->tasks)
		strv_addf(&i->variables, "SLURM_NTASKS=%d", nodes * i->tasks);
	if (cpus && str_to_i64(cpus, &v))
		i->cpus = (int)v;
}

/* One task of an array is what a user would measure: the first, or the one that is asked for. */
static void settle_array(struct init *i)
{
	const struct sbatch_option *o = sbatch_option(i->s, "array", 0);
	const char *index = i->o->array_index;
	_cleanup_free_ char *first = NULL;

	if (!o || !o->value)
		return;
	first = xstrndup(o->value, strspn(o->value, "0123456789"));
	if (!index)
		index = first;
	if (!*index) {
		wants(i, o, "indexes such as 0-9");
		return;
	}
	init_say(i, o->line,
		 "%s: trials run the task with index %s of the array; --array-index takes another",
		 o->text, index);
	strv_addf(&i->variables, "SLURM_ARRAY_TASK_ID=%s", index);
	strv_addf(&i->variables, "SLURM_ARRAY_TASK_COUNT=1");
	strv_addf(&i->variables, "SLURM_ARRAY_TASK_MIN=%s", index);
	strv_addf(&i->variables, "SLURM_ARRAY_TASK_MAX=%s", index);
}

static void refuse_components(struct init *i)
{
	int line = 1;

	for (size_t k = i->s->n_options; k-- > 0;)
		if (i->s->options[k].component == 1)
			line = i->s->options[k].line;
	init_refuse(i, line,
		    "a heterogeneous job of %d components: fettle asks for nodes of one kind; make "
		    "a script of the component that is to become faster",
		    i->s->components);
}

/* What the reader noticed; sbatch would refuse what it does not know. */
static void take_notes(struct init *i)
{
	for (size_t k = 0; k < i->s->n_notes; k++) {
		const struct sbatch_note *n = &i->s->notes[k];

		switch (n->kind) {
		case SBATCH_UNKNOWN:
			init_refuse(i, n->line, "%s", n->text);
			break;
		case SBATCH_IGNORED:
		case SBATCH_UNEXPANDED:
		case SBATCH_OPAQUE:
			init_say(i, n->line, "%s", n->text);
			break;
		case SBATCH_OFF:
			break;
		}
	}
}

void init_resources(struct init *i)
{
	take_notes(i);
	if (i->s->components > 1) {
		refuse_components(i);
		return;
	}
	for (size_t k = 0; k < i->s->n_options; k++) {
		const struct sbatch_option *o = &i->s->options[k];

		if (o->known && sbatch_option(i->s, o->name, 0) == o)
			take_option(i, o);
	}
	settle_tasks(i);
	settle_array(i);
}
