-- SPDX-License-Identifier: MIT
-- What the rules of recipes/lint/ are written with: runs before each file there in place of prelude.lua. A file of
-- rules returns rules { ... }; each rule has a name and one or more of these:
--   setting = function(s, x)   asked of every setting: s.name, s.value (nil: taken out), s.dynamic, s.layer
--   env = function(env, x)     asked of the whole environment: name -> setting
--   command = function(c, x)   asked of every command: c.words, c.launcher
--   all = function(x)          asked once
-- and gives nil, a finding, or a list of findings. A campaign's knobs are arms: `setting`, `env` and `command` are
-- asked again for what each value changes. What x holds is in recipes/README.md.

-- --- findings ------------------------------------------------------------------------------

local function finding(severity, what, write, at)
	return { severity = severity, what = what, write = write, at = at }
end
-- It does not do what it says, or ends the job. `at`: another setting or command that it stands at.
function wrong(what, write, at) return finding("error", what, write, at) end
-- It does something, and hardly what was meant.
function risky(what, write, at) return finding("warning", what, write, at) end
-- Worth knowing.
function mention(what, write, at) return finding("note", what, write, at) end

-- --- versions ------------------------------------------------------------------------------

-- "2.18.3-1" -> a number in the order of releases; nil for nil.
local function version_key(v)
	local a, b, c = tostring(v):match("(%d+)%.?(%d*)%.?(%d*)")
	return a and tonumber(a) * 1e6 + (tonumber(b) or 0) * 1e3 + (tonumber(c) or 0)
end
-- Is the version known, and older than the other? And the same or newer?
function before(v, other) return v ~= nil and version_key(v) < version_key(other) end
function from(v, other) return v ~= nil and version_key(v) >= version_key(other) end

-- --- values --------------------------------------------------------------------------------

-- What strtoll(text, NULL, 0) makes of it, and whether it took the whole text and no zero in front made it octal.
function c_integer(text)
	local blank, sign, rest = text:match("^(%s*)([+-]?)(.*)$")
	local hex = rest:match("^0[xX](%x+)")
	local octal = not hex and rest:match("^0([0-7]+)")
	local digits = hex or octal or rest:match("^%d+") or ""
	local used = #digits + (hex and 2 or octal and 1 or 0)
	local value = tonumber(digits, hex and 16 or octal and 8 or 10) or 0
	return sign == "-" and -value or value, used > 0 and used == #rest and not octal and blank == ""
end

-- "16M" -> 16777216, "256 KiB" -> 262144, "1e6" -> 1000000; nil for what is no size.
function size_meant(text)
	local number, unit = text:match("^%s*(%d+%.?%d*)%s*([KkMmGg]?)[iI]?[bB]?%s*$")
	local by = { [""] = 1, k = 1024, m = 1024 ^ 2, g = 1024 ^ 3 }
	local v = number and tonumber(number) * by[unit:lower()] or tonumber((text:match("^%s*(%d+%.?%d*[eE]%d+)%s*$")))
	return v and v < 2 ^ 53 and math.floor(v) or nil
end

local yes <const> = { ["true"] = true, yes = true, on = true, enable = true, enabled = true }
local no <const> = { ["false"] = true, no = true, off = true, disable = true, disabled = true, none = true }
-- "true" -> 1, "off" -> 0, nil for what is no such word.
function truth_meant(text)
	local word = text:lower()
	return yes[word] and 1 or no[word] and 0 or nil
end

-- The parts of a text between separators, without blanks around them.
function parts(text, separator)
	local out = {}
	for part in (text .. separator):gmatch("(.-)%" .. separator) do
		out[#out + 1] = part:match("^%s*(.-)%s*$")
	end
	return out
end

function set_of(list)
	local out = {}
	for _, word in ipairs(list) do
		out[word] = true
	end
	return out
end

-- The setting's value in this environment, nil when it is not set or not known before the script runs.
function value_of(env, name)
	local s = env[name]
	return s and not s.dynamic and s.value or nil
end

-- --- names ---------------------------------------------------------------------------------

local function sorted_words(name)
	local words = parts(name, "_")
	table.sort(words)
	return table.concat(words, " ")
end

-- The same words, in whatever order?
function same_words(a, b) return sorted_words(a) == sorted_words(b) end

-- Names of the table under which `known` says something, without the prefix that all of them have.
local function tails(known, prefix)
	local out = {}
	for name in pairs(known) do
		if name:sub(1, #prefix) == prefix then
			out[#out + 1] = name:sub(#prefix + 1)
		end
	end
	return out
end

-- The name of `known` that is probably meant: by letters (see nearest()), or by the same words in another order.
function nearest_name(name, known, prefix)
	local rest = tails(known, prefix)
	local near = nearest(name:sub(#prefix + 1), rest)
	for _, tail in ipairs(near and {} or rest) do
		if #tail == #name - #prefix and same_words(tail, name:sub(#prefix + 1)) then
			near = tail
		end
	end
	return near and prefix .. near or nil
end

-- --- commands ------------------------------------------------------------------------------

-- The value of an option of a command: "--x 4", "--x=4"; true for one without a value; nil when it is not there.
-- Further spellings may follow. The last one counts.
function option(c, ...)
	local found
	for _, name in ipairs({ ... }) do
		for i, word in ipairs(c.words) do
			if word == name then
				local value = c.words[i + 1]
				found = value ~= nil and not value:find("^%-%a") and not value:find("^%-%-") and value or true
			elseif word:sub(1, #name + 1) == name .. "=" then
				found = word:sub(#name + 2)
			end
		end
	end
	return found
end

-- Has the command a program of this name among its words, with a path before it or without?
function runs(c, program)
	for _, word in ipairs(c.words) do
		if word == program or word:sub(-#program - 1) == "/" .. program then
			return true
		end
	end
	return false
end

-- --- rules ---------------------------------------------------------------------------------

local function copy(t)
	local out = {}
	for key, value in pairs(t) do
		out[key] = value
	end
	return out
end

-- The environment that the settings leave: the last of a name counts, and one that is taken out is not there.
local function environment(settings, under)
	local env = copy(under or {})
	for _, s in ipairs(settings) do
		if s.value == nil and not s.dynamic then
			env[s.name] = nil
		else
			env[s.name] = s
		end
	end
	return env
end

local function add(out, seen, rule, arm, at, found)
	if found == nil then
		return
	end
	if found.what == nil then
		for _, f in ipairs(found) do
			add(out, seen, rule, arm, at, f)
		end
		return
	end
	local place = found.at or at or {}
	arm = found.arm_of or arm
	local key = rule.name .. "\0" .. (place.name or "") .. "\0" .. found.what
	if seen[key] and (arm or seen[key] == place.line) then
		return -- an arm only has what the baseline has not
	elseif not arm then
		seen[key] = place.line or 0
	end
	out[#out + 1] = {
		severity = found.severity, what = found.what, write = found.write, rule = rule.name,
		name = place.name, value = place.value, file = place.file, line = place.line,
		knob = arm and arm.knob, arm = arm and arm.value,
	}
end

local function ask(rule, x, env, settings, commands, arm, out, seen)
	for _, s in ipairs(rule.setting and settings or {}) do
		add(out, seen, rule, arm, s, rule.setting(s, x))
	end
	if arm and arm.requires then
		return -- what such a knob needs may come with a later incumbent
	end
	if rule.env then
		add(out, seen, rule, arm, arm and arm.settings[1] or nil, rule.env(env, x))
	end
	for _, c in ipairs(rule.command and commands or {}) do
		add(out, seen, rule, arm, c, rule.command(c, x, env))
	end
end

-- The list of rules as the one function that fettle calls.
function rules(list)
	local function check(x)
		local out, seen = {}, {}
		local env = environment(x.settings)
		for _, rule in ipairs(list) do
			if rule.all then
				add(out, seen, rule, nil, nil, rule.all(x))
			end
			ask(rule, x, env, x.settings, x.commands, nil, out, seen)
			for _, arm in ipairs(x.arms) do
				if #arm.settings > 0 or #arm.commands > 0 then
					ask(rule, x, environment(arm.settings, env), arm.settings, arm.commands, arm, out, seen)
				end
			end
		end
		return out
	end
	return { check = check }
end
