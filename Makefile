# The front door. CMake is underneath (see CMakePresets.json); everything here also
# installs what it needs first, on Debian.

PREFIX ?= /usr/local
SEEDS ?= 2000
FIRST ?= 1
SECONDS ?= 60
JOBS ?= $(shell nproc)
BUILD = build

MAKEFLAGS += --no-print-directory

.PHONY: all install check demo demo-ensemble bench sim sim-long plant fuzz format clean help

all: ## build/clave, build/libclave.so, build/libclave.a, build/clave.pc
	@tools/setup build
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLAVE_TESTS=OFF \
	    -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)

demo: all ## eight processes take turns on a lock [CONNECT=host:port,...]
	@command -v python3 >/dev/null || tools/setup demo
	@demo/run $(if $(CONNECT),--connect $(CONNECT))

check: ## everything CI runs
	@tools/setup test
	@tools/check

install: all ## into PREFIX (/usr/local), DESTDIR in front
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig # the loader finds the library

demo-ensemble: all ## the same on a three-server Apache ZooKeeper, its leader killed
	@tools/setup ensemble
	@demo/run --ensemble

bench: all ## beside Curator, kazoo, libzookeeper_mt, Apache's server and Redis [BENCH=--quick]
	@tools/setup bench
	@bench/run --build $(BUILD) $(BENCH)

dev:
	@tools/setup test
	@cmake -S . -B $(BUILD)/dev -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLAVE_WERROR=ON >/dev/null
	@cmake --build $(BUILD)/dev -j $(JOBS)

sim: dev ## the simulated world [SEEDS=N FIRST=K]
	@$(BUILD)/dev/test/sim/clave_sim --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

plant: dev ## does the simulated world find faults planted in the code?
	@test/sim/plant $(BUILD)/dev

fuzz: ## every fuzz target for SECONDS=60
	@tools/setup fuzz
	@cmake -S . -B $(BUILD)/fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
	    -DCMAKE_C_FLAGS="-O1 -g" -DCLAVE_FUZZ=ON \
	    -DCLAVE_SANITIZE=address,undefined >/dev/null
	@cmake --build $(BUILD)/fuzz -j $(JOBS)
	@test/fuzz/run $(BUILD)/fuzz $(SECONDS)

format: ## clang-format over the C sources
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
