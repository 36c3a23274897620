/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fields of a campaign file and of site.lua, as data. Everything that knows a field's name is
 * here and in knob.c: reading, errors, and the reference (recipes/README.md, kept equal by a test).
 */
#ifndef FETTLE_SCRIPT_SCHEMA_H
#define FETTLE_SCRIPT_SCHEMA_H

#include "orchestrator/script/reader.h"

extern const struct schema schema_campaign; /* into struct recipe; knobs are left to the caller */
extern const struct schema schema_workload; /* into struct workload */
extern const struct schema schema_knob;     /* into struct knob_draft (knob.h) */
extern const struct schema schema_proof, schema_requires; /* of a knob */
extern const struct schema schema_site, schema_user;      /* into struct site (site.h) */
extern const struct schema schema_rule, schema_finding, schema_expectation; /* in rules.c */
extern const struct schema schema_caps;                                     /* of a site */
extern const struct schema schema_resources; /* into struct resources */
extern const struct schema schema_samplers;  /* into struct samplers */
extern const struct schema schema_agent;     /* into struct agent_options */
extern const struct schema schema_budget;    /* into struct budget */
extern const struct schema schema_quality;   /* into struct quality_settings */
/* Hours as base/hours.h reads them, one text or a list, into a struct strv. */
int schema_read_window(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e);
/* true or false into an enum profile_wish; numbers by rule into a struct kvs. */
int schema_read_profile(const struct reader *r, const struct json *v, const char *path, void *out,
			struct err *e);
int schema_read_thresholds(const struct reader *r, const struct json *v, const char *path,
			   void *out, struct err *e);
struct quality_settings schema_quality_defaults(void);
extern const struct schema schema_model;     /* into struct model_shape */
extern const struct schema schema_container; /* into struct container */
extern const struct schema schema_scaling;   /* into struct scaling */
/* schema_goals.c: fields of struct recipe, and who reads them from the campaign's table. */
extern const struct schema schema_objective, schema_guard, schema_constraint, schema_converge;
int schema_read_objective(const struct reader *r, const struct json *v, const char *path, void *out,
			  struct err *e);
int schema_read_second(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e);
int schema_read_guards(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e);
int schema_read_constraints(const struct reader *r, const struct json *v, const char *path,
			    void *out, struct err *e);
extern const struct schema schema_ladder, schema_rung; /* into struct ladder, struct rung */
int schema_check_ladder(const struct reader *r, const struct recipe *x, struct err *e);
/* schema_nightly.c: into struct schedule, struct canary, and fingerprint of struct recipe. */
extern const struct schema schema_schedule, schema_canary, schema_fingerprint;
int schema_read_schedule(const struct reader *r, const struct json *v, const char *path, void *out,
			 struct err *e);
int schema_read_canary(const struct reader *r, const struct json *v, const char *path, void *out,
		       struct err *e);
int schema_read_fingerprint(const struct reader *r, const struct json *v, const char *path,
			    void *out, struct err *e);
int schema_check_nightly(const struct reader *r, const struct recipe *x, struct err *e);
/* Every schema, in the order of the reference; NULL at the end. */
extern const struct schema *const schema_all[];

/* A number of blocks or trials that the recipe does not say; check_plan() settles it. */
enum { BLOCKS_UNSAID = -2 };
/* budget.stuck_min: long enough for an admin to release a job or bring a node back. */
enum { DEFAULT_STUCK_S = 3600 };

/* A recipe with the defaults that do not depend on other fields. */
struct recipe *schema_defaults(void);

/* A table of texts by name into a struct kvs, with checked names. */
int schema_read_env(const struct reader *r, const struct json *v, const char *path, void *out,
		    struct err *e);

bool schema_env_name_valid(const char *s);

/* The statistic that stands for a metric when none is named: "value" for what a trial has once
 * (trial_wall_s), "last" for a loss, "max" for a peak and nan_iters, else "mean". */
const char *schema_default_stat(const char *metric);

#endif
