# The front door. `make help` lists what there is.
SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# npm runs with the machine's own PATH: it replaces the folder that the other PATH points into.
HERE := $(CURDIR)/node_modules
MACHINE_PATH := $(shell printf '%s' "$$PATH" | tr ':' '\n' | grep -v -e '/node_modules/node24/bin$$' -e '/node_modules/.bin$$' | paste -sd: -)
EXTRA_CA := $(NODE_EXTRA_CA_CERTS)
export PATH := $(HERE)/node24/bin:$(HERE)/.bin:$(MACHINE_PATH)
# A bundle of extra authorities costs every Node start some 30 ms and our processes trust none of them;
# only npm is given it. The others would change what our processes do or trust.
unexport NODE_EXTRA_CA_CERTS
unexport NODE_OPTIONS
unexport MAKEFLAGS MFLAGS MAKELEVEL

KINDS := unit contract e2e chaos security polyglot
MOCHA := mocha
ALL_TESTS := 'test/{unit,contract,e2e,chaos,security,polyglot}/**/*.test.ts'

.PHONY: help setup gen lint fix test $(addprefix test-,$(KINDS)) coverage proto-breaking proto-image \
        up down clean-state demo bench soak verify

help: ## list the targets
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

setup: ## install everything the checkout needs (Node 24 included)
	@PATH='$(MACHINE_PATH)' $(if $(EXTRA_CA),NODE_EXTRA_CA_CERTS='$(EXTRA_CA)') sh .ci/setup.sh

gen: setup ## generate services/gen from the protos
	@sh .ci/gen.sh

lint: gen ## style, types, dependency rules, protos
	biome check --error-on-warnings .
	tsc --noEmit
	node .ci/check-dependencies.ts
	buf lint
	buf format --path proto/ganglion -d --exit-code
	sh .ci/proto-breaking.sh

fix: gen ## format and apply safe fixes
	biome check --write .
	buf format --path proto/ganglion -w

test: gen ## every test
	$(MOCHA) $(ALL_TESTS)

test-unit: gen ## tests without sockets
	$(MOCHA) 'test/unit/**/*.test.ts'

test-contract: gen ## one service over real sockets
	$(MOCHA) 'test/contract/**/*.test.ts'

test-e2e: gen ## all services, real processes
	$(MOCHA) 'test/e2e/**/*.test.ts'

test-chaos: gen ## kills, stops and cuts
	$(MOCHA) 'test/chaos/**/*.test.ts'

test-security: gen ## who may do what, and where secrets are not
	$(MOCHA) 'test/security/**/*.test.ts'

test-polyglot: gen ## clients in other languages
	$(MOCHA) 'test/polyglot/**/*.test.ts'

coverage: gen ## every test, with coverage
	c8 $(MOCHA) $(ALL_TESTS)

proto-breaking: setup ## compare the protos with the committed image
	@sh .ci/proto-breaking.sh

proto-image: setup ## accept the protos as they are: rewrite the committed image
	buf build --exclude-source-info -o proto/ganglion.image.binpb

up: gen ## start the mesh in the background
	@node services/cli/main.ts up $(ARGS)

down: gen ## stop what up started; the data stays
	@node services/cli/main.ts down $(ARGS)

clean-state: down ## stop, and remove the data
	@# After a crash an ordinary user's hands may have left files of subordinate ids: their root removes them.
	rm -rf .ganglion 2>/dev/null || unshare --user --map-root-user --map-auto -- rm -rf .ganglion

demo: gen ## the whole story on one machine
	@node test/demo/main.ts

bench: gen ## measure; ONLY=<prefix> picks
	@node test/bench/main.ts

soak: gen ## the long runs
	@SOAK=1 $(MOCHA) --timeout 0 'test/chaos/**/*.test.ts'

verify: lint test ## what CI runs
