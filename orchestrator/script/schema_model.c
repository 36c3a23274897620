/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of `workload.model`: what a model's floating-point operations are computed from; and
 * of `workload.scaling`. */
#include "orchestrator/script/schema.h"

#define IN(member) offsetof(struct model_shape, member)
#define END                  \
	{                    \
		.name = NULL \
	}
#define COUNT(member, text, sample)                                                          \
	{                                                                                    \
		.name = #member, .type = FIELD_NUMBER, .min = 0, .max = 1e15, .above = true, \
		.offset = IN(member), .dflt = "none", .doc = text, .example = sample         \
	}

/* In the order of the enums of experiments/model.h. */
static const char *const formula_words[] = {"6n", "palm", "causal", "lora", NULL};
static const char *const dtype_words[] = {"fp32", "tf32", "fp16", "bf16", "fp8", NULL};
static const char *const recompute_words[] = {"none", "selective", "full", NULL};

static const struct field model_fields[] = {
	{.name = "params",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e15,
	 .above = true,
	 .required = true,
	 .offset = IN(params),
	 .doc = "parameters; of a mixture of experts those that a token uses",
	 .example = "7e9"},
	COUNT(layers, "layers; `palm` and `causal` need it", "32"),
	COUNT(hidden, "hidden size, heads times their dimension; `palm` and `causal` need it",
	      "4096"),
	COUNT(seq_length,
	      "tokens of a sample; `palm` and `causal` need it, and so do tokens a "
	      "second where the log tells only samples",
	      "2048"),
	{.name = "formula",
	 .type = FIELD_WORD,
	 .words = formula_words,
	 .offset = IN(formula),
	 .dflt = "`\"6n\"`",
	 .doc = "operations a token: 6 N; the same with attention (`palm`, as nanoGPT counts) or "
		"half of it (`causal`, as torchtitan and Megatron-LM count); 4 N with frozen "
		"weights (`lora`)"},
	{.name = "recompute",
	 .type = FIELD_WORD,
	 .words = recompute_words,
	 .offset = IN(recompute),
	 .dflt = "`\"none\"`",
	 .doc = "activations that are computed again, for `hfu_pct`"},
	{.name = "dtype",
	 .type = FIELD_WORD,
	 .words = dtype_words,
	 .offset = IN(dtype),
	 .dflt = "`\"bf16\"`",
	 .doc = "type whose peak counts"},
	{.name = "gpu",
	 .type = FIELD_TEXT,
	 .offset = IN(gpu),
	 .dflt = "as nvidia-smi names it",
	 .doc = "device whose peak counts (`experiments/gpu_peaks.def`)",
	 .example = "\"H100\""},
	{.name = "peak_tflops",
	 .type = FIELD_NUMBER,
	 .min = 0,
	 .max = 1e6,
	 .above = true,
	 .offset = IN(peak_tflops),
	 .unit = "TFLOP/s",
	 .dflt = "of the device",
	 .doc = "dense peak of one device; vendors often quote twice as much, with sparsity"},
	END,
};
const struct schema schema_model = {"model", model_fields};

#define RATE(member, what)                                                                   \
	{                                                                                    \
		.name = #member, .type = FIELD_NUMBER, .min = 0, .max = 1e15, .above = true, \
		.offset = offsetof(struct scaling, member), .unit = what, .dflt = "none",    \
		.doc = what " a second of all of them", .example = "320"                     \
	}

static const struct field scaling_fields[] = {
	{.name = "gpus",
	 .type = FIELD_NUMBER,
	 .min = 1,
	 .max = 1e6,
	 .required = true,
	 .offset = offsetof(struct scaling, gpus),
	 .doc = "devices of the smaller job",
	 .example = "8"},
	RATE(tokens_per_s, "tokens"),
	RATE(samples_per_s, "samples"),
	END,
};
const struct schema schema_scaling = {"scaling", scaling_fields};
