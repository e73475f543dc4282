# dllm: local inference for masked diffusion language models.
# GNU make 4.0 or later, no configure step.  Variables can be set on the
# command line or in config.mk.
#
#   make                    build the tools into build/bin
#   make demo               build, then answer three prompts with the demo model
#   make check              run every test (SANITIZE=1: under ASan and UBSan;
#                           BATS=...: these .bats files only, or none)
#   make check-aarch64      build for AArch64 too and run the unit tests and
#                           tests/aarch64.bats under qemu
#   make install, uninstall PREFIX, DESTDIR, BINDIR, MANDIR, DATADIR
#   make clean
#
# V=1 shows whole commands.  To cross-compile set CC, and B to another folder:
# make CC=aarch64-linux-gnu-gcc B=build/aarch64

-include config.mk

VERSION := 0.1.0

PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
MANDIR  ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share/dllm
INSTALL ?= install
CFLAGS  ?= -O2 -g

ifeq ($(SANITIZE),1)
B        := build/sanitize
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
            -fno-omit-frame-pointer
else
B        := build
SANFLAGS :=
endif

# A short line for each command, none with -s.
ifeq ($(V)$(findstring s,$(firstword -$(MAKEFLAGS))),)
note = @printf '  %-4s %s\n' '$(1)' '$@';
endif

CSTD := -std=c11 -D_XOPEN_SOURCE=700 -ffp-contract=off
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wstrict-prototypes \
        -Wmissing-prototypes -Wwrite-strings \
        -Wno-missing-field-initializers
ALLCFLAGS  = $(CSTD) $(WARN) -DDLLM_VERSION='"$(VERSION)"' -Ilib -Ikernels \
             -Itools $(CPPFLAGS) $(CFLAGS) $(SANFLAGS)
ALLLDFLAGS = $(SANFLAGS) $(LDFLAGS)

TOOLS := $(patsubst tools/%.c,%,$(wildcard tools/*.c))
# Programs in tests/ that help tests and are none themselves.
HELPERS := fake-forward tiny-model generations ref64
PROGS := $(patsubst tests/%.c,%,$(wildcard tests/*.c))
UNITS := $(filter-out $(HELPERS),$(PROGS))
BATS  ?= $(wildcard tests/*.bats)
BENCH := $(patsubst bench/%.c,%,$(wildcard bench/*.c))
LIB   := $(patsubst %.c,$(B)/%.o,$(wildcard lib/*.c kernels/*.c))

# Kernels are worth optimising harder.  Those for one group of instructions
# have its name at the end of theirs and hold nothing but kernels; those of
# other architectures are left out.  Sanitizers make unrolled loops large: a
# build of minutes without -O1.
KOPT := $(if $(filter 1,$(SANITIZE)),-O1,-O3)
$(B)/kernels/%.o: ISA := $(KOPT)
MACHINE  := $(shell $(CC) -dumpmachine)
X86_KERN := $(filter %_avx2.o %_avxvnni.o %_avx512vnni.o,$(LIB))
ARM_KERN := $(filter %_neon.o %_dotprod.o %_i8mm.o,$(LIB))
ifneq ($(filter x86_64-%,$(MACHINE)),)
LIB := $(filter-out $(ARM_KERN),$(LIB))
X86_AVX2 := $(KOPT) -mavx2 -mfma -mf16c
X86_512  := $(X86_AVX2) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni
$(B)/kernels/kern.o: ISA := $(KOPT) -DKERN_X86
$(B)/kernels/%_avx2.o: ISA := $(X86_AVX2)
$(B)/kernels/%_avxvnni.o: ISA := $(X86_AVX2) -mavxvnni
$(B)/kernels/%_avx512vnni.o: ISA := $(X86_512)
# The avxvnni product once more in EVEX encoding, for tests.
LIB += $(B)/kernels/matmul_avxvnni.evex.o
$(B)/kernels/matmul_avxvnni.evex.o: ISA := $(X86_512) -DKERN_EVEX
$(B)/%.evex.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call note,CC)$(CC) $(ALLCFLAGS) $(ISA) -MMD -MP -c -o $@ $<
else ifneq ($(filter aarch64-%,$(MACHINE)),)
LIB := $(filter-out $(X86_KERN),$(LIB))
$(B)/kernels/kern.o: ISA := $(KOPT) -DKERN_ARM
$(B)/kernels/%_dotprod.o: ISA := $(KOPT) -march=armv8.2-a+dotprod
$(B)/kernels/%_i8mm.o: ISA := $(KOPT) -march=armv8.2-a+i8mm
else
LIB := $(filter-out $(X86_KERN) $(ARM_KERN),$(LIB))
endif
BINS  := $(TOOLS:%=$(B)/bin/%)

all: $(BINS) $(B)/libdllm.a $(B)/bin/dllm

$(BINS): $(B)/bin/%: $(B)/tools/%.o $(B)/libdllm.a
	@mkdir -p $(@D)
	$(call note,LINK)$(CC) $(ALLLDFLAGS) -o $@ $^ -lm -lpthread $(LDLIBS)

$(B)/tests/%: $(B)/tests/%.o $(B)/libdllm.a
	$(call note,LINK)$(CC) $(ALLLDFLAGS) -o $@ $^ -lm -lpthread $(LDLIBS)

# Counts allocations.
$(B)/tests/forward_alloc: LDLIBS += -Wl,--wrap=malloc,--wrap=calloc \
    -Wl,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign

$(B)/bench/%.o: ISA := -DDLLM_CFLAGS='"$(CFLAGS)"'
$(B)/bench/%: $(B)/bench/%.o $(B)/libdllm.a
	$(call note,LINK)$(CC) $(ALLLDFLAGS) -o $@ $^ -lm -lpthread $(LDLIBS)

$(B)/bin/dllm: tools/dllm
	@mkdir -p $(@D)
	$(call note,COPY)cp tools/dllm $@ && chmod +x $@

$(B)/libdllm.a: $(LIB)
	$(call note,AR)rm -f $@ && $(AR) rcs $@ $^

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call note,CC)$(CC) $(ALLCFLAGS) $(ISA) -MMD -MP -c -o $@ $<

# Rewritten only when a flag changes, so that a change rebuilds everything.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(subst ','\'',$(ALLCFLAGS) $(ALLLDFLAGS))' >$@.new
	@if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi

tests: all bench $(PROGS:%=$(B)/tests/%)

# Programs that measure; make check builds them and runs none.
bench: $(BENCH:%=$(B)/bench/%)

check: tests
	@tests/need bats shellcheck mandoc parallel
	@BUILD=$(B) tests/run $(UNITS:%=$(B)/tests/%) $(BATS)

# Linked statically, so that qemu needs no libraries.
ARM := $(B)/aarch64
check-aarch64: tests
	@tests/need bats qemu-aarch64:qemu-user \
	    aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu,libc6-dev-arm64-cross
	@$(MAKE) B=$(ARM) SANITIZE= CC=aarch64-linux-gnu-gcc \
	    AR=aarch64-linux-gnu-ar CFLAGS='$(CFLAGS) -Werror' LDFLAGS=-static tests
	@BUILD=$(B) AARCH64=$(ARM) EMULATOR='qemu-aarch64 -cpu max' \
	    tests/run $(UNITS:%=$(ARM)/tests/%) tests/aarch64.bats

demo: all
	@for q in 'What is 37 + 48?' 'What is the capital of Norway?' \
	    'Tell me a story about a fox.'; do \
		echo "> $$q"; \
		$(B)/bin/dllm run --max-tokens 64 --prompt "$$q" || exit 1; \
	done

install: all
	$(INSTALL) -d "$(DESTDIR)$(BINDIR)" "$(DESTDIR)$(DATADIR)/models"
	$(INSTALL) -m 755 $(BINS) $(B)/bin/dllm "$(DESTDIR)$(BINDIR)"
	$(INSTALL) -m 644 lib/models/* "$(DESTDIR)$(DATADIR)/models"
	@for n in 1 5 7; do \
		$(INSTALL) -d "$(DESTDIR)$(MANDIR)/man$$n" && \
		$(INSTALL) -m 644 man/*.$$n "$(DESTDIR)$(MANDIR)/man$$n" || \
			exit 1; \
	done

# Removes what install put there and nothing else.
uninstall:
	@for tool in $(TOOLS) dllm; do \
		rm -f "$(DESTDIR)$(BINDIR)/$$tool"; \
	done
	@for model in $(notdir $(wildcard lib/models/*)); do \
		rm -f "$(DESTDIR)$(DATADIR)/models/$$model"; \
	done
	@for page in $(notdir $(wildcard man/*)); do \
		rm -f "$(DESTDIR)$(MANDIR)/man$${page##*.}/$$page"; \
	done
	@rmdir "$(DESTDIR)$(DATADIR)/models" "$(DESTDIR)$(DATADIR)" \
	    2>/dev/null || :

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: all bench check check-aarch64 demo install uninstall tests clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
