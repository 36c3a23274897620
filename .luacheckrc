-- Recipes are read in a sandbox: see orchestrator/script/script.h for what it offers.
std = "lua54"
max_line_length = 110
unused_args = false
