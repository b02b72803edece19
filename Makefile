# Everything sets itself up; every step is skipped when it has been done.
#
#   make run     build, then fix the broken example with the built-in model (DIR=… PROMPT=… for your own project)
#   make test    every test: language servers, ACP clients, VS Code and Neovim are the real ones; installs what they need
#   make test-fast  what a change to one room needs, in three minutes; installs nothing (also: make quick)
#   make vscode  a real VS Code in the browser with the extension, on a scratch copy of the broken example (DIR=… for your own)
#   make package the extension as a .vsix with the binary, in dist/
#   make dist    packages (tar.gz, zip, deb, rpm, Arch, npm, vsix, install.sh …) with their checksums, in dist/, each tried
#   make reproducible   build the release program twice, in two places; fail where the bytes differ
#   make bench   the benchmarks behind docs/BENCHMARKS.md, OpenCode's included where npm can be reached (QUICK=1: a tenth of it, printed)
#   make faults  deaths, full disks, floods, and half an hour of random sessions (SOAK=2m)
#   make fuzz    every fuzz target for half a minute (FUZZTIME=1h)
#   make mutants breaks the code on purpose and lists what no test notices (PACKAGES=./tools/permission N=60)
#   make cover   how much of each room its own tests reach

SHELL   := /bin/bash
, := ,
CACHE   := $(CURDIR)/.cache
BIN     := bin/pillion
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo 0.1.0-dev)
# --gc-sections leaves out the tables of grammars that tools/treesitter has packed; the linkers of Linux know it.
LDFLAGS := -s -w -X main.version=$(VERSION)$(if $(filter Linux,$(shell uname)), '-extldflags=-Wl$(,)--gc-sections')
GOFILES := $(shell find agent lspbridge sidecar tools -name '*.go' -o -name '*.txt' -o -name '*.mjs' -o -name '*.gz' -not -path '*/testdata/*' 2>/dev/null) go.mod go.sum
PROMPT  ?= fix all errors
export PATH := $(CACHE)/bin:$(CACHE)/node_modules/.bin:$(PATH)

.PHONY: run build test test-fast quick test-go test-e2e test-vscode test-nvim vscode package dist reproducible lint bench bench-nvim fuzz setup clean

run: setup-run build
	@./scripts/run.sh "$(DIR)" "$(PROMPT)"

build: $(BIN)

$(BIN): $(GOFILES) scripts/gcflags.sh
	go build $$(./scripts/gcflags.sh) -ldflags "$(LDFLAGS)" -o $@ ./sidecar

# What each target needs, installed when it is missing (scripts/setup.sh).
.PHONY: setup-run setup-go setup-windows setup-vscode setup-nvim setup-dist setup-test
setup-run:
	@./scripts/setup.sh run "$(CACHE)"
setup-go:
	@./scripts/setup.sh go "$(CACHE)"
setup-windows:
	@./scripts/setup.sh windows "$(CACHE)"
setup-vscode:
	@./scripts/setup.sh vscode "$(CACHE)"
setup-nvim:
	@./scripts/setup.sh nvim "$(CACHE)"
setup-dist:
	@./scripts/setup.sh dist "$(CACHE)"
setup-test:
	@./scripts/setup.sh test "$(CACHE)"

test: setup-test
	@rm -f "$(CACHE)/unreliable.log" "$(CACHE)/skipped.log"
	@./scripts/parts.sh build lint budget test-go fuzz-short test-e2e test-vscode test-nvim
	@./scripts/verdict.sh "$(CACHE)"

# What the binary may weigh and what it must not link.
.PHONY: budget
budget: build
	@./scripts/budget.sh $(BIN)

# The program without cgo, for each system and processor: built, not run. PLATFORMS="darwin/arm64 …": only these.
.PHONY: platforms
platforms:
	@./scripts/platforms.sh $(PLATFORMS)

test-fast quick: build
	@./scripts/test-fast.sh $(PACKAGES)

lint: setup-go
	@test -z "$$(gofmt -l agent lspbridge sidecar tools bench)" || { gofmt -l agent lspbridge sidecar tools bench; echo "run gofmt -w on these"; exit 1; }
	go vet ./...
	@./scripts/staticcheck.sh "$(CACHE)"

test-go: setup-go
	@./scripts/gotest.sh "$(CACHE)"

# The program for Windows, under Wine.
.PHONY: test-windows
test-windows: setup-windows
	@./scripts/windows-test.sh "$(CACHE)"

# Clients of others: the npm SDK, acpx, and on real screens CodeCompanion and agentic.nvim, which want Neovim.
test-e2e: setup-go setup-nvim build
	@./scripts/again.sh npm run --silent test:acp

# The extension: types and style, its pure parts, then end to end in a real workbench.
test-vscode: setup-vscode build
	npm run --silent typecheck
	npm run --silent lint
	npm run --silent build
	@./scripts/again.sh npm run --silent test:unit
	@./scripts/again.sh npm run --silent test:webview
	npm run --silent test:e2e # a test that fails is run again by itself

# The Neovim plugin: lint, headless and in a terminal, on every Neovim that setup-nvim.sh provides.
test-nvim: setup-nvim build
	@./extension/nvim/tests/all.sh "$(CACHE)"

# A workbench to try it in.
vscode: setup-vscode build
	npm run --silent build
	@node extension/vscode/try.mjs "$(DIR)"

package: setup-vscode build
	npm run --silent package

dist: setup-dist
	@./scripts/dist.sh $(ARCH)
	@./scripts/dist-test.sh

reproducible:
	@./scripts/reproducible.sh

bench: setup-test build
	npm run --silent build
	@./scripts/setup-peers.sh "$(CACHE)"
	@if command -v dpkg-query >/dev/null; then ./scripts/apt.sh "$(CACHE)" clang; fi # the verdict's second compiler of C
	go run ./bench $(if $(QUICK),-quick) $(if $(ONLY),-only $(ONLY))

# The Neovim plugin's promised numbers, on each Neovim.
bench-nvim: setup-test
	@for nvim in nvim $(CACHE)/nvim-0.10/nvim $(CACHE)/nvim-0.12/nvim; do $$nvim --headless -u NONE -i NONE -n --cmd 'set rtp^=extension/nvim' -c 'luafile bench/nvim/bench.lua'; done

fuzz:
	@./scripts/fuzz.sh $(or $(FUZZTIME),30s)

# Every target for a moment: kept corpora and what mutation finds at once.
.PHONY: fuzz-short
fuzz-short:
	@./scripts/fuzz.sh short

# Deaths, full disks, floods and half an hour of random sessions. The short forms run in `make test`.
.PHONY: faults
faults: build
	@./scripts/faults.sh $(or $(SOAK),30m)

# Ten thousand random edits on gopls, each answer compared with a freshly started server's: about half an hour.
.PHONY: soak-lsp
soak-lsp:
	PATH=$(CURDIR)/.cache/bin:$$PATH go test ./lspbridge -run TestGoplsSoak -v -timeout 4h -soak $(or $(EDITS),10000) -soak-fresh 1

# Known weaknesses of what we are built from, where the services can be reached; the list of it; static analysis.
.PHONY: audit sbom staticcheck
audit:
	@./scripts/audit.sh

sbom: build
	@mkdir -p dist && ./scripts/sbom.sh $(BIN) > dist/pillion.cdx.json && echo dist/pillion.cdx.json

staticcheck:
	@./scripts/staticcheck.sh "$(CACHE)"

# Small faults put into the code, and which of them no test notices: minutes a package. BASE=HEAD~5: only lines changed since.
.PHONY: mutants
mutants:
	go run ./scripts/mutants $(if $(N),-n $(N)) $(if $(BASE),-base $(BASE)) $(or $(PACKAGES),./tools/permission ./tools/files ./tools/change ./tools/replace)

# Functions that no program reaches, what only tests use included: none but those of the model for tests.
.PHONY: deadcode cover
deadcode:
	@set -o pipefail; go run golang.org/x/tools/cmd/deadcode@v0.52.0 ./sidecar ./bench ./bench/limit ./tools/custom/host/gen ./sidecar/protocol/gen | \
	{ ! grep -v '^agent/provider/wiretest/'; }

cover: setup-test
	@GOCOVERDIR=$$(mktemp -d) && export GOCOVERDIR && trap 'rm -rf "$$GOCOVERDIR"' EXIT && PILLION_TEST_SERVERS=$(CACHE)/servers/node_modules/.bin go test -cover -timeout 20m ./... | awk '/coverage:/ {for (i = 1; i <= NF; i++) if ($$i == "coverage:") print $$(i + 1), ($$1 == "ok" ? $$2 : $$1)} /FAIL/ {print} ' | sort -n

clean:
	rm -rf bin .cache dist node_modules
