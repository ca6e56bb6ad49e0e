# fpac: head spec (Lua) -> verified, specialised C kernel.
#
#   make demo      install what is missing, build, compile and verify heads of every kind, use them
#   make test      install what is missing, build, run the tests, one summing line at the end
#   make test-all  the same with what is dear: every head for every target, every fault in every mechanism; ONLY="cuda_faults emit": these
#   make           build/fpac, the libraries libfpa and libfpa-run (which opens bundles, without Lua), examples
#
#   results gallery experiments train docs-check torch-test gpu-test gpu-pack gpu-bench gpu-table asan ubsan tsan fuzz torture bench
#   generated tidy format format-check smoke coverage clean: docs/command.md, "make"
#   install uninstall install-check dist wheel wheel-check fresh-check: docs/install.md

VERSION   := $(strip $(file <VERSION))
# Raised by what docs/abi.md says, and by nothing else.
SOVERSION := 0
BUILD     ?= build
SANITIZE  ?=
OBJCOPY   ?= objcopy
# make V=1 shows whole commands
quiet     := $(if $(V),,@)
say        = $(if $(V),@true,@printf '  %-6s %s\n' $(1) $@)

# Flags

# CC, CPPFLAGS, CFLAGS and LDFLAGS are the caller's; the variables in lower case are added to them.
# Sanitized programs are compiled in half the time with -O1, and run as long.
# Lines for debuggers, and no more: names of variables would be a fifth of the build (CFLAGS="-Og -g" has them).
CFLAGS   ?= $(if $(SANITIZE),-O1 -g,-O2 -g1)
warnings := -Wall -Wextra -Wshadow -Werror
cppflags  = -D_GNU_SOURCE -DFPA_VERSION='"$(VERSION)"' -I. -Ibase $(LUA_INCLUDE)
cflags   := -std=gnu11 $(warnings) -fPIC -fvisibility=hidden
ldflags  :=

ifneq ($(SANITIZE),)
# Some compilers take two members of one structure for overlapping strings once they are instrumented.
cflags  += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-restrict
ldflags += -fsanitize=$(SANITIZE)
# Emitted code is compiled with the same sanitizer, so that a bad index in a kernel stops the test;
# with -O1 and without the checks of addresses, which are the address sanitizer's, because unrolled
# code takes a minute a head otherwise.
export FPA_CFLAGS := -O1 -fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
                     -fno-sanitize=null,object-size,pointer-overflow
endif

# Emitted code finds OpenMP in the program then, where the sanitizer sees its threads.
ifneq ($(filter thread,$(SANITIZE)),)
openmp_sources := tests/threads/openmp.c
ldflags        += -rdynamic
endif

ifneq ($(COVERAGE),)
cflags  += --coverage -fprofile-update=atomic
ldflags += --coverage
endif

compile   = $(CC) $(cppflags) $(CPPFLAGS) $(cflags) $(CFLAGS) $(speed)
link      = $(CC) $(cflags) $(CFLAGS) $(ldflags) $(LDFLAGS)

LUA_INCLUDE := $(shell pkg-config --cflags lua5.4 2>/dev/null || echo -I/usr/include/lua5.4)
LUA_ARCHIVE := $(wildcard $(shell pkg-config --variable=libdir lua5.4 2>/dev/null)/liblua5.4.a)
LUA_SHARED  := $(shell pkg-config --libs lua5.4 2>/dev/null || echo -llua5.4)
# Programs carry Lua in themselves when its archive is there. Debian's archive is not
# position-independent, so libfpa.so needs the shared library.
LUA_PROGRAM := $(or $(LUA_ARCHIVE),$(LUA_SHARED))
# So do they carry libmd and LibTomMath, which a machine that only runs them may lack; and
# tests/test_faults wraps the allocations of what is inside it only.
carried      = $(or $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
MD_PROGRAM  := $(call carried,md)
TOM_PROGRAM := $(call carried,tommath)
LIBS        := -lm -ldl -pthread
PROGRAM_LIBS = $(LUA_PROGRAM) $(MD_PROGRAM) $(TOM_PROGRAM) $(LIBS)
# What both libraries need, in their .pc files too; libfpa needs Lua besides.
SHARED_LIBS  = -lmd -ltommath $(LIBS)

# Files

rooms           := base head machine gen gen/spec gen/simplify gen/plan gen/plan/c gen/plan/cuda gen/emit \
                   runtime runtime/api runtime/c runtime/cuda runtime/store runtime/reference runtime/verify
library_sources := $(sort $(wildcard $(addsuffix /*.c,$(rooms))))
command_sources := $(sort $(wildcard command/*.c))
template_files  := $(sort $(wildcard templates/*/*.in))
generator_rooms := $(filter base head machine gen gen/%,$(rooms)) abi
vocabulary_files := gen/spec/prelude.lua gen/spec/sketches.lua
generator_files := $(sort $(wildcard $(addsuffix /*.[ch],$(generator_rooms)))) $(vocabulary_files) $(template_files)
verifier_files  := $(sort $(wildcard $(foreach room,base head abi runtime/reference runtime/verify,$(room)/*.[ch])))
embedded_files  := $(vocabulary_files) abi/launch.h abi/cuda_call.h $(template_files)
test_sources    := $(sort $(wildcard tests/test_*.c))
fuzz_sources    := $(sort $(wildcard tests/fuzz_*.c))
helper_sources  := $(filter-out $(test_sources) $(fuzz_sources),$(sort $(wildcard tests/*.c tests/emulate/*.c)))

objects          = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
library_objects := $(call objects,$(library_sources)) $(BUILD)/obj/embedded.o $(BUILD)/obj/generator.o $(BUILD)/obj/verifier.o
command_objects := $(call objects,$(command_sources)) $(BUILD)/obj/page_css.o
# libfpa-run: without the generator, the compilers, and the files that call them. tests/test_run_library.c
builders        := gen/% $(addprefix runtime/api/,open.c open_gradients.c opening.c) runtime/builder.c $(addprefix runtime/,c/build.c c/compiler.c c/process.c \
                   cuda/build.c cuda/programs.c cuda/nvrtc.c cuda/nvrtc_library.c)
run_objects     := $(call objects,$(filter-out $(builders),$(library_sources))) $(BUILD)/obj/verifier.o
libraries       := libfpa libfpa-run
helper_objects  := $(call objects,$(helper_sources))
experiment_programs := $(addprefix $(BUILD)/experiments/,recall crossover variance fourier)
example_programs := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard examples/*.c)))
# by the time that they take, so that the last core does not wait for a long one alone; first what takes longest in make test-all alone
dear_tests      := $(if $(filter-out 0,$(FPA_TEST_ALL)),cuda_compile_backward cuda_emulated cuda_compile)
long_tests      := cuda_emulated_backward cuda_emulated_sequences cuda_faults_backward cuda_emulated cuda_compile_hopper passes cuda_ptx \
                   cuda_emulated_lift cuda_faults cuda_emulated_fused parity cuda_emulated_edge emit backward_faults backward_shipped \
                   allocations cuda_compile_backward bundle_backward accepted properties shipped mutation cuda_sources readme cuda_compile \
                   verify_rounded design invariants nvrtc_parts causal_edge cuda_emulated_draft cuda_accepted bundle_cuda faults command_cuda damage \
                   cuda_emulated_window report threads bundle_layer range verify_cost layer command_new backward_edge window cuda_recent \
                   plan_outer spec_limits open open_once emit_style command symmetry process experiments random layer_life
long_tests      := $(patsubst %,tests/test_%.c,$(dear_tests) $(filter-out $(dear_tests),$(long_tests)))
test_programs   := $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter $(test_sources),$(long_tests)) \
                   $(filter-out $(long_tests),$(test_sources)))
# Python cannot load a library that wants a sanitizer of its program.
python_tests    := $(if $(SANITIZE),,$(BUILD)/tests/test_python)
fuzz_programs   := $(patsubst tests/%.c,$(BUILD)/tests/%,$(fuzz_sources))

# tests/test_faults fails the first, second, third ... of these calls.
wrapped := malloc calloc realloc strdup strndup write fsync rename
comma := ,
$(BUILD)/tests/test_faults: ldflags += $(addprefix -Wl$(comma)--wrap=,$(wrapped))

.PHONY: all demo demo-run test test-all check smoke smoke-run coverage format-check docs-check gpu-test gpu-pack peer-wheels torch-test train \
        gpu-bench gpu-table results gallery experiments asan ubsan tsan tsan-run fuzz fuzz-run torture torture-fuzzers bench \
        generated tidy format clean install uninstall install-check dist wheel wheel-check \
        fresh-check
.DELETE_ON_ERROR:
.SECONDARY:

all: $(BUILD)/fpac $(foreach library,$(libraries),$(BUILD)/$(library).a $(BUILD)/$(library).so) $(example_programs)

# Building

# The formula is evaluated when a head is opened, and matrices are diagonalised: loops over columns become vectors.
$(BUILD)/obj/runtime/reference/%.o: speed := -O3
$(BUILD)/obj/gen/simplify/gram.o: speed := -O3

# A head is planned and written in milliseconds, then a compiler takes a second for it; subcommands wait for both. What
# counts long itself (gen/simplify) is left as it is, and all where the caller has other flags.
brief_sources := $(filter-out gen/simplify/%,$(filter gen/% command/%,$(library_sources) $(command_sources)))
$(call objects,$(brief_sources)): speed := $(if $(filter -O2,$(CFLAGS)),-O1)

# Tests call and compare: compiling them takes longer than what is saved when they run. Not those that count themselves.
counting_tests := $(patsubst %,$(BUILD)/obj/tests/test_%.o,sketch_statistics verify_rounded)
$(BUILD)/obj/tests/test_%.o: speed := -O0 -U_FORTIFY_SOURCE
$(counting_tests): speed :=
# So do most of their helpers.
$(filter-out $(BUILD)/obj/tests/rounded_module.o,$(helper_objects)): speed := $(if $(filter -O2,$(CFLAGS)),-O1)
# Claims are called with a state that few of them look at, and callbacks with what they do not need.
$(BUILD)/obj/tests/%.o: cflags += -Wno-unused-parameter

# Says which package is missing before the compiler complains about a header.
$(BUILD)/dependencies: tools/install-deps.sh
	@mkdir -p $(@D)
	@CC="$(CC)" tools/install-deps.sh --check
	@touch $@

# The version is in some of them.
$(BUILD)/obj/%.o: %.c VERSION | $(BUILD)/dependencies
	@mkdir -p $(@D)
	$(call say,cc)
	$(quiet)$(compile) -MMD -MP -c -o $@ $<

$(BUILD)/embed: tools/embed.c | $(BUILD)/dependencies
	@mkdir -p $(@D)
	$(call say,cc)
	$(quiet)$(CC) $(cppflags) $(CPPFLAGS) -std=gnu11 $(warnings) $(CFLAGS) -o $@ $<

# The prelude, the templates and the launch structures travel inside the library:
# gen/spec/prelude.lua is fpa_embedded_prelude_lua there.
symbol = fpa_embedded_$(shell printf %s '$(notdir $(1))' | tr -c 'A-Za-z0-9' _)=$(1)
$(BUILD)/embedded.c: $(BUILD)/embed $(embedded_files)
	$(call say,embed)
	$(quiet)$< $@ $(foreach file,$(embedded_files),$(call symbol,$(file)))

# So does what fpac report writes at the top of a page.
$(BUILD)/page_css.c: $(BUILD)/embed command/page.css
	$(call say,embed)
	$(quiet)$< $@ page_css=command/page.css

# Cached modules are known by the generator that made them, and their verdicts by the verifier: by the text of
# their files.
$(BUILD)/generator.c: $(generator_files)
$(BUILD)/generator.c: face := gen/gen.h
$(BUILD)/verifier.c: $(verifier_files)
$(BUILD)/verifier.c: face := runtime/verify/verify.h
$(BUILD)/generator.c $(BUILD)/verifier.c: $(BUILD)/%.c:
	$(call say,digest)
	$(quiet)printf '#include "$(face)"\nconst char $*_digest[] = "%s";\n' "$$(cat $^ | sha256sum | cut -c 1-64)" >$@

$(addprefix $(BUILD)/obj/,embedded.o generator.o verifier.o page_css.o): $(BUILD)/obj/%.o: $(BUILD)/%.c
	@mkdir -p $(@D)
	$(call say,cc)
	$(quiet)$(compile) -MMD -MP -c -o $@ $<

# For our own programs: everything, the subcommands too. libfpa.a, for others, shows only what fpa.h declares.
$(BUILD)/internal.a: $(library_objects) $(filter-out %/main.o,$(command_objects))
	@rm -f $@
	$(call say,ar)
	$(quiet)$(AR) rcsT $@ $^

$(BUILD)/libfpa.a: $(library_objects)
$(BUILD)/libfpa-run.a: $(run_objects)
$(BUILD)/libfpa.a $(BUILD)/libfpa-run.a:
	@rm -f $@
	$(call say,ar)
	$(quiet)$(LD) -r -o $(BUILD)/obj/$(@F:.a=.o) $^
	$(quiet)$(OBJCOPY) --localize-hidden $(BUILD)/obj/$(@F:.a=.o)
	$(quiet)$(AR) rcs $@ $(BUILD)/obj/$(@F:.a=.o)

$(BUILD)/libfpa.so $(BUILD)/libfpa-run.so: %: %.$(SOVERSION)
	@ln -sf $(<F) $@

# Sanitized code lacks what the program brings.
complete := $(if $(SANITIZE),,-Wl,--no-undefined)
$(BUILD)/libfpa.so.$(SOVERSION): $(library_objects)
$(BUILD)/libfpa.so.$(SOVERSION): lua := $(LUA_SHARED)
$(BUILD)/libfpa-run.so.$(SOVERSION): $(run_objects)
$(BUILD)/libfpa.so.$(SOVERSION) $(BUILD)/libfpa-run.so.$(SOVERSION):
	$(call say,link)
	$(quiet)$(link) -shared -Wl,-soname,$(@F) $(complete) -o $@ $^ $(lua) $(SHARED_LIBS)

$(BUILD)/fpac: $(BUILD)/obj/command/main.o $(call objects,$(openmp_sources)) $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)

$(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(BUILD)/libfpa.a
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/examples/bundle $(BUILD)/examples/gradient_descent: $(BUILD)/examples/%: $(BUILD)/obj/examples/%.o $(BUILD)/libfpa-run.a
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(MD_PROGRAM) $(TOM_PROGRAM) $(LIBS)
$(BUILD)/obj/examples/%.o: cppflags += -Iruntime/api
# Has the example in it.
$(BUILD)/obj/tests/test_cuda_serve.o: cppflags += -Iruntime/api

# An archive: a program is linked with the helpers that it calls, and in a fifth of the time.
$(BUILD)/helpers.a: $(helper_objects)
	@rm -f $@
	$(call say,ar)
	$(quiet)$(AR) rcsT $@ $^

# The linker that takes half the time, where it is; the programs are run once or twice.
test_linker := $(if $(SANITIZE)$(COVERAGE),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
$(BUILD)/tests/test_%: $(BUILD)/obj/tests/test_%.o $(call objects,$(openmp_sources)) $(BUILD)/helpers.a $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) $(test_linker) -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lcmocka $(PROGRAM_LIBS)

$(BUILD)/tests/test_python: tests/python/test_python.sh
	@mkdir -p $(@D)
	@install -m 755 $< $@

# Running

# One compiler more than there are cores, so that none is idle while one waits for a file, where the caller did not say how many.
at_once = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell echo $$(($$(nproc) + 1))))

demo:
	@tools/install-deps.sh
	@$(MAKE) --no-print-directory $(at_once) $(BUILD)/fpac $(BUILD)/examples/recall
	@$(MAKE) --no-print-directory demo-run

demo-run:
	@tools/demo.sh $(BUILD)

test:
	@tools/install-deps.sh --test
	@$(MAKE) --no-print-directory $(at_once) check

test-all:
	@FPA_TEST_ALL=1 $(MAKE) --no-print-directory test

# Those that take shares (tests/share.h) run in SHARES of them where all is asked for: each is passed, and TEST_RESUME=yes knows
# it, for itself. ONLY="cuda_faults:2/8 emit": these alone, of the first the second share.
shared_tests := $(patsubst %,$(BUILD)/tests/test_%,cuda_faults cuda_faults_backward cuda_compile cuda_compile_backward cuda_compile_hopper \
                cuda_emulated cuda_emulated_backward cuda_emulated_fused passes)
SHARES       ?= 8
share_list    = $(foreach share,$(shell seq $(SHARES)),$(1):$(share)/$(SHARES))
with_shares   = $(foreach program,$(1),$(if $(filter $(shared_tests),$(program)),$(call share_list,$(program)),$(program)))
wanted_tests := $(if $(ONLY),$(patsubst %,$(BUILD)/tests/test_%,$(ONLY)),$(python_tests) $(test_programs))
wanted_programs := $(sort $(foreach test,$(wanted_tests),$(firstword $(subst :, ,$(test)))))

check: all $(wanted_programs)
	@FPAC=$(BUILD)/fpac tools/run-tests.sh $(BUILD) $(if $(filter-out 0,$(FPA_TEST_ALL)),$(call with_shares,$(wanted_tests)),$(wanted_tests))

# What needs a GPU; it fails where there is none. The parity cases run in each storage type. For a
# machine that has a GPU but cannot build: make gpu-pack here, see CONTRIBUTING.md.
without_gpu := $(addprefix $(BUILD)/tests/test_cuda_,emulated% faults% compile% cost sources work)
gpu_tests := $(filter-out $(without_gpu),$(filter $(BUILD)/tests/test_cuda%,$(test_programs))) \
             $(addprefix $(BUILD)/tests/,test_shipped test_parity)
gpu-test: $(BUILD)/fpac $(gpu_tests)
	@FPAC=$(BUILD)/fpac tools/gpu-test.sh $(BUILD) $(gpu_tests)

gpu-pack: all $(gpu_tests) $(BUILD)/bench_cuda_open $(BUILD)/bench_draft $(BUILD)/bench_sequences $(BUILD)/wheel/libfpa.so
	@tools/gpu-pack.sh $(BUILD) $(gpu_tests) $(example_programs) $(BUILD)/bench_cuda_open $(BUILD)/bench_draft $(BUILD)/bench_sequences

# Packages that fpac is measured beside, for such a machine: they go with what is packed.
peer-wheels:
	@PYTHON=$(PYTHON) tools/peer-wheels.sh $(BUILD)

# With torch from PyPI, in build/torch; skipped, and said so, where that cannot be had.
torch-test: $(BUILD)/fpac $(BUILD)/libfpa.so
	@PYTHON=$(PYTHON) tools/torch-test.sh $(BUILD)

# Programs take several times as long.
asan ubsan: export TEST_SECONDS ?= 7200
# gcc 13 lays what an AVX-512 kernel aligns to 64 bytes at 32 when the sanitizer has the stack's variables on a heap of its own.
asan: export ASAN_OPTIONS ?= detect_stack_use_after_return=0
asan:
	@$(MAKE) --no-print-directory BUILD=build/asan SANITIZE=address check

ubsan:
	@$(MAKE) --no-print-directory BUILD=build/ubsan SANITIZE=undefined check

# The programs that have threads, fork, or share files with others, under GCC's thread sanitizer. It would refuse a
# forked child that starts threads; what it reports though it is none is in the file of suppressions.
tsan_tests := $(addprefix $(BUILD)/tests/test_,threads open open_once fork parallel cache bundle fpa backward layer \
                locale process trust reference verify driver driver_modules)
tsan:
	@$(MAKE) --no-print-directory BUILD=build/tsan SANITIZE=thread tsan-run
tsan-run: export TSAN_OPTIONS := die_after_fork=0 halt_on_error=1 \
                                 suppressions='$(CURDIR)/tests/threads/suppressions' $(TSAN_OPTIONS)
tsan-run: all $(tsan_tests)
	@FPAC=$(BUILD)/fpac tools/run-tests.sh $(BUILD) $(tsan_tests)

# A few programs under the sanitizers of addresses and of undefined behaviour, for every change: readers, the generator, the cache, a kernel
# that is opened, verified and called.
smoke_tests := $(addprefix $(BUILD)/tests/test_,spec_mistakes head_text npy bundle cache simplify plan_outer plan_outer_rows fpa)
# Of subcommands and of tests' helpers there are those alone that these programs, and the fuzzers, are linked with.
smoke_sources := command_sources='$(addprefix command/,bundle.c bundle_entry.c)' \
                 helper_sources='$(addprefix tests/,example_head.c planned.c random_head.c random_lift.c)'
smoke:
	@$(MAKE) --no-print-directory $(at_once) BUILD=build/fuzz SANITIZE=address,undefined $(smoke_sources) smoke-run
smoke-run: $(smoke_tests)
	@tools/run-tests.sh $(BUILD) $(smoke_tests)

# Random and mutated input against the readers, under the same sanitizers. FUZZ_SECONDS each.
FUZZ_SECONDS ?= 60
fuzz:
	@$(MAKE) --no-print-directory $(at_once) BUILD=build/fuzz SANITIZE=address,undefined $(smoke_sources) fuzz-run
fuzz-run: $(fuzz_programs)
	@set -e; for program in $^; do $$program $(FUZZ_SECONDS) specs tests/parity generated; done

$(BUILD)/tests/fuzz_%: $(BUILD)/obj/tests/fuzz_%.o $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)

# Attacks for TORTURE_SECONDS; SEED=N plays the cases of that seed again, ONLY=KIND one kind. The fuzzers run under the
# address sanitizer and that of undefined behaviour.
TORTURE_SECONDS ?= 600
torture: $(BUILD)/fpac $(BUILD)/torture
	@$(MAKE) --no-print-directory $(at_once) BUILD=build/fuzz SANITIZE=address,undefined $(smoke_sources) torture-fuzzers
	@TORTURE_FUZZERS=build/fuzz tools/torture.sh $(BUILD) $(TORTURE_SECONDS) $(or $(SEED),0) $(ONLY)
torture-fuzzers: $(fuzz_programs)

torture_sources := $(sort $(wildcard tests/torture/*.c))
$(BUILD)/torture: $(call objects,$(torture_sources) tests/random_head.c tests/random_lift.c tests/comma_locale.c) $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)

# make bench RESULTS=FILE keeps the table. BENCH: a target and parts, as bench/bench_c.c
# tells them; the second run holds OpenBLAS and the kernels to AVX2.
bench: $(BUILD)/bench_c $(BUILD)/fpac
	@{ $< $(BENCH) && OPENBLAS_CORETYPE=Haswell $< c:avx2 heads && tools/compile-times.sh $(BUILD)/fpac; } \
		$(if $(RESULTS),| tee $(RESULTS))

$(BUILD)/bench_c: $(BUILD)/obj/bench/bench_c.o $(BUILD)/obj/bench/measure_c.o $(BUILD)/libfpa.a
	$(call say,link)
	$(quiet)$(link) -fopenmp -o $@ $^ -lopenblas $(PROGRAM_LIBS)
# make gpu-bench RESULTS=FILE: the CUDA kernels, on the GPU that is here.
gpu-bench: $(BUILD)/fpac $(BUILD)/bench_cuda_open
	@tools/gpu-bench.sh $(BUILD) $(if $(RESULTS),| tee $(RESULTS))
# make gpu-table ONLY=decode,open OUT=DIR: beside the peers that are installed, with pictures.
gpu-table: $(BUILD)/fpac $(BUILD)/bench_cuda_open
	@tools/gpu-table.sh $(BUILD) $(if $(ONLY),--only $(ONLY)) $(if $(OUT),--out $(OUT))

# make results OUT=DIR ONLY=cpu,table COMMIT=NAME OLD=BUILD: what the pages quote, in one folder. Where OpenBLAS is not
# installed the part cpu says so.
results_parts = $(if $(ONLY),$(subst $(comma), ,$(ONLY)),cpu open suite)
results: $(BUILD)/fpac $(if $(filter open,$(results_parts)),$(BUILD)/bench_cuda_open) \
         $(if $(filter suite,$(results_parts)),$(gpu_tests))
	@$(if $(OUT),,echo "make results OUT=DIR: into which folder?" >&2; exit 2)
	@$(if $(filter cpu,$(results_parts)),$(MAKE) --no-print-directory $(BUILD)/bench_c || true)
	@tools/results.sh $(BUILD) $(OUT) $(if $(ONLY),--only $(ONLY)) $(if $(COMMIT),--commit "$(COMMIT)") \
		$(if $(OLD),--old $(OLD)) $(if $(TARGET),--target $(TARGET))

$(BUILD)/bench_cuda_open: $(BUILD)/obj/bench/bench_cuda_open.o $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/bench_draft: $(BUILD)/obj/bench/bench_draft.o $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/bench_sequences: $(BUILD)/obj/bench/bench_sequences.o $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)

# What bench/predict.py asks for the model's part, and what measures the figures of a row of machine/cpu.c.
$(BUILD)/predict_c: $(BUILD)/obj/bench/predict_c.o $(BUILD)/internal.a
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)
$(BUILD)/machine_cpu: bench/machine_cpu.c
	$(call say,cc)
	$(quiet)$(CC) -O2 -march=native -fopenmp -o $@ $< -lm

# Experiments that anyone can repeat, into docs/experiments (its README tells of each): SVG and table.
experiments: $(experiment_programs)
	$(BUILD)/experiments/recall experiments/recall.lua docs/experiments
	$(BUILD)/experiments/crossover experiments/crossover.lua docs/experiments
	$(BUILD)/experiments/variance docs/experiments
	$(BUILD)/experiments/fourier experiments/fourier.lua docs/experiments

# Small models that learn, with torch as make torch-test has it. TRAIN: tasks and options of examples/train/train.py.
TRAIN ?= recall text
train: $(BUILD)/fpac $(BUILD)/libfpa.so
	@python=$$(PYTHON=$(PYTHON) tools/torch-env.sh $(BUILD)) && \
		PYTHONPATH=python FPAC_LIBRARY=$(BUILD)/libfpa.so $$python examples/train/train.py --folder docs/experiments $(TRAIN)

$(BUILD)/experiments/%: $(BUILD)/obj/experiments/%.o $(call objects,$(addprefix experiments/,call.c heads.c output.c)) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) -o $@ $^ $(PROGRAM_LIBS)
# The nearest of many codes is what counting recall costs.
$(BUILD)/obj/experiments/recall.o: speed := -O3 -ffast-math
$(BUILD)/tests/test_experiments: | $(experiment_programs)

bench_c_objects := $(BUILD)/obj/bench/bench_c.o $(BUILD)/obj/bench/measure_c.o
$(bench_c_objects): cppflags += -Iruntime/api
$(bench_c_objects): cflags += -fopenmp
$(bench_c_objects): | $(BUILD)/openblas
$(BUILD)/openblas:
	@tools/install-deps.sh --check libopenblas-dev
	@touch $@

# make gallery OUT=DIR: a page of every head of specs/ and specs/models/, and an index. GALLERY: options of fpac report, as --verify.
gallery: $(BUILD)/fpac
	@$(if $(OUT),,echo "make gallery OUT=DIR: into which folder?" >&2; exit 2)
	@$< report $(specs_of_heads) $(specs_of_models) -o $(OUT) $(GALLERY)

generated: $(BUILD)/fpac
	@tools/generated.sh $(BUILD)/fpac generated/exemplars

# Links, commands, options, targets and file names in the documents; tutorials' commands are run.
docs-check: $(BUILD)/fpac $(BUILD)/libfpa-run.a
	@tools/docs-check.sh $<

# What clang-tidy reads, a process a file. Its findings are errors; .clang-tidy says which it looks for.
tidy_sources := $(library_sources) $(command_sources) $(sort $(wildcard examples/*.c examples/embed/*.c experiments/*.c bench/*.c))
tidy: $(BUILD)/embedded.c
	@tools/install-deps.sh --check clang-tidy libopenblas-dev
	@printf '%s\n' $(tidy_sources) | xargs -P $$(nproc) -I{} tools/tidy.sh {} -std=gnu11 $(cppflags) -Iruntime/api
	@echo "clang-tidy: $(words $(tidy_sources)) files"

formatted := $(sort $(shell find base head machine abi gen runtime command tools tests examples experiments bench -name "*.[ch]"))
format:
	clang-format -i $(formatted)

format-check:
	@tools/install-deps.sh --check clang-format
	@clang-format --dry-run -Werror $(formatted)
	@echo "clang-format: $(words $(formatted)) files"

# Lines that the tests of make test run, a folder and a file a line.
coverage:
	@$(MAKE) --no-print-directory BUILD=build/coverage COVERAGE=1 CFLAGS="-O1 -g" check
	@tools/coverage.sh build/coverage

# Installing: docs/install.md. Every file that install writes is below one of these folders.

PREFIX        ?= /usr/local
BINDIR        ?= $(PREFIX)/bin
LIBDIR        ?= $(PREFIX)/lib
INCLUDEDIR    ?= $(PREFIX)/include
DATADIR       ?= $(PREFIX)/share
MANDIR        ?= $(DATADIR)/man
DOCDIR        ?= $(DATADIR)/doc/fpac
COMPLETIONDIR ?= $(DATADIR)/bash-completion/completions

# A program of its own, with build files of its own: make install-check builds it.
embed_example     := README.md CMakeLists.txt Makefile engine.c engine.cpp make_weights.c model_file.h
installed_headers := runtime/api/fpa.h base/fpa_error.h
specs_of_heads    := $(sort $(wildcard specs/*.lua))
specs_of_models   := $(sort $(wildcard specs/models/*.lua))

install: all $(BUILD)/fpac.1
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(INCLUDEDIR) $(LIBDIR)/pkgconfig $(MANDIR)/man1 $(COMPLETIONDIR) \
		$(DATADIR)/fpac/specs/models $(DOCDIR)/examples/embed)
	install -m 755 $(BUILD)/fpac $(DESTDIR)$(BINDIR)/
	install -m 644 $(installed_headers) $(DESTDIR)$(INCLUDEDIR)/
	install -m 644 $(patsubst %,$(BUILD)/%.a,$(libraries)) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(patsubst %,$(BUILD)/%.so.$(SOVERSION),$(libraries)) $(DESTDIR)$(LIBDIR)/
	for library in $(libraries); do \
		ln -sf $$library.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/$$library.so && \
		sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(call below_prefix,$(LIBDIR))|' \
			-e 's|@INCLUDEDIR@|$(call below_prefix,$(INCLUDEDIR))|' -e 's|@VERSION@|$(VERSION)|' \
			-e 's|@LUA@|$(LUA_SHARED)|' -e 's|@LIBS@|$(SHARED_LIBS)|' $$library.pc.in \
			>$(DESTDIR)$(LIBDIR)/pkgconfig/$${library#lib}.pc || exit 1; done
	install -m 644 $(BUILD)/fpac.1 $(DESTDIR)$(MANDIR)/man1/
	install -m 644 command/completion.bash $(DESTDIR)$(COMPLETIONDIR)/fpac
	install -m 644 $(specs_of_heads) $(DESTDIR)$(DATADIR)/fpac/specs/
	install -m 644 $(specs_of_models) specs/models/README.md $(DESTDIR)$(DATADIR)/fpac/specs/models/
	install -m 644 LICENSE CHANGELOG.md $(wildcard docs/*.md) $(DESTDIR)$(DOCDIR)/
	install -m 644 $(wildcard examples/*.*) $(DESTDIR)$(DOCDIR)/examples/
	install -m 644 $(addprefix examples/embed/,$(embed_example)) $(DESTDIR)$(DOCDIR)/examples/embed/

# A folder below the prefix is written relative to it, so that pkg-config --define-prefix can move the tree.
below_prefix = $(patsubst $(PREFIX)/%,$${prefix}/%,$(1))

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/fpac $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(installed_headers)))
	rm -f $(foreach library,$(libraries),$(addprefix $(DESTDIR)$(LIBDIR)/$(library),.a .so .so.$(SOVERSION)))
	rm -f $(patsubst lib%,$(DESTDIR)$(LIBDIR)/pkgconfig/%.pc,$(libraries))
	rm -f $(DESTDIR)$(MANDIR)/man1/fpac.1 $(DESTDIR)$(COMPLETIONDIR)/fpac
	rm -rf $(DESTDIR)$(DATADIR)/fpac $(DESTDIR)$(DOCDIR)

# The manual tells what --help tells.
$(BUILD)/fpac.1: docs/fpac.1.in tools/manual.sh $(BUILD)/fpac VERSION
	$(call say,man)
	$(quiet)tools/manual.sh $(BUILD)/fpac $(VERSION) $< >$@

# Installs into a folder of its own, moves it, builds examples against it, uninstalls.
install-check: all $(BUILD)/fpac.1
	@tools/install-check.sh $(BUILD)

# The sources of HEAD; one commit gives the same bytes everywhere.
dist:
	@tools/dist.sh $(BUILD)

# libfpa for the wheel, and for machines without Lua: it carries libmd and LibTomMath where their archives are installed, and
# finds Lua beside itself.
$(BUILD)/wheel/libfpa.so: $(library_objects) | tools/wheel-files.sh
	@mkdir -p $(@D)
	$(call say,link)
	$(quiet)$(link) -shared -s -Wl,-soname,libfpa.so.$(SOVERSION) -Wl,--no-undefined -Wl,--exclude-libs,ALL \
		-Wl,-rpath,'$$ORIGIN' -o $@ $^ $(LUA_SHARED) $(MD_PROGRAM) $(TOM_PROGRAM) $(LIBS)
	@tools/wheel-files.sh $(@D) $(filter %.a,$(MD_PROGRAM) $(TOM_PROGRAM))

# The Python package with the library, for pip: dist/fpac-VERSION-py3-none-PLATFORM.whl. PYTHON is one that has pip.
PYTHON ?= python3
wheel: $(BUILD)/wheel/libfpa.so
	@PYTHON=$(PYTHON) tools/install-deps.sh --wheel
	@PYTHON=$(PYTHON) tools/wheel.sh $(BUILD)

wheel-check: wheel
	@PYTHON=$(PYTHON) tools/wheel-check.sh

# README and tutorials in a Debian that has nothing; as root, with a network (debootstrap).
fresh-check:
	@tools/fresh-check.sh

clean:
	rm -rf build dist

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
