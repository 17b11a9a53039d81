# The front door. CMake is underneath (see CMakePresets.json). `make` and `make install` say which
# packages are missing; the other targets install what they need first, on Debian.

PREFIX ?= /usr/local
SEEDS ?= 2000
FIRST ?= 1
SECONDS ?= 60
MINUTES ?= 60
TIME ?= 3600
RUNS ?= 10
JOBS ?= $(shell nproc)
BUILD = build

MAKEFLAGS += --no-print-directory

.PHONY: all compile install check quick demo demo-ensemble bench sim sim-long model power plant upgrade mixed-long soak diskfaults fuzz real \
    history real-cutoff real-timelines hangs works-with reference screenshots dist tarball packages wheel rpm image format clean help

all: ## build/clave, build/libclave.so, build/libclave.a, build/clave.pc
	@tools/setup --check build
	@$(MAKE) compile

compile:
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLAVE_TESTS=OFF \
	    -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build $(BUILD) -j $(JOBS)

demo: ## eight processes take turns on a lock [CONNECT=host:port,...]
	@tools/setup demo
	@$(MAKE) compile
	@demo/run $(if $(CONNECT),--connect $(CONNECT))

check: ## everything CI runs
	@tools/setup test
	@tools/check

quick: ## what of it takes under a minute: build, layers, purity, sizes, format, unit tests, 200 seeds
	@tools/setup test
	@tools/check --quick

install: all ## into PREFIX (/usr/local), DESTDIR in front
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
	@[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || ldconfig # the loader finds the library

demo-ensemble: ## the same on a three-server Apache ZooKeeper, its leader killed
	@tools/setup ensemble
	@$(MAKE) compile
	@demo/run --ensemble

bench: ## beside Curator, kazoo, libzookeeper_mt, Apache's server, Redis and etcd [BENCH=--quick]
	@tools/setup bench
	@$(MAKE) compile
	@bench/run --build $(BUILD) $(BENCH)
	@bench/http --build $(BUILD) --quick --waiters 10,200 --only cycles,gets,hand-over,pages

dev:
	@tools/setup test
	@cmake -S . -B $(BUILD)/dev -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCLAVE_WERROR=ON >/dev/null
	@cmake --build $(BUILD)/dev -j $(JOBS)

sim: dev ## the simulated world [SEEDS=N FIRST=K]
	@$(BUILD)/dev/test/sim/clave_sim --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

sim-long: dev ## the same for MINUTES=60 [FIRST=K]
	@$(BUILD)/dev/test/sim/clave_sim --seeds 1000000000 --first $(FIRST) --jobs $(JOBS) \
	    --minutes $(MINUTES)

model: ## the hand-over and the hold deadline as models, every state of them
	@tools/setup test
	@test/model/run

power: dev ## power cuts: data directories as they are left, opened by clave and ZooKeeper [RUNS=10]
	@/usr/bin/python3 -B test/power/power_test.py $(BUILD)/dev/test/power/clave_power $(RUNS) 100 \
	    --writes 300 --epochs 3 --random 10 --bytes 60

mixed-long: dev ## Curator, kazoo and clave in one queue of every kind, with kills [TIME=3600]
	@test/interop/mixed $(BUILD)/dev $(TIME)

soak: dev ## kazoo, libzookeeper, Curator, Java and zkCli.sh, with restarts [TIME=3600 ON=serve|apache DISK=1]
	@test/interop/soak/run $(BUILD)/dev --seconds $(TIME) $(if $(ON),--on $(ON)) \
	    $(if $(DISK),--disk --every 20) || [ $$? = 77 ]

diskfaults: dev ## a full, failing or read-only disk, at each call of server, backup and grow; a table of the outcomes
	@FAILING_DISK=$(BUILD)/dev/test/diskfaults/failing_disk.so TMPDIR=/dev/shm /usr/bin/python3 -B \
	    test/diskfaults/diskfaults_test.py --table $(BUILD)/dev/clave
	@/usr/bin/python3 -B test/diskfaults/loop_disk_test.py --rounds 25 $(BUILD)/dev/clave || [ $$? = 77 ]

upgrade: dev ## an older version and this one in one queue, on each other's server and data [OLD=COMMIT]
	@test/upgrade/run $(BUILD)/dev $(OLD) || [ $$? = 77 ]

plant: dev ## does the simulated world find faults planted in the code?
	@test/sim/plant $(BUILD)/dev

REAL = CLAVE=$(BUILD)/dev/clave CLAVE_REAL_HOLDER=$(BUILD)/dev/test/real/real_holder test/real
SEEDED = $(if $(SEED),--seed $(SEED))

real: dev ## links cut, processes killed and stopped, in real networks [SECONDS=60 RUNS=2 SEED=N GATES=1: gates alone fail]
	@tools/setup real
	@$(REAL)/random_faults.py --seconds $(SECONDS) --runs $(if $(filter file,$(origin RUNS)),2,$(RUNS)) \
	    $(SEEDED) $(if $(GATES),--gates serve,serve ensemble) || [ $$? = 77 ]

history: dev ## the same, of all languages and two gates: operations as lines of JSON, for any checker [SECONDS=60 OUT=build/history SEED=N ON="serve ensemble", "kazoo etcd" beside]
	@tools/setup history
	@$(REAL)/random_faults.py --seconds $(SECONDS) --out $(or $(OUT),$(BUILD)/history) $(SEEDED) \
	    $(or $(ON),serve ensemble) || [ $$? = 77 ]

real-cutoff: dev ## a member of an ensemble cut off or stopped, its holders watched [RUNS=20 SEED=N]
	@tools/setup real
	@$(REAL)/cutoff.py --runs $(RUNS) $(SEEDED) || [ $$? = 77 ]

real-timelines: dev ## published double leaders, on Curator and on clave [TICKETS="604 696"]
	@tools/setup real
	@$(REAL)/timelines.py $(TICKETS) || [ $$? = 77 ]

hangs: dev ## what holds a lock is stopped or killed, or its disk stalls, in rounds with real processes [ROUNDS=200 SEED=N ONLY=N]
	@CLAVE=$(abspath $(BUILD))/dev/clave CLAVE_STANDIN_WATCHDOG=$(abspath $(BUILD))/dev/test/cmd/cmd_standin_watchdog.so \
	    /usr/bin/python3 -B test/cmd/hang_rounds.py --rounds $(or $(ROUNDS),200) $(SEEDED) $(if $(ONLY),--only $(ONLY))

works-with: dev ## other people's programs on a server: a table [NAMES="ctdb tooz"]
	@tools/setup works-with
	@npm install --silent --no-audit --no-fund --prefix $(BUILD)/dev/works-with zookeeper@7.3.0 node-zookeeper-client@1.1.3 \
	    || echo "npm could not install its modules: their rows are skipped" >&2
	@test/works-with/run $(BUILD)/dev $(NAMES)

fuzz: ## every fuzz target for SECONDS=60 [JOBS=N at once]
	@tools/setup fuzz
	@cmake -S . -B $(BUILD)/fuzz -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang \
	    -DCMAKE_C_FLAGS="-O1 -g" -DCLAVE_FUZZ=ON \
	    -DCLAVE_SANITIZE=address,undefined >/dev/null
	@JOBS=$(JOBS) test/fuzz/run $(BUILD)/fuzz $(SECONDS)

reference: ## the public headers as HTML, in build/reference
	@tools/setup reference
	@mkdir -p $(BUILD)/reference
	@doxygen docs/Doxyfile

screenshots: ## every screen of the page, in build/screenshots [ONLY="locks deadlocks", ONLY=docs for docs/images]
	@tools/setup screenshots
	@/usr/bin/python3 -B test/page/screenshots.py $(BUILD)/screenshots $(ONLY)

dist: ## the source as build/packages/clave-VERSION.tar.gz, one hash for one commit
	@tools/dist

tarball: ## the program and its libraries for any Linux with glibc 2.34, built and tried; as root [ARCH="amd64 arm64"]
	@tools/setup tarball
	@for arch in $(or $(ARCH),amd64 arm64); do \
	    tools/tarball build $$arch && tools/tarball test $$arch || exit; \
	done
	@tools/sbom tarballs

packages: dist ## these, the npm package, the Python wheel, and packages of this Debian from a clean root, with bill of materials and hashes; as root
	@tools/setup deb npm wheel
	@tools/npm-pack
	@$(MAKE) compile
	@tools/python-wheel $(BUILD)
	@tools/deb build $$(. /etc/os-release && echo $$VERSION_CODENAME)
	@tools/sbom $$(. /etc/os-release && echo $$VERSION_CODENAME)
	@$(MAKE) tarball
	@cd $(BUILD)/packages && sha256sum $$(find . -type f ! -name SHA256SUMS | sort) >SHA256SUMS && \
	    echo "in $(BUILD)/packages, with hashes in SHA256SUMS:" && sed 's#.* \./#    #' SHA256SUMS

wheel: ## the Python package as a wheel, in build/packages
	@tools/setup wheel
	@$(MAKE) compile
	@tools/python-wheel $(BUILD)

rpm: ## RPM packages, in build/packages/rpm
	@tools/setup rpm
	@$(MAKE) compile
	@tools/rpm $(BUILD)

image: ## a container image of clave serve, build/packages/clave-VERSION-image.tar; as root
	@tools/setup image
	@$(MAKE) compile
	@tools/image $(BUILD)

format: ## clang-format over the C sources
	@git ls-files -co --exclude-standard '*.c' '*.h' '*.hpp' | xargs clang-format -i

clean:
	@rm -rf $(BUILD)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
