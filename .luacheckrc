-- Recipes are read in a sandbox: see orchestrator/script/script.h for what it offers.
std = "lua54"
max_line_length = 120
unused_args = false
read_globals = { "knob", "workload", "path", "over", "percent", "ceiling_of", "relieves", "cpus_per_rank" }
files["recipes/lib/prelude.lua"] = {
	globals = { "knob", "workload", "over", "percent", "ceiling_of", "relieves", "cpus_per_rank" },
}
-- What users get wrong, on purpose.
files["tests/fixtures/recipes/bad"] = { ignore = { ".*" } }
