# The targets that a person remembers:
#   make run    build everything, start the server and watch a first run
#   make test   in minutes: Go on a real Postgres, the page, a first run, and one journey in a browser
#   make check-ci   what takes longer and needs no rarely used tool; CI runs lint, test and this
#   make check  everything: all with the race detector, 1 000 seeds, SDKs in four languages, the API against its
#               document, PromQL, S3, OIDC, ACME, the chart; needs a network
#   make lint   the linters, natively and for the Wasm guests, and those of the page
#   make slt    the test files of statements and continuous queries, which make test runs too
#   make build  bin/loadstone with the page and the plugins inside
#   make api    docs/openapi.json, the page's types, permissions and metrics of the documents, after the API has changed
#   make acceptance   the checklist of runs on several nodes, line by line; PROVE=1 breaks each once
#   make attacks      what must not be possible, tried on two servers (in make check); ONLY=EXPRESSION chooses by name
#   make release  dist/release: the program for two architectures, what it is made of, checksums, a signature (RELEASE_KEY)
#   make check-arm64  the program for arm64, run by qemu; needs Debian and a network
#   make image-test   the container image, built and run; needs root on Debian and a network
#   make audit  known weaknesses in modules and packages; needs a network
#   make docs   the site of docs/ in dist/site, with search; a dead link fails; needs python3 and a network, once
#   make failover-demo  a primary and a standby on this machine, a load on both, and a failover; LOSE=1 loses writes
#   make bench  the figures of docs/performance.md (long; wants an idle machine); make bench-nodes those of nodes, bench-refresh those of derived tables
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Steps that install share apt and npm, and the tests measure: one after the other, also with -j.
.NOTPARALLEL:

# .cache holds what make installs for itself; nothing of it is committed.
CACHE := .cache
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)
GOTESTSUM_VERSION := v1.13.0
GOTESTSUM := $(CACHE)/bin/gotestsum-$(GOTESTSUM_VERSION)

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The compiler collects less often, and takes a fifth less of a processor for it, up to a gigabyte. What is compiled is
# the same, and so are the keys of the cache. Not GOFLAGS, which tests would hand on to what they start.
LAZY := -toolexec 'env GOGC=400 GOMEMLIMIT=1GiB'
# The same static binary with and without a C compiler. The version comes from
# VERSION: go need not ask git, which refuses a checkout of somebody else.
GOBUILD := CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath $(LAZY)
LDFLAGS := -s -w -X github.com/loadstone-db/loadstone/cli.version=$(VERSION)

GUESTS := workloads/mix workloads/sql workloads/replay workloads/ycsb workloads/tpcb workloads/tpcc adapters/postgres adapters/snowflake_standard adapters/snowflake_hybrid adapters/snowflake_interactive adapters/snowflake_postgres
# The guests as they are built; the program embeds them compressed, from dist.
BUILT := plugins/bundled/built
WASM := $(foreach g,$(GUESTS),$(BUILT)/$(notdir $(g)).wasm)
MANIFESTS := plugins/bundled/dist/manifests.json
SDK_SOURCES := $(shell find sdk -name '*.go' -not -name '*_test.go' 2>/dev/null)
# The libraries that adapters share.
ADAPTER_SOURCES := $(shell find plugins/adapters/pgtable plugins/adapters/snowflake -name '*.go' -not -name '*_test.go' 2>/dev/null)

# Where `make run` keeps its data, and what it runs first.
DATA ?= $(CURDIR)/.loadstone
FIRST_RUN ?= examples/first-run.yaml

.PHONY: help run failover-demo build plugins ui examples slt fmt clean api docs lint acceptance attacks release check-release audit soak bench bench-nodes bench-refresh \
	test test-go test-ui test-first-run test-smoke test-snowflake-emulator test-s3 s3-server image-test \
	check check-ci check-ci-go check-size check-journey check-matrix check-race check-seeds check-alone check-tutorial check-examples \
	check-pages check-api check-proto check-promql check-witnesses check-why check-search check-acme check-oidc check-nosnowflake check-chart check-ecs \
	check-observability check-arm64 check-bench need-toolchain need-postgres need-test need-examples

help:
	@sed -n 's/^#   make/make/p' Makefile

run: need-postgres build
	@bin/loadstone serve --data-dir "$(DATA)" --run $(FIRST_RUN)

build: need-toolchain bin/loadstone

failover-demo: need-postgres build
	@deploy/failover-demo.sh bin/loadstone

plugins: need-toolchain $(MANIFESTS)

ui: need-toolchain ui/dist/index.html

bin/loadstone: $(MANIFESTS) ui/dist/index.html $(shell find . -name '*.go' -not -name '*_test.go' -not -path './.cache/*' -not -path './ui/node_modules/*' 2>/dev/null) $(shell find sql engine snowsim -name '*.sql' -o -name '*.json' 2>/dev/null) $(shell find plugins/author/templates sdk/c sdk/rust sdk/assemblyscript/assembly -type f 2>/dev/null) deploy/modfile.sh go.sum | need-toolchain
	@echo "Building bin/loadstone; the first time this takes a few minutes."
	@mkdir -p bin
	@modfile=$$(deploy/modfile.sh); $(GOBUILD) -modfile "$$modfile" -tags grpcnotrace -ldflags '$(LDFLAGS)' -o $@ .

# A guest is a reactor module: a library that the host calls.
define guest
$(BUILT)/$(notdir $(1)).wasm: $(shell find plugins/$(1) -name '*.go' -not -name '*_test.go') $(SDK_SOURCES) $(if $(filter adapters/%,$(1)),$(ADAPTER_SOURCES)) go.sum | need-toolchain
	@echo "Building the plugin $(notdir $(1))."
	@mkdir -p $(BUILT)
	@GOOS=wasip1 GOARCH=wasm GOFLAGS= $$(GO) build -buildvcs=false -buildmode=c-shared -trimpath $$(LAZY) -ldflags='-s -w' -o $$@ ./plugins/$(1)
endef
$(foreach g,$(GUESTS),$(eval $(call guest,$(g))))

# The same generator in every language that has an SDK; golden batches compare them.
EXAMPLE := examples/plugins/orders
examples: $(foreach l,go c assemblyscript rust,$(EXAMPLE)/dist/$(l).wasm)

$(EXAMPLE)/dist/go.wasm: $(EXAMPLE)/go/main.go $(SDK_SOURCES) go.sum | need-toolchain
	@echo "Building the example plugin in Go."
	@GOOS=wasip1 GOARCH=wasm GOFLAGS= $(GO) build -buildvcs=false -buildmode=c-shared -trimpath $(LAZY) -ldflags='-s -w' -o $@ ./$(EXAMPLE)/go

$(EXAMPLE)/dist/c.wasm: $(EXAMPLE)/c/orders.c sdk/c/loadstone.h | need-examples
	@echo "Building the example plugin in C."
	@mkdir -p $(dir $@)
	@clang --target=wasm32 -O2 -nostdlib -Wall -Wextra -Werror -Wl,--no-entry,--stack-first,--strip-all -Isdk/c -o $@ $<

sdk/assemblyscript/node_modules/.package-lock.json: sdk/assemblyscript/package-lock.json | need-toolchain
	@echo "Installing the AssemblyScript compiler."
	@cd sdk/assemblyscript && npm ci --no-fund --no-audit --loglevel=error --no-update-notifier
	@touch $@

$(EXAMPLE)/dist/assemblyscript.wasm: $(EXAMPLE)/assemblyscript/orders.ts $(wildcard sdk/assemblyscript/assembly/*.ts) sdk/assemblyscript/node_modules/.package-lock.json
	@echo "Building the example plugin in AssemblyScript."
	@mkdir -p $(dir $@)
	@sdk/assemblyscript/node_modules/.bin/asc $< -o $@ -O3 --runtime minimal --exportStart _initialize --use abort=sdk/assemblyscript/assembly/abi/abort

# Whichever Rust knows the target: the first on the path, or Debian's.
$(EXAMPLE)/dist/rust.wasm: $(shell find sdk/rust $(EXAMPLE)/rust -name '*.rs' -o -name 'Cargo.toml' -o -path '*/.cargo/config.toml') | need-examples
	@echo "Building the example plugin in Rust."
	@mkdir -p $(dir $@)
	@[ -d "$$(rustc --print sysroot 2>/dev/null)/lib/rustlib/wasm32-unknown-unknown" ] || export PATH="/usr/bin:$$PATH"; \
	cd $(EXAMPLE)/rust && CARGO_TARGET_DIR="$(CURDIR)/$(CACHE)/rust" cargo build --quiet --release --offline
	@cp $(CACHE)/rust/wasm32-unknown-unknown/release/orders.wasm $@

# What each bundled plugin is, so that a server need not compile them all to know, and the
# plugins compressed. Whatever else lay there is removed: all of the folder is embedded.
$(MANIFESTS): $(WASM) $(wildcard plugins/host/*.go plugins/manifest/*.go plugins/wasm/*.go plugins/bundled/bundled.go plugins/bundled/describe/*.go engine/plugin/*.go) | need-toolchain
	@echo "Describing and compressing the bundled plugins."
	@rm -f plugins/bundled/dist/*.wasm plugins/bundled/dist/*.zst plugins/bundled/snowflake/*.zst
	@CGO_ENABLED=0 $(GO) run -buildvcs=false -trimpath $(LAZY) ./plugins/bundled/describe plugins/bundled/dist $(WASM)

UI_SOURCES := $(shell find ui/src ui/public ui/index.html ui/vite.config.ts ui/vite.report.config.ts ui/tsconfig.json -type f 2>/dev/null)

ui/node_modules/.package-lock.json: ui/package-lock.json | need-toolchain
	@echo "Installing the npm packages of the page."
	@cd ui && npm ci --no-fund --no-audit --loglevel=error --no-update-notifier
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json $(UI_SOURCES)
	@echo "Building the page."
	@cd ui && npm run --silent build -- --logLevel warn
	@touch $@ ui/dist/.gitkeep

# In minutes, of which docs/decisions/0034-tests-in-minutes tells. A test that fails once is a fault: nothing is run again.
test: need-test build test-go test-ui test-first-run test-smoke
	@echo "All tests passed."

# The packages with real concurrency: goroutines that share what they change. They are tested with the race detector in
# make test, and without it nowhere; make check gives all packages to the detector. CALM are those of the same wings that
# have neither a goroutine nor a lock.
CALM := ./engine/cluster/assignment ./engine/cluster/lease ./engine/cluster/placement ./engine/cluster/version \
	./engine/stream/catalog ./engine/stream/exec/aggregate ./engine/stream/exec/column \
	./engine/stream/exec/expression ./engine/stream/exec/flow ./engine/stream/plan ./engine/stream/slt \
	./engine/stream/sql ./engine/stream/watch
RACING := ./engine/worker ./engine/worker/load/... ./engine/cluster/... ./engine/run ./engine/run/enrichment \
	./engine/run/finalize ./engine/run/matrix ./engine/run/query ./engine/run/recovery ./engine/run/writer \
	./engine/stream/... ./engine/outbound/... ./server/live
# Whose tests need the examples in C, Rust and AssemblyScript, or their compilers, which make check alone has.
EXAMPLES_TESTED := ./$(EXAMPLE)/go
RACED = $(filter-out $(shell $(GO) list $(CALM)),$(shell $(GO) list $(RACING)))
UNRACED = $(filter-out $(RACED) $(shell $(GO) list $(EXAMPLES_TESTED)),$(shell $(GO) list ./...))

# One package more at a time than there are processors: many tests wait for a clock or another process.
PACKAGES_AT_ONCE := $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
# Those that take longest are begun first, so that nobody waits for one of them alone at the end.
LONGEST := ./server ./cli ./engine/run/simtest ./plugins/bundled ./storage/derived ./storage/postgres ./storage/results
LONGEST_RACED := ./engine/run ./engine/worker/load ./engine/stream/coordinator ./engine/stream/exec

# $(call tested,PACKAGES,FLAGS) tests packages, four tests of a package at a time; make lint vets, and more strictly.
# -count=1: what another checkout of the same sources has passed is run. The last line says how many tests there were.
tested = PATH="$$(dirname "$$(command -v $(GO))"):$$PATH" deploy/scratch.sh $(GOTESTSUM) --format standard-quiet --hide-summary skipped \
	-- -vet=off -count=1 -trimpath $(LAZY) -p $(PACKAGES_AT_ONCE) -parallel 4 -timeout 12m $(2) $(1)

# What takes long looks at testing.Short, in cli through clitest.Long.
test-go: export LOADSTONE_BUILT = $(CURDIR)/bin/loadstone
test-go: build $(GOTESTSUM)
	CGO_ENABLED=0 $(call tested,$(LONGEST) $(UNRACED),-short -buildvcs=false)
	$(call tested,$(LONGEST_RACED) $(RACED),-short -race)

test-ui: ui/node_modules/.package-lock.json
	cd ui && npm test --silent

# The main job, as a newcomer does it: from the command line …
test-first-run: build ui/node_modules/.package-lock.json
	@deploy/scratch.sh deploy/first-run.sh bin/loadstone

# … and in the browser, in a minute at most; check-journey is the whole of it.
test-smoke: build ui/node_modules/.package-lock.json
	@deploy/scratch.sh deploy/journey.sh bin/loadstone smoke

slt: build
	@bin/loadstone slt 'examples/streams/*.slt'

# The Snowflake driver against an emulator that is not ours; it is fetched with pip,
# and so outside make lint test.
test-snowflake-emulator: need-toolchain need-postgres plugins
	@deploy/snowflake-emulator.sh

lint: need-toolchain $(GOLANGCI) plugins ui/node_modules/.package-lock.json
	$(GOLANGCI) run ./...
	cd bench && "$(CURDIR)/$(GOLANGCI)" run ./...
	cd deploy && "$(CURDIR)/$(GOLANGCI)" run ./acceptance ./attacks ./program
	GOOS=wasip1 GOARCH=wasm $(GOLANGCI) run ./plugins/workloads/... ./plugins/adapters/... ./sdk/...
	@deploy/deadcode.sh
	cd ui && npm run --silent lint

$(GOLANGCI):
	@mkdir -p $(dir $@)
	@echo "Installing golangci-lint $(GOLANGCI_VERSION); this takes a few minutes, once."
	@GOFLAGS= GOBIN="$(CURDIR)/$(CACHE)/install" $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(CACHE)/install/golangci-lint $@ && rmdir $(CACHE)/install

$(GOTESTSUM):
	@mkdir -p $(dir $@)
	@echo "Installing gotestsum $(GOTESTSUM_VERSION)."
	@GOFLAGS= GOBIN="$(CURDIR)/$(CACHE)/install-gotestsum" $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	@mv $(CACHE)/install-gotestsum/gotestsum $@ && rmdir $(CACHE)/install-gotestsum

# What make test leaves out, and needs no rarely used tool: the tests that take long, of the packages that have some, and
# what is tried with the program as it is built.
check-ci: need-test build check-size check-ci-go check-nosnowflake check-matrix check-journey check-release
	@echo "What make test leaves out has passed."

# The linker drops methods that nothing calls, as long as nothing looks methods up by name (docs/decisions/0035…).
check-size: build
	@size=$$(stat -c %s bin/loadstone); [ "$$size" -le 73000000 ] || \
		{ echo "bin/loadstone has $$size bytes, and may have 73 000 000" >&2; exit 1; }

# The packages in which tests ask testing.Short. Those of make test are among them, and take little of the time.
LONG = $(filter-out plugins/author/,$(sort $(dir $(shell grep -rlE 'testing[.]Short|clitest[.]Long' --include='*_test.go' cli engine plugins server snowsim storage))))

check-ci-go: export LOADSTONE_BUILT = $(CURDIR)/bin/loadstone
check-ci-go: build $(GOTESTSUM)
	CGO_ENABLED=0 $(call tested,$(addprefix ./,$(LONG)),-buildvcs=false -timeout 20m)

# All table types of the stand-in and Postgres, from one template.
check-matrix: build ui/node_modules/.package-lock.json
	@deploy/scratch.sh deploy/matrix.sh bin/loadstone

# The jobs of the page, from the first link to a shared result.
check-journey: build ui/node_modules/.package-lock.json
	@deploy/scratch.sh deploy/journey.sh bin/loadstone

check: lint test check-ci attacks check-race check-seeds check-alone check-tutorial check-examples check-pages check-api check-proto \
	check-promql check-witnesses check-why check-search test-s3 check-acme check-oidc check-chart check-ecs check-observability check-bench docs
	@echo "All checks passed."

# Everything with the race detector; what make test has with it already is not run again. In it are the tests of processes
# that play what the simulation plays in virtual time.
check-race: export LOADSTONE_CHECK = 1
check-race: need-test build examples $(GOTESTSUM)
	$(call tested,$(UNRACED),-race -timeout 40m)

check-seeds: need-toolchain plugins
	LOADSTONE_SEEDS=1000 $(GO) test -count=1 -timeout 60m -run '^TestSeeds' ./engine/run/simtest

# A test that is known to fail now and then beside others; issue 40 looks for the cause.
check-alone: need-postgres plugins ui
	LOADSTONE_SOAK=1 $(GO) test -count=1 -run '^TestNodesComeAndGoUnderAQuery$$' ./cli

# The commands of docs/start and of docs/extend/write-a-workload.md, one after the other …
check-tutorial: build need-examples
	@deploy/scratch.sh deploy/tutorial.sh bin/loadstone

# … and the example in each language: the conformance suite, and batches that are the same to the byte.
check-examples: build examples
	@for file in $(EXAMPLE)/dist/*.wasm; do echo "$$file"; bin/loadstone plugin test "$$file"; done
	$(GO) test -count=1 $(EXAMPLES_TESTED) ./plugins/author

# Results on a real S3 server. Building it takes longer than all of its tests, so that make test runs
# them on a stand-in, and on the server where it is built.
S3SERVER := $(CACHE)/bin/s3server
s3-server: $(S3SERVER)

$(S3SERVER): deploy/s3server/main.go deploy/go.mod deploy/go.sum | need-toolchain
	@echo "Building the S3 server of the tests; this takes a minute, once."
	@mkdir -p $(dir $@)
	@cd deploy && GOFLAGS= $(GOBUILD) -ldflags '-s -w' -o "$(CURDIR)/$@" ./s3server

test-s3: $(S3SERVER) need-postgres plugins
	LOADSTONE_S3_SERVER=1 $(GO) test -race -count=1 ./storage/objects/...
	LOADSTONE_S3_SERVER=1 $(GO) test -count=1 -run '^TestARunKeepsItsRecordInS3$$' ./cli

# Generated requests against the OpenAPI document; schemathesis is fetched with pip, once,
# and so outside make lint test.
# The program without Snowflake, built and tried.
check-nosnowflake: need-postgres plugins ui
	@deploy/nosnowflake.sh bin/loadstone-nosnowflake

# Every page and state in both themes and at three widths, with every rule of axe and a picture of each (ui/e2e-pages),
# and what the keyboard does.
check-pages: ui
	cd ui && npm run --silent e2e -- --mock

check-api: build
	@deploy/api-conformance.sh bin/loadstone

PROMTOOL := $(CACHE)/bin/promtool

# Alert rules and dashboard, with Prometheus's own promtool.
check-observability: $(PROMTOOL)
	@deploy/observability.sh $(PROMTOOL)

# What a generator says of its own lateness, held against a target that knows the truth: on a machine that is otherwise idle.
check-witnesses: export LOADSTONE_WITNESSES = 1
check-witnesses: export LOADSTONE_BUILT = $(CURDIR)/bin/loadstone
check-witnesses: build need-postgres
	CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 10m -run '^TestWhatTheGeneratorAddsIsCovered$$' ./engine/worker/calibrate
	CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v -run '^TestStagedFaultsAreJudged$$' ./cli

# Causes of slowness that are staged on a real server, each to be the first finding of its run; healthy runs have none.
check-why: export LOADSTONE_WHY = 1
check-why: need-postgres plugins
	CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v -run '^TestStagedCausesAreFound$$' ./cli

# Searches for the limit of a database whose slots and service times are known, on a machine that is otherwise idle, and
# with two busy loops beside them: two minutes for each of 24, LOADSTONE_SEARCHES times.
check-search: export LOADSTONE_SEARCHES ?= 1
check-search: build need-postgres
	CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 6h -run '^TestTheSearchFindsARealLimit$$' -v ./cli

# PromQL by Prometheus' own suite, beside a real TSDB, and asked by promtool and by the backend of Grafana's data source.
# Modules of their own: compiling them takes minutes, since a TSDB brings clients of several clouds.
check-promql: build need-postgres $(PROMTOOL)
	cd deploy/promsuite && GOFLAGS= LOADSTONE_PROGRAM="$(CURDIR)/bin/loadstone" LOADSTONE_PROMTOOL="$(CURDIR)/$(PROMTOOL)" \
		$(GO) test -trimpath -count=1 -timeout 30m .
	cd deploy/promsuite/grafana && GOFLAGS= LOADSTONE_PROGRAM="$(CURDIR)/bin/loadstone" $(GO) test -trimpath -count=1 .

# promtool of the version of Prometheus that the suite has, without what discovers targets.
$(PROMTOOL): deploy/promsuite/go.mod deploy/promsuite/go.sum | need-toolchain
	@echo "Building promtool; this takes some minutes, once."
	@mkdir -p $(dir $@)
	@cd deploy/promsuite && GOFLAGS= $(GOBUILD) -tags remove_all_sd -ldflags '-s -w' -o "$(CURDIR)/$@" \
		github.com/prometheus/prometheus/cmd/promtool

# Certificates of an ACME authority, Pebble, on loopback.
check-acme: build need-postgres
	cd deploy && GOFLAGS= LOADSTONE_PROGRAM="$(CURDIR)/bin/loadstone" $(GO) test -trimpath -count=1 ./acmesuite

# Sign-in by a real OpenID Connect provider, npm's oidc-provider, in a browser and with forged tokens; the packages are
# fetched with npm, once, and so outside make lint test.
OIDCSUITE := deploy/oidcsuite
check-oidc: build need-test ui/node_modules/.package-lock.json $(OIDCSUITE)/node_modules/.package-lock.json
	cd $(OIDCSUITE) && LOADSTONE_PROGRAM="$(CURDIR)/bin/loadstone" node --test --test-reporter=spec suite.test.mjs

$(OIDCSUITE)/node_modules/.package-lock.json: $(OIDCSUITE)/package-lock.json | need-toolchain
	@echo "Installing the OpenID Connect provider of the tests."
	@cd $(OIDCSUITE) && npm ci --no-fund --no-audit --loglevel=error --no-update-notifier
	@touch $@

# The schema of the control stream; buf is fetched with npm, once.
check-proto: need-toolchain
	@deploy/proto.sh

# A server and two nodes in processes of their own, on a real Postgres: each line PASS or FAIL, with what was seen.
acceptance: build need-postgres
	@cd deploy && $(GO) run -trimpath ./acceptance -program ../bin/loadstone $(if $(PROVE),-prove)

# Two servers on an external Postgres that lets in whoever comes from this machine: each attack PASS or FAIL.
attacks: build need-postgres
	@cd deploy && $(GO) run -trimpath ./attacks -program ../bin/loadstone $(if $(ONLY),-only '$(ONLY)')

# What a release consists of, in dist/release; RELEASE_KEY is the SSH key that signs it.
SBOM_VERSION := v1.10.0
SBOM_TOOL := $(CACHE)/bin/cyclonedx-gomod-$(SBOM_VERSION)

$(SBOM_TOOL):
	@mkdir -p $(CACHE)/bin
	@GOBIN="$(CURDIR)/$(CACHE)/bin" GOFLAGS= $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(SBOM_VERSION)
	@mv $(CACHE)/bin/cyclonedx-gomod $@

release: need-toolchain plugins ui $(SBOM_TOOL)
	@deploy/setup.sh signing
	@VERSION="$(VERSION)" RELEASE_KEY="$(RELEASE_KEY)" SBOM_TOOL="$(CURDIR)/$(SBOM_TOOL)" deploy/release/release.sh dist/release

check-release:
	@deploy/setup.sh signing
	@deploy/release/test.sh

check-arm64: need-toolchain plugins ui
	@mkdir -p $(CACHE)/bin
	@VERSION="$(VERSION)" deploy/arm64.sh $(CACHE)/bin/loadstone-arm64

# The image from the Dockerfile as it is, on base images made here, run as a platform would.
image-test:
	@deploy/setup.sh image
	@deploy/image/test.sh

# The Helm chart, rendered by the real helm and held to the schemas of Kubernetes and KEDA.
HELM := $(CACHE)/bin/helm
$(HELM): deploy/go.mod deploy/go.sum | need-toolchain
	@echo "Building helm; this takes some minutes, once."
	@mkdir -p $(dir $@)
	@cd deploy && GOFLAGS= $(GOBUILD) -ldflags '-s -w' -o "$(CURDIR)/$@" helm.sh/helm/v3/cmd/helm

check-chart: build $(HELM)
	@deploy/helm/check.sh $(HELM) bin/loadstone

# The task definition for Amazon ECS, held to the API's model in the SDK; no account is needed.
check-ecs: build
	@deploy/ecs/check.sh bin/loadstone

# The benchmarks' own tests; bench is a module of its own, and what tests the program leaves it out.
check-bench: need-toolchain
	cd bench && $(GO) test ./...

bench: check-bench need-postgres build examples s3-server
	@deploy/setup.sh sysbench
	LOADSTONE_BENCH_OPENLOOP=60s $(GO) test -run '^$$' -bench . -benchmem -timeout 30m -p 1 ./engine/... ./plugins/host/... ./plugins/bundled ./storage/results/... ./storage/objects/... ./server/live/... ./cli
	cd bench && $(GO) run ./peers -rounds 5 -seconds 5 -connections 16
	cd bench && $(GO) run ./peers -rounds 5 -seconds 5 -connections 64
	cd bench && $(GO) run ./peers -rounds 5 -seconds 5 -connections 16 -script tpcb-like

# What a server makes of many nodes; cd bench && go doc ./nodes names single figures.
bench-nodes: need-postgres build
	cd bench && $(GO) run ./nodes

# How fast refreshes are claimed and released, and a run of ten million executions is taken into the results database.
bench-refresh: need-postgres build
	$(GO) test -run '^$$' -bench Claims -timeout 30m ./storage/postgres
	cd bench && $(GO) run ./refresh

# Needs a network; without one it says what it could not look at, and fails.
audit: need-toolchain
	@deploy/audit.sh

# Longer than a commit should wait: fuzzing, a minute for each target.
soak: need-postgres plugins
	@deploy/soak.sh

fmt: ui/node_modules/.package-lock.json
	gofmt -l -w $$(git ls-files '*.go')
	cd ui && npm run --silent format

# What the server answers, written down, and the page's types made from it.
api: ui/node_modules/.package-lock.json
	$(GO) test ./server -count=1 -run '^(TestTheDocumentInTheDocsIsTheServers|TestWhoMayWhat|TestTheMetricsAreListed)$$' -update
	cd ui && npm run --silent types

# The generator is fetched with pip, once, and so outside make lint test.
docs:
	@deploy/docs.sh

clean:
	rm -rf bin dist ui/dist/assets ui/dist/index.html plugins/bundled/dist/*.zst $(BUILT) $(MANIFESTS) $(EXAMPLE)/dist

need-toolchain:
	@deploy/setup.sh toolchain

need-postgres: need-toolchain
	@deploy/setup.sh postgres

need-examples: need-toolchain
	@deploy/setup.sh clang rust

need-test: need-toolchain
	@deploy/setup.sh postgres race browser pooler
