# SPDX-License-Identifier: GPL-2.0-or-later
# recipe.jq : a surface as the recipe of a campaign; what its settings do, its truth declares.
"-- SPDX-License-Identifier: GPL-2.0-or-later
return {
	name = \"surface\",
	question = \"\(.title)\",
	workload = { command = { \"true\" }, window = { warmup_steps = 1, steps = 3 }, metrics = { file = true } },
	objective = \"throughput_samples_per_s\",
	guards = { loss = 0.01 },
	knobs = {\([.knobs | to_entries[] | "
		{ name = \"the_\(.key)\", arg = \"--\(.key)=\", class = \"neutral\", values = { \([.value[] | "\"\(.)\""] | join(", ")) } },"] | add)
	},
	scheduler = \"fake\",
	mode = \"standard\",
	warmup_trials = 0,
	seed = 1,
}"
