# SPDX-License-Identifier: GPL-2.0-or-later
# fettle: plain GNU make. `make help` lists the targets, tests/lint/deps.txt what must be installed.
MAKEFLAGS += -rR --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/sh

BUILD      ?= build
MODE       ?= release
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
DATADIR    ?= $(PREFIX)/share/fettle
LIBEXECDIR ?= $(PREFIX)/libexec/fettle
MANDIR     ?= $(PREFIX)/share/man
LOCALEDIR  ?= $(PREFIX)/share/locale
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR ?= $(PREFIX)/share/fish/vendor_completions.d
INSTALL    ?= install
STRIP      ?= strip
VERSION    := $(shell sh tests/lint/version.sh)
ifneq ($(filter default undefined,$(origin CC)),)
CC         := cc
endif
ifneq ($(filter default undefined,$(origin AR)),)
AR         := ar
endif
export CC

# One tree a mode, so that objects built differently never mix.
B          := $(BUILD)/$(MODE)
MODES      := release debug asan coverage fuzz lint
$(if $(filter $(MODE),$(MODES)),,$(error MODE=$(MODE): expected one of $(MODES)))
SAN        := -fsanitize=address,undefined
OPT.release  := -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
OPT.lint     := $(OPT.release)
OPT.debug    := -O0 -g3
OPT.asan     := -O1 -g -fno-omit-frame-pointer $(SAN) -fno-sanitize-recover=all
OPT.coverage := -O0 -g --coverage
OPT.fuzz     := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link $(SAN) -fno-sanitize-recover=all
LNK.asan     := $(SAN)
LNK.coverage := --coverage
LNK.fuzz     := $(SAN)

WARN       := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla -Wundef \
              -Wwrite-strings -Wpointer-arith -Wimplicit-fallthrough
# Warnings are errors where nobody would read them.
WERROR     ?= $(if $(CI),-Werror)

pc          = $(shell for n in $(2); do pkg-config $(1) $$n 2>/dev/null && exit; done; echo '$(3)')
PC_LIBS    := $(call pc,--libs,sqlite3,-lsqlite3) $(call pc,--libs,lua5.4 lua-5.4 lua,-llua) \
              $(call pc,--libs,libcjson,-lcjson) $(call pc,--libs,yajl,-lyajl) \
              $(call pc,--libs,libxxhash,-lxxhash) $(call pc,--libs,libpcre2-8,-lpcre2-8) \
              $(call pc,--libs,libRmath,-lRmath) $(call pc,--libs,zlib,-lz) -lunistring -ldl -lrt -lm
PC_CFLAGS  := $(sort $(call pc,--cflags,lua5.4 lua-5.4 lua,) $(call pc,--cflags,libRmath,) \
              $(call pc,--cflags,libpcre2-8,) $(call pc,--cflags,blas-openblas openblas cblas,))
LIBS       ?= $(PC_LIBS)

# CFLAGS, CPPFLAGS and LDFLAGS belong to the caller: added to those of the mode, never instead of them.
ALLCPP      = -I. -I$(B)/gen -D_GNU_SOURCE $(PC_CFLAGS) $(CPPFLAGS)$(DEFS)
ALLCFLAGS   = -std=c17 $(WARN) $(OPT.$(MODE)) $(CFLAGS)
ALLLDFLAGS  = $(LNK.$(MODE)) $(LDFLAGS)

# --- what there is --------------------------------------------------------------------------------
BASE_SRC   := $(sort $(wildcard orchestrator/base/*.c))
LIB_SRC    := $(BASE_SRC) $(sort $(foreach d,script sched method report cmd,$(wildcard orchestrator/$(d)/*.c)) \
              $(wildcard experiments/*.c probes/*.c))
AGENT_SRC  := $(sort $(wildcard orchestrator/agent/*.c))
SLURM_SRC  := $(sort $(wildcard orchestrator/slurm/*.c))
UNIT_SRC   := $(sort $(wildcard tests/unit/*_test.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
# Small programs that tests, the demo and benchmarks start. What one is linked with stands in it:
# /* link: -lopenblas -lz */
PROG_SRC   := $(sort $(wildcard tests/progs/*.c tests/workloads/*.c tests/bench/*.c tests/slurm/*.c \
              recipes/workloads/*/*.c))
ALL_SRC    := orchestrator/main.c $(LIB_SRC) $(AGENT_SRC) $(SLURM_SRC) $(UNIT_SRC) $(FUZZ_SRC) $(PROG_SRC)
HEADERS    := $(sort $(wildcard orchestrator/*/*.h experiments/*.h probes/*.h tests/*/*.h))
CLI_TESTS  := $(sort $(wildcard tests/cli/*.bats) $(if $(LONG),$(wildcard tests/cli/long/*.bats)))
FAULT_TESTS := $(sort $(wildcard tests/faults/*.bats) $(if $(LONG),$(wildcard tests/faults/long/*.bats)))
SLURM_TESTS := $(sort $(wildcard tests/slurm/*.bats) $(if $(LONG),$(wildcard tests/slurm/long/*.bats)))

# Tables from file names: TYPE TABLE HEADER FILES. None without the header that declares it.
REGISTRIES := probe cmd sched report_format recommend_form outlet
REG.probe         := probe probe_table probes/probe.h $(wildcard probes/probe_*.c)
REG.cmd           := cmd cmd_table orchestrator/cmd/cmd.h $(wildcard orchestrator/cmd/cmd_*.c)
REG.sched         := sched sched_table orchestrator/sched/sched.h $(wildcard orchestrator/sched/sched_*.c)
REG.report_format := report_format report_format_table orchestrator/report/report.h \
                     $(wildcard orchestrator/report/format_*.c)
REG.recommend_form := recommend_form recommend_form_table orchestrator/report/recommend.h \
                     $(wildcard orchestrator/report/form_*.c)
REG.outlet        := outlet outlet_table orchestrator/report/outlet.h $(wildcard orchestrator/report/outlet_*.c)
GEN_SRC    := $(foreach r,$(REGISTRIES),$(if $(wildcard $(word 3,$(REG.$(r)))),$(B)/gen/registry_$(r).c)) \
              $(if $(wildcard experiments/db.h),$(B)/gen/migrations.c)

obj         = $(patsubst %.c,$(B)/%.o,$(1))
LIB_OBJ    := $(call obj,$(LIB_SRC)) $(GEN_SRC:.c=.o)
# The agent runs where nothing is installed: of base only what needs nothing but libc and xxhash.
AGENT_BASE := $(patsubst %,$(B)/orchestrator/base/%.o,err str mem clock proc fs log version address container nodefacts)
AGENT_STATIC ?= 1
ifneq ($(filter asan fuzz,$(MODE)),)
AGENT_LINK := -l:libyajl_s.a -l:libpcre2-8.a -l:libxxhash.a -lm
else ifeq ($(AGENT_STATIC),1)
# Fatal warnings: what would need a shared library after all (getpwnam, dlopen) must not get in.
# -pthread: before glibc 2.34 the locks of PCRE2's allocator were in a library of their own.
AGENT_LINK := -static -pthread -Wl,--fatal-warnings -l:libyajl_s.a -l:libpcre2-8.a -l:libxxhash.a -lm
else
AGENT_LINK := -lyajl -lpcre2-8 -lxxhash -lm
endif
HAVE_SLURM := $(if $(SLURM_SRC),$(shell $(CC) $(CPPFLAGS) -include slurm/slurm.h -E -x c -o /dev/null /dev/null 2>/dev/null && echo yes))
# Without slurm.h (HAVE_SLURM= tries that) fettle-slurm and the tests of its parts are left out.
NEED_SLURM := $(SLURM_SRC) $(shell grep -l '"orchestrator/slurm/' $(UNIT_SRC))
UNIT_BIN   := $(patsubst %.c,$(B)/%,$(if $(HAVE_SLURM),$(UNIT_SRC),$(filter-out $(NEED_SLURM),$(UNIT_SRC))))
FUZZ_BIN   := $(FUZZ_SRC:%.c=$(B)/%)
PROG_BIN   := $(PROG_SRC:%.c=$(B)/%)
# Without msgfmt (HAVE_MSGFMT= tries that) everything is there but the translations.
HAVE_MSGFMT := $(shell command -v msgfmt)
PO_FILES   := $(sort $(wildcard orchestrator/po/*.po))
CATALOGUES := $(if $(HAVE_MSGFMT),$(PO_FILES:orchestrator/po/%.po=$(B)/locale/%/LC_MESSAGES/fettle.mo))
# Man pages whose lists of fields are those of recipes/README.md.
FIELD_PAGES := $(B)/man/campaign.5 $(B)/man/knob.5
PROGRAMS   := $(B)/fettle $(if $(AGENT_SRC),$(B)/fettle-agent) $(if $(HAVE_SLURM),$(B)/fettle-slurm)

Q          := $(if $(V),,@)
say         = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))
# Replace a generated file only if its text changes.
define settle
@cmp -s $@.tmp $@ && rm $@.tmp || mv $@.tmp $@
endef

# --- programs -------------------------------------------------------------------------------------
all: programs $(if $(SLURM_SRC),$(if $(HAVE_SLURM),,no-slurm)) $(if $(HAVE_MSGFMT),,no-msgfmt) ## build everything (MODE=release|debug|asan|coverage|fuzz, V=1: say all)
programs: $(PROGRAMS) $(CATALOGUES) $(FIELD_PAGES) $(B)/fettle.srcdir $(if $(filter release,$(MODE)),links)
no-slurm:
	@echo 'fettle-slurm is left out: slurm/slurm.h is missing (Debian package: libslurm-dev; RHEL package: slurm-devel)'
no-msgfmt:
	@echo 'translations are left out: msgfmt is missing (Debian and RHEL package: gettext)'
links: $(PROGRAMS)
	@for p in $(notdir $(PROGRAMS)); do ln -sfn $(MODE)/$$p $(BUILD)/$$p; done

# Looked at once before the first compile, and again when the list changes.
$(B)/deps.ok: tests/lint/deps.txt tests/lint/deps.sh
	@mkdir -p $(@D)
	@AGENT_STATIC=$(AGENT_STATIC) sh tests/lint/deps.sh check build && touch $@
# Changed options rebuild what they concern.
$(B)/flags: FORCE | $(B)/deps.ok
	@printf '%s\n' '$(subst ','\'',$(CC) $(ALLCPP) $(ALLCFLAGS))' > $@.tmp
	$(settle)
$(B)/version.flags: FORCE | $(B)/deps.ok
	@echo '$(VERSION)' > $@.tmp
	$(settle)
# Tells a program that it lies in a build tree, and where its sources are.
$(B)/fettle.srcdir: FORCE | $(B)/deps.ok
	@echo '$(CURDIR)' > $@.tmp
	$(settle)

$(B)/%.o: %.c $(B)/flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLCPP) $(ALLCFLAGS) $(WERROR) -MMD -MP -c -o $@ $<
$(B)/gen/%.o: $(B)/gen/%.c $(B)/flags
	$(Q)$(CC) $(ALLCPP) $(ALLCFLAGS) $(WERROR) -MMD -MP -c -o $@ $<
# In a build tree these places are never asked for; `install` links with its own.
$(B)/orchestrator/base/paths.o: DEFS = $() -DFETTLE_DATADIR='"/usr/local/share/fettle"' \
	-DFETTLE_LIBEXECDIR='"/usr/local/libexec/fettle"' -DFETTLE_LOCALEDIR='"/usr/local/share/locale"'
$(B)/orchestrator/base/version.o: DEFS = $() -DFETTLE_VERSION='"$(VERSION)"'
$(B)/orchestrator/base/version.o: $(B)/version.flags

# FORCE: a file that was deleted must leave its table, and no timestamp tells that.
$(B)/gen/registry_%.c: FORCE | $(B)/deps.ok
	@mkdir -p $(@D)
	@sh tests/lint/registry.sh $(REG.$*) > $@.tmp
	$(settle)
$(FIELD_PAGES): $(B)/man/%: orchestrator/%.in recipes/README.md tests/lint/man_fields.awk
	@mkdir -p $(@D)
	$(Q)awk -f tests/lint/man_fields.awk recipes/README.md $< >$@.tmp && mv $@.tmp $@
$(B)/gen/migrations.c: FORCE | $(B)/deps.ok
	@mkdir -p $(@D)
	@sh tests/lint/embed_sql.sh experiments/schema.sql $(sort $(wildcard experiments/migrations/*.sql)) > $@.tmp
	$(settle)
FORCE:

$(CATALOGUES): $(B)/locale/%/LC_MESSAGES/fettle.mo: orchestrator/po/%.po
	$(call say,MSGFMT,$<)
	@mkdir -p $(@D)
	$(Q)msgfmt --check -o $@ $<
# What the sources say now: new texts wait for a translation, those that are gone are dropped.
po: ## bring the catalogues of translations (orchestrator/po) up to date with the sources
	@sh tests/lint/po.sh update $(B)/po "$(PO_FILES)" $(TEXT_SRC)

define archive
$(call say,AR,$@)
$(Q)rm -f $@ && $(AR) rcD $@ $(filter %.o,$^)
endef
# The list of members is a prerequisite: a deleted source must leave its archive.
$(B)/%.list: FORCE | $(B)/deps.ok
	@echo '$(LIST.$*)' > $@.tmp
	$(settle)
LIST.libfettle := $(LIB_OBJ)
LIST.libagent  := $(call obj,$(AGENT_SRC))
LIST.libslurm  := $(call obj,$(SLURM_SRC))
$(B)/libfettle.a: $(LIST.libfettle) $(B)/libfettle.list
	$(archive)
$(B)/libagent.a: $(LIST.libagent) $(B)/libagent.list
	$(archive)
$(B)/libslurmhelper.a: $(LIST.libslurm) $(B)/libslurm.list
	$(archive)

define link
$(call say,LD,$@)
@mkdir -p $(@D)
$(Q)$(CC) $(ALLCFLAGS) $(ALLLDFLAGS) -o $@ $(filter %.o %.a,$^) -Wl,--as-needed $(1)
endef
$(B)/fettle: $(B)/orchestrator/main.o $(B)/libfettle.a
	$(call link,$(LIBS))
$(B)/fettle-agent: $(LIST.libagent) $(AGENT_BASE)
	$(call link,$(AGENT_LINK))
$(B)/fettle-slurm: $(LIST.libslurm) $(B)/libfettle.a
	$(call link,-lslurm $(LIBS))

# --- tests ----------------------------------------------------------------------------------------
# A test that includes a header of a helper program gets that program's objects too.
helper_libs = $(if $(shell grep -l '"orchestrator/agent/' $(1)),$(B)/libagent.a) \
              $(if $(HAVE_SLURM),$(if $(shell grep -l '"orchestrator/slurm/' $(1)),$(B)/libslurmhelper.a))
.SECONDEXPANSION:
$(UNIT_BIN) $(FUZZ_BIN): $(B)/%: $(B)/%.o $$(call helper_libs,$$*.c) $(B)/libfettle.a
	$(call link,$(if $(filter $@,$(UNIT_BIN)),-lcmocka,-fsanitize=fuzzer) $(if $(HAVE_SLURM),-lslurm) $(LIBS))
# Benchmarks and the driver of the Slurm tests hold code of ours. The other programs stand for those of users: whatever the mode,
# they are built as users build theirs (one is to crash, and allocators are loaded into them).
BENCH_BIN  := $(filter $(B)/tests/bench/% $(B)/tests/slurm/%,$(PROG_BIN))
USER_BIN   := $(filter-out $(BENCH_BIN),$(PROG_BIN))
$(USER_BIN:%=%.o): private ALLCFLAGS = -std=c17 $(WARN) $(OPT.release) $(CFLAGS)
$(USER_BIN): private ALLCFLAGS = $(CFLAGS)
$(USER_BIN): private ALLLDFLAGS = $(LDFLAGS)
$(BENCH_BIN): $(B)/libfettle.a
$(PROG_BIN): $(B)/%: $(B)/%.o
	$(call link,$(shell sed -n 's|^/\* link: \(.*\) \*/$$|\1|p' $*.c))

export FETTLE := $(abspath $(B)/fettle)
export FETTLE_BUILD := $(abspath $(B))
export LONG BUILD MODE FUZZ_S FUZZ_RUNS

# The files of $(1), or with T=name the one whose stem is name; never none. $(2): what ends the name.
chosen      = $(or $(if $(T),$(filter %/$(T)$(2),$(1)),$(1)),$(error no such tests: $(or $(T),*)$(2)))

test: ## everything: dependencies, build, unit, CLI, fault and Slurm tests (LONG=1: longer variants)
	@sh tests/lint/deps.sh install build test slurm lint $(if $(LONG),long)
	@$(MAKE) WERROR=-Werror test-build
	@$(MAKE) WERROR=-Werror test-run
test-build: programs $(UNIT_BIN) $(PROG_BIN)
test-run:
	@sh tests/run.sh $(B)/tap $(call chosen,$(UNIT_BIN),_test) $(call chosen,$(CLI_TESTS),.bats) \
		$(call chosen,$(FAULT_TESTS),.bats) $(call chosen,$(SLURM_TESTS),.bats)
check-unit: programs $(UNIT_BIN) $(PROG_BIN) ## unit tests (T=name: only name_test)
	@sh tests/run.sh $(B)/tap-unit $(call chosen,$(UNIT_BIN),_test)
check-cli: programs $(PROG_BIN) ## command line tests (T=name: only name.bats)
	@sh tests/run.sh $(B)/tap-cli $(call chosen,$(CLI_TESTS),.bats)
check-faults: programs $(PROG_BIN) ## tests with injected faults
	@sh tests/run.sh $(B)/tap-faults $(call chosen,$(FAULT_TESTS),.bats)
check-slurm: programs $(PROG_BIN) $(B)/tests/unit/sched_contract_test ## tests on a Slurm cluster that they start themselves
	@sh tests/run.sh $(B)/tap-slurm $(call chosen,$(SLURM_TESTS),.bats)
asan: ## unit and CLI tests under the address and undefined-behaviour sanitisers
	@$(MAKE) MODE=asan WERROR=-Werror check-unit
	@$(MAKE) MODE=asan WERROR=-Werror check-cli
VALGRIND   := valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
              --suppressions=tests/lint/valgrind.supp
# Simulations only repeat what their modules' own tests run.
valgrind: ## unit tests under valgrind
	@RUN_WITH='$(VALGRIND)' $(MAKE) MODE=debug UNIT_SRC='$(filter-out %_sim_test.c,$(UNIT_SRC))' check-unit
coverage: ## line coverage of the unit and CLI tests: build/coverage/report.txt
	@$(MAKE) MODE=coverage check-unit
	@$(MAKE) MODE=coverage check-cli
	gcovr --root . --object-directory $(BUILD)/coverage --exclude tests/ --exclude '$(BUILD)/' -o $(BUILD)/coverage/report.txt
	@tail -n 3 $(BUILD)/coverage/report.txt
# What a run of minutes under sanitisers leaves out: what simulates campaigns, and commands that mostly start other programs.
LONG_UNIT  := ablate canary converge ends evidence fix guards hypothesis limits nightly_recipe noise pairs passed quality
QUICK_UNIT  = $(filter-out %_sim_test.c tests/unit/campaign_% $(LONG_UNIT:%=tests/unit/%_test.c),$(UNIT_SRC))
QUICK_CLI  := bad-input hostile secrets history-import check diagnose outlets regressions
check-sanitized: ## the shorter unit and CLI tests (MODE=asan)
	@$(MAKE) WERROR=-Werror UNIT_SRC='$(QUICK_UNIT)' check-unit
	@$(MAKE) WERROR=-Werror CLI_TESTS='$(QUICK_CLI:%=tests/cli/%.bats)' check-cli
fuzz: ## run each fuzzer for FUZZ_S seconds (30; T=fuzz_name: only that one; FUZZ_RUNS: at most as many inputs)
	@sh tests/lint/deps.sh check build fuzz
	@$(MAKE) MODE=fuzz CC=clang-14 fuzz-run
fuzz-run: $(FUZZ_BIN)
	@sh tests/fuzz/run.sh $(BUILD)/corpus $(call chosen,$(FUZZ_BIN))
ci: ## make test, and what else tests/ci.txt names: lint, clang, sanitizers, fuzzers, chaos (LONG=1: the full programme)
	@bash tests/ci.sh tests/ci.txt
bench: programs $(PROG_BIN) ## fettle beside its peers, one table (T=name: one benchmark of tests/bench; LONG=1: all sizes)
	@sh tests/bench/bench.sh $(T)
# Stable names of the workloads, for campaigns that are typed by hand.
workloads: $(PROG_BIN) ## the small programs that campaigns tune: build/workloads
	@mkdir -p $(BUILD)/workloads
	@for p in $(filter $(B)/tests/workloads/% $(B)/recipes/%,$(PROG_BIN)); do \
		ln -sfn ../$(MODE)/$${p#$(B)/} $(BUILD)/workloads/$${p##*/}; done
demo: ## dependencies, build, and a real tuning campaign on this machine
	@sh tests/lint/deps.sh install build demo
	@$(MAKE) programs $(if $(DEMO_CAMPAIGN),workloads)
	@sh tests/demo.sh
deps: ## install what build, tests and lint need
	@sh tests/lint/deps.sh install build test slurm lint

# --- install --------------------------------------------------------------------------------------
# Needs no root with PREFIX=$HOME/x. An installed tree may be moved: the program looks beside itself.
RECIPES     = $(sort $(shell find recipes -type f ! -name '*.pyc'))
SCRIPTS     = $(shell grep -rlI '^\#!' recipes)
# Where it is installed is known only now: paths.c again, before the archive that has it too.
$(B)/install/fettle: programs FORCE
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLCPP) -DFETTLE_DATADIR='"$(DATADIR)"' -DFETTLE_LIBEXECDIR='"$(LIBEXECDIR)"' \
		-DFETTLE_LOCALEDIR='"$(LOCALEDIR)"' $(ALLCFLAGS) \
		$(ALLLDFLAGS) -o $@ orchestrator/base/paths.c $(B)/orchestrator/main.o $(B)/libfettle.a -Wl,--as-needed $(LIBS)
# Everything that is installed: source, place and mode, which install and uninstall share.
to          = $(1):$(2):$(3)
INSTALLED   = $(call to,$(B)/install/fettle,$(BINDIR)/fettle,755) \
              $(foreach p,$(filter-out fettle,$(notdir $(PROGRAMS))),$(call to,$(B)/$p,$(LIBEXECDIR)/$p,755)) \
              $(foreach f,$(RECIPES),$(call to,$f,$(DATADIR)/$f,$(if $(filter $f,$(SCRIPTS)),755,644))) \
              $(foreach f,$(MAN_FILES) $(FIELD_PAGES),$(call to,$f,$(MANDIR)/man$(subst .,,$(suffix $f))/$(notdir $f),644)) \
              $(foreach f,$(CATALOGUES),$(call to,$f,$(f:$(B)/locale/%=$(LOCALEDIR)/%),644)) \
              $(call to,orchestrator/fettle.bash,$(BASHCOMPDIR)/fettle,644) \
              $(call to,orchestrator/fettle.zsh,$(ZSHCOMPDIR)/_fettle,644) \
              $(call to,orchestrator/fettle.fish,$(FISHCOMPDIR)/fettle.fish,644)
# The agent is copied to compute nodes and held to 2 MB: without what only debuggers read.
install: $(B)/install/fettle ## install under PREFIX (DESTDIR is honoured)
	$(Q)set -e; for t in $(INSTALLED); do \
		from=$${t%%:*}; mode=$${t##*:}; t=$${t#*:}; \
		$(INSTALL) -D -m $$mode "$$from" "$(DESTDIR)$${t%:*}"; done
	$(Q)$(STRIP) $(DESTDIR)$(LIBEXECDIR)/fettle-agent
	@echo 'installed: $(DESTDIR)$(BINDIR)/fettle'
uninstall: ## remove what install put there, and nothing else
	$(Q)for t in $(INSTALLED); do t=$${t#*:}; rm -f "$(DESTDIR)$${t%:*}"; done
	$(Q)for d in $(LIBEXECDIR) $(DATADIR); do \
		[ ! -d "$(DESTDIR)$$d" ] || find "$(DESTDIR)$$d" -depth -type d -empty -delete; done
	@echo 'removed: $(DESTDIR)$(BINDIR)/fettle'
# The same bytes from the same commit: git orders and dates the archive, gzip -n adds no time.
dist: ## source archive of HEAD: build/fettle-VERSION.tar.gz
	@mkdir -p $(BUILD)/dist && echo '$(VERSION)' > $(BUILD)/dist/VERSION
	@git archive --format=tar --prefix=fettle-$(VERSION)/ --add-file=$(BUILD)/dist/VERSION \
		-o $(BUILD)/dist/source.tar HEAD
	@gzip -9nc $(BUILD)/dist/source.tar > $(BUILD)/fettle-$(VERSION).tar.gz && rm $(BUILD)/dist/source.tar
	@echo $(BUILD)/fettle-$(VERSION).tar.gz

# A package is made of HEAD, as `dist` packs it: into build/deb, build/rpm.
# DEB_MAINTAINER='Name <address>': whoever packages; else who made the newest change.
DEB_MAINTAINER ?= $(shell git log -1 --format='%an <%ae>')
PACK_VERSION = $(shell printf '%s' '$(VERSION)' | tr - +)
deb: dist ## Debian packages of HEAD: build/deb/*.deb
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	@cp $(BUILD)/fettle-$(VERSION).tar.gz $(BUILD)/deb/fettle_$(PACK_VERSION).orig.tar.gz
	@tar -xzf $(BUILD)/fettle-$(VERSION).tar.gz -C $(BUILD)/deb
	@cp -r packaging/debian $(BUILD)/deb/fettle-$(VERSION)/debian
	@sed -i 's|@MAINTAINER@|$(DEB_MAINTAINER)|' $(BUILD)/deb/fettle-$(VERSION)/debian/control
	@printf 'fettle (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' \
		'$(PACK_VERSION)' '$(DEB_MAINTAINER)' "$$(git log -1 --format=%cD)" > $(BUILD)/deb/fettle-$(VERSION)/debian/changelog
	@cd $(BUILD)/deb/fettle-$(VERSION) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u MODE -u BUILD -u CC \
		dpkg-buildpackage -us -uc $(DEB_FLAGS)
rpm: dist ## RPM packages of HEAD: build/rpm/RPMS (RPM_FLAGS=--nodeps where rpm knows no packages)
	@rm -rf $(BUILD)/rpm && mkdir -p $(BUILD)/rpm/SOURCES
	@cp $(BUILD)/fettle-$(VERSION).tar.gz $(BUILD)/rpm/SOURCES/fettle-$(PACK_VERSION).tar.gz
	@env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u MODE -u BUILD -u CC rpmbuild -bb $(RPM_FLAGS) \
		--define '_topdir $(abspath $(BUILD)/rpm)' --define 'fettle_version $(PACK_VERSION)' \
		--define 'fettle_source fettle-$(VERSION)' packaging/fettle.spec

# --- lint -----------------------------------------------------------------------------------------
# Looked up when asked for: fixtures, golden files and corpora are data, as they came.
texts       = $(sort $(shell find Makefile .ci orchestrator experiments probes recipes tests \
              \( -path tests/fixtures -o -path tests/golden -o -path tests/fuzz/corpus \) -prune -o \
              -type f \( $(foreach n,$(1),-name '$(n)' -o) -false \) -print 2>/dev/null))
C_FILES     = $(call texts,*.c *.h)
SH_FILES    = $(wildcard .ci/run) $(call texts,*.sh *.bash *.bats)
LUA_FILES   = $(call texts,*.lua)
MAN_FILES   = $(call texts,*.[1-9])
CODE_FILES  = $(C_FILES) $(SH_FILES) $(LUA_FILES) $(call texts,*.py *.sql *.def)
LINTS      := warnings layers format banned length spdx whitespace lua sh man po
# Whose texts are translated, and those of them whose every text is: people read it in documents.
TEXT_SRC    = $(LIB_SRC)
DOC_SRC     = $(filter-out $(addprefix orchestrator/report/,%_json.c format_csv.c form_% recommend.c slow_nodes.c \
              outlet_junit.c outlet_metrics.c outlet_slack.c),$(filter orchestrator/report/% \
              orchestrator/cmd/nightly_page.c,$(LIB_SRC)))

lint: $(LINTS:%=check-%) ## every check of the sources (each is a target of its own: check-NAME)
$(LINTS:%=check-%): lint-deps
lint-deps:
	@sh tests/lint/deps.sh check lint
# A tree of its own, where nothing was ever compiled without -Werror.
check-warnings:
	@$(MAKE) MODE=lint WERROR=-Werror objects
objects: $(call obj,$(filter-out $(FUZZ_SRC) $(if $(HAVE_SLURM),,$(NEED_SLURM)),$(ALL_SRC))) $(GEN_SRC:.c=.o)
check-layers:
	@sh tests/lint/layers.sh tests/lint/layers.txt $(C_FILES)
	@! grep -niE 'fake|simulat' $(filter orchestrator/method/% experiments/%,$(C_FILES)) || \
		{ echo 'what decides must not know whether its results are real (these words are not for its files)'; exit 1; }
check-format:
	@sh tests/lint/format.sh $(C_FILES)
check-banned:
	@sh tests/lint/banned.sh tests/lint/banned.txt $(C_FILES)
check-length:
	@sh tests/lint/length.sh $(CODE_FILES)
check-spdx:
	@sh tests/lint/spdx.sh $(CODE_FILES) Makefile
check-whitespace:
	@sh tests/lint/whitespace.sh $(CODE_FILES) $(MAN_FILES) Makefile $(call texts,*.md *.txt)
check-lua:
	@$(if $(LUA_FILES),luacheck -q --no-color $(LUA_FILES))
check-sh:
	@shellcheck -x $(SH_FILES)
check-man: $(FIELD_PAGES)
	@for f in $(MAN_FILES) $(FIELD_PAGES); do mandoc -T lint -W warning $$f || exit 1; done
check-po:
	@sh tests/lint/po.sh check $(B)/po "$(PO_FILES)" $(TEXT_SRC)
	@sh tests/lint/untranslated.sh tests/lint/untranslated.txt $(DOC_SRC)
format: ## let clang-format-14 lay out every C source
	@sh tests/lint/hoist.sh $(C_FILES)
	@clang-format-14 -i $(C_FILES)

clean: ## remove every build product
	rm -rf $(BUILD) compile_commands.json
help: ## this list
	@sed -n 's/^\([a-z_.-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'
.PHONY: all programs no-slurm no-msgfmt po links workloads test test-build test-run check-unit check-cli check-faults check-slurm \
	asan valgrind coverage check-sanitized fuzz fuzz-run ci bench demo deps install uninstall dist deb rpm \
	objects lint lint-deps $(LINTS:%=check-%) format clean help FORCE
.SECONDARY:
-include $(patsubst %.c,$(B)/%.d,$(ALL_SRC)) $(GEN_SRC:.c=.d)
