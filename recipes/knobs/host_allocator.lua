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
		documented = "user",
		applies = "processes that the command starts, outside of containers that do not have the file",
		safe = "a file that is there on every node",
		when = "threads wait for malloc, or memory of the host grows over hours",
		mistakes = {
			"a file that does not exist: ld.so warns and goes on without it",
			"set before modules are loaded it is preloaded into srun and bash as well",
			"a container does not see the host's file, nor always the variable",
		},
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
		documented = "user",
		applies = "glibc's malloc",
		safe = "1 to 8",
		when = "many threads, and memory of the host is short or grows",
		evidence = "tree_rss_mib",
		mistakes = { "with jemalloc or tcmalloc nobody reads it" },
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
	{
		name = "MALLOC_CONF",
		summary = "options of jemalloc",
		env = "MALLOC_CONF",
		type = "text",
		values = { "background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:10000" },
		class = "neutral",
		-- Read by jemalloc alone: the library must be there.
		proof = { level = "effective", maps = "libjemalloc" },
		documented = "user",
		applies = "jemalloc",
		safe = "background_thread, dirty_decay_ms, muzzy_decay_ms, metadata_thp:auto",
		when = "jemalloc is in use, and its threads give memory back at the wrong time",
		bottleneck = "host",
		expect = told("memory that stays with the process longer need not be asked for again"),
		evidence = "tree_rss_mib; a wrong key shows as '<jemalloc>: Invalid conf pair' in the output",
		risk = "more memory of the host",
		mistakes = { "a wrong key is reported once on stderr, and left out", "glibc does not read it" },
		notes = "put jemalloc in the workload's environment, or in a bundle with this",
	},
	{
		name = "transparent_hugepage",
		summary = "huge pages by the kernel, without asking",
		passed = { shell = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root, on every node" },
		one_of = { "always", "madvise", "never" },
		class = "neutral",
		proof = "delivered",
		documented = "system",
		applies = "the node, all its jobs",
		safe = "madvise",
		when = "single steps stand out and the kernel compacts memory then",
		bottleneck = "host",
		expect = told("fewer stalls, or fewer misses, as the program goes"),
		evidence = "the file itself; thp_fault_alloc in /proc/vmstat",
		risk = "medium: it is the node's, not the job's",
		notes = "part of the environment's fingerprint, not of a campaign: an administrator compares nights",
	},
	{
		name = "numa_balancing",
		summary = "pages move to the NUMA node that uses them",
		passed = { shell = "sysctl kernel.numa_balancing=0, as root, on every node" },
		one_of = { "0", "1" },
		class = "neutral",
		proof = "delivered",
		documented = "system",
		applies = "the node, all its jobs",
		safe = "0 where ranks are bound",
		when = "steps are uneven on nodes with several NUMA nodes",
		bottleneck = "host",
		expect = told("no faults for pages that are where they belong already"),
		risk = "medium: unbound programs lose",
		notes = "AMD's guide for MI300X says 0; part of the environment's fingerprint, not of a campaign",
	},
}
