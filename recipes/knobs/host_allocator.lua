-- SPDX-License-Identifier: MIT
-- malloc of the Python process and its DataLoader workers.

local function preload(name, what, file)
	return {
		name = name,
		summary = what .. " in place of glibc's malloc",
		env = "LD_PRELOAD",
		type = "text",
		values = { "/usr/lib/x86_64-linux-gnu/" .. file },
		class = "neutral",
		-- A file that is not there only makes ld.so warn: what is mapped into the rank decides.
		proof = { level = "effective", maps = "lib" .. name },
		bottleneck = "host",
		expect = function(_, s)
			if over(s.tree_rss_mib, 0) then
				return {
					why = string.format("the process tree holds %.0f MiB; many small allocations from several "
						.. "threads are what %s is good at", s.tree_rss_mib, name),
				}
			end
			return { why = "helps where many small allocations come from several threads" }
		end,
		lint = function(value)
			if value:sub(1, 1) ~= "/" then
				return "LD_PRELOAD needs an absolute path that exists on every node"
			end
		end,
		risk = "everything that the command starts is preloaded as well, tools in wrapper scripts included",
		notes = "ld.so warns about a file that does not exist and goes on without it; containers do not see the host's "
			.. "file; MALLOC_ARENA_MAX has no effect with it",
	}
end

return {
	preload("jemalloc", "jemalloc", "libjemalloc.so.2"),
	preload("tcmalloc", "tcmalloc", "libtcmalloc_minimal.so.4"),
	{
		name = "MALLOC_ARENA_MAX",
		summary = "arenas of glibc's malloc",
		env = "MALLOC_ARENA_MAX",
		type = "int", min = 1, max = 1024,
		values = { 1, 2, 4 },
		class = "neutral",
		proof = "delivered",
		bottleneck = "memory",
		expect = function(_, s)
			if over(s.tree_threads, 0) then
				return {
					why = string.format("the tree has %.0f threads; glibc makes up to 8 arenas a core for them",
						s.tree_threads),
				}
			end
			return { why = "less memory of the host; seldom faster" }
		end,
		risk = "fewer arenas mean threads that wait for each other's locks",
		notes = "glibc only: nothing happens with jemalloc or tcmalloc",
	},
}
