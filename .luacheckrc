-- What a recipe may name: the allow-list of orchestrator/script/luastate.c and the functions of the
-- prelude. A name that the sandbox does not have must not get into a recipe.
local prelude = {
	"knob", "workload", "over", "percent", "ceiling_of", "relieves", "cpus_per_rank", "told",
	"among_ranks", "between_nodes", "on_gpus",
}
-- The functions of lib/lint.lua, which rules and facts of recipes/lint have in place of the prelude.
local lint = {
	"wrong", "risky", "mention", "before", "from", "c_integer", "size_meant", "truth_meant", "parts", "set_of",
	"value_of", "nearest_name", "same_words", "option", "runs", "rules",
}
local sandbox = {
	"_G", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget",
	"rawlen", "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "xpcall",
	"string", "table", "math", "utf8", "path", "nearest", "distance",
}
std = { read_globals = sandbox }
max_line_length = 120
unused_args = false
files["recipes"].read_globals = prelude
files["recipes/lib/prelude.lua"].globals = prelude
files["recipes/lint"].read_globals = lint
files["recipes/lib/lint.lua"].globals = lint
