# What pgfsm is built, tested and measured with. Every tool is pinned and fetched through the Go module proxy.
GO          ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.1
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME    ?= 10s
COUNT       ?= 6
CONSOLE     ?= short
TESTFLAGS   := -timeout 30m -p 6 -vet=off -ldflags="-s -w"
RACE        ?= TestServe(Answers|Failures|Holds)|TestConnectionsOfAny|TestRefreshSurvives
ONE_THREAD  := Fuzz|Docs|Browser|Journeys|BytesOfACall|Prune|Derived|Verif|Forged|Detected|Replays|OriginsBeyond|OriginsOfEarlier|OriginsInASession|MemoryOfEarlier

.PHONY: build run test without-tools test-postgres console race check fmt eval bench bench-gateway bench-replicas crash crash-postgres partition reload flood tamper million soak fuzz docs vuln interop interop-hooks interop-tools dist debian-root packages release

build: ## bin/pgfsm and bin/pgfsm-hook
	$(GO) build -trimpath -ldflags="-s -w" -o bin/ ./cmd/pgfsm ./cmd/pgfsm-hook

run: ## the demo
	$(GO) run ./cmd/pgfsm run "Summarize policy policy-002"

test: export GOGC ?= 400
test: ## every test; those that need a program that is missing skip, and the last line says what to install
	@mkdir -p bin
	$(GO) run ./internal/test/report -tools bin/tests-with-tools $(TESTFLAGS) ./...

without-tools: ## the tests that need a program that not every machine has, without these programs (make test lists the tests first)
	.ci/without-tools

test-postgres: ## the tests of votes, history, tokens, resuming, delivery, imports, the API, hooks, the console and the gateway with PostgreSQL instead of SQLite, and a short form of partition
	PGFSM_TEST_STORE=postgres $(GO) test -count 1 $(TESTFLAGS) -run 'History|Origins|Vote|Token|Resum|Recover|Deliver|Claim|Taken|Contest|EachCommit|MadeOnce|TestImport$$|TestJoin|Prompts|Refresh|Connection' ./traces/ledger
	PGFSM_TEST_STORE=postgres $(GO) test -count 1 $(TESTFLAGS) -run TestHookSessions ./internal/runner
	PGFSM_TEST_STORE=postgres $(GO) test -count 1 $(TESTFLAGS) -skip 'Browser|Docs|Journeys' ./traces/ledger/api ./traces/ledger/hooks
	PGFSM_TEST_STORE=postgres $(GO) test -count 1 $(TESTFLAGS) -run 'Postgres|TestLedgerMove|TestServeFailuresOfTheDatabase|TestServeReplicas|TestReloadHeld|TestServeIdentity$$|TestCredentialsStayOut|Connections|TestRefreshSurvives' ./e2e
	PGFSM_PARTITION_OPERATIONS=500 PGFSM_PARTITION_FAULTS=19 $(GO) test -count 1 $(TESTFLAGS) -v -run TestPartition ./e2e/partition

interop-tools: interop/node_modules/.package-lock.json ## MCP servers and a model endpoint that others wrote (needs npm)

interop/node_modules/.package-lock.json: interop/package.json interop/package-lock.json
	cd interop && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

interop: interop-tools ## pgfsm with the conformance suites, clients, servers and tool lists that others wrote (needs npm)
	$(GO) test -count 1 -v -run TestFalseRefusals ./policy
	PGFSM_INTEROP=1 $(GO) test -count 1 -parallel 2 $(TESTFLAGS) -run 'Interop|Conformance|TestGatewayClients' ./e2e

interop-hooks: ## the hooks of real coding agents with a scripted model; PGFSM_CLAUDE, PGFSM_CODEX and PGFSM_GEMINI name their programs
	$(GO) test -count 1 -v -run TestInterop ./internal/hookcheck

race: export GOGC ?= 400
race: ## packages with goroutines under the race detector (needs a C compiler), without long tests that have one goroutine; of e2e, the gateway's tests
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 60m -skip '$(ONE_THREAD)' ./internal/current ./internal/deadline ./llm ./internal/web/loopback ./mcp/upstream ./mcp/gateway ./mcp/gateway/front ./mcp/gateway/session ./mcp/demo ./internal/runner ./internal/runner/ratelimit ./internal/runner/setup ./internal/telemetry ./traces ./traces/ledger ./traces/ledger/api ./traces/ledger/checkpoint/... ./traces/ledger/hooks ./traces/ledger/postgres/... ./traces/ledger/sqlite/... ./traces/ledger/stores ./internal/web
	CGO_ENABLED=1 $(GO) test -race -vet=off -timeout 60m -run '$(RACE)' ./e2e

check: fmt ## what a change must pass: format, vet, staticcheck, tidy modules, race tests (which hold the docs in step)
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) mod tidy -diff
	$(MAKE) race

fmt:
	@unformatted="$$(gofmt -l .)"; if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

eval: ## the figures of docs/internals/evaluation-figures.md that need nothing from elsewhere; with AGENTDOJO=DIR those on AgentDojo's data too
	$(GO) build -trimpath -o bin/pgfsm-eval ./cmd/pgfsm-eval
	bin/pgfsm-eval gates
	@set -e; for suite in eval/suites/*/; do name=$$(basename $$suite); echo "== $$name"; \
	  bin/pgfsm-eval attack --tools $$suite/tools.json --cases $$suite/cases.jsonl --bundle $$suite/pgfsm.yaml -o eval/results/own-attack-$$name.json; done
	@set -e; if [ -n "$(AGENTDOJO)" ]; then python3 eval/agentdojo/import.py "$(AGENTDOJO)" eval/results/agentdojo; \
	  bin/pgfsm-eval attack --tools eval/results/agentdojo/all.tools.json --cases eval/results/agentdojo/all.cases.jsonl -o eval/results/agentdojo-attack.json; \
	  bin/pgfsm-eval attack --tools eval/results/agentdojo/all.tools.json --cases eval/results/agentdojo/all.retargeted.jsonl -o eval/results/agentdojo-retargeted-attack.json; \
	  for cases in eval/results/agentdojo/all.sessions-*.jsonl; do name=$$(basename $$cases .jsonl); bin/pgfsm-eval attack --tools eval/results/agentdojo/all.tools.json \
	    --cases $$cases --arm grants --arm unattended --arm origin -o eval/results/agentdojo-$${name#all.}-attack.json; done; fi
	bin/pgfsm-eval e2e --cases eval/cases_end_to_end.jsonl --dir eval/results
	bin/pgfsm-eval report eval/results -o eval/results/report.html

bench: ## the figures of docs/internals/benchmarks.md; COUNT runs of each
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./fsm ./internal/secret ./mcp/gateway ./mcp/wire ./policy/... ./traces/ledger/... | tee bench.txt
	$(GO) run $(BENCHSTAT) bench.txt

bench-gateway: build ## the gateway beside direct calls and a bare proxy: four minutes
	@rm -rf bin/bench-*
	$(GO) test ./e2e/bench -count 1 -timeout 1h -v -run TestLoad -args -load -pgfsm $(CURDIR)/bin/pgfsm -dir $(CURDIR)/bin $(BENCHFLAGS)

console: ## the journeys of approvers, operators and auditors with three devices, on SQLite and PostgreSQL: about five minutes; with CONSOLE=all with each width, colour scheme, input and browser without scripts: about an hour (needs Chromium)
	PGFSM_CONSOLE=$(CONSOLE) $(GO) test -count 1 -timeout 2h -vet=off -ldflags="-s -w" -v -run 'Journeys|InABrowser' ./traces/ledger/api
	PGFSM_TEST_STORE=postgres PGFSM_CONSOLE=$(CONSOLE) $(GO) test -count 1 -timeout 2h -vet=off -ldflags="-s -w" -v -run 'Journeys' ./traces/ledger/api

bench-replicas: build ## 1, 2 and 4 gateways on one Postgres beside one on SQLite, a takeover, and bytes a call: four minutes
	$(GO) test ./e2e/bench -count 1 -timeout 1h -v -run TestReplicas -args -load -pgfsm $(CURDIR)/bin/pgfsm $(BENCHFLAGS)

crash: ## gateways killed 810 times under load, between the decisions about hooks' calls and their reports, and while they refresh people's tokens, and 1,000 rounds of two ledgers that race: about a quarter of an hour
	PGFSM_CRASH_KILLS=260 $(GO) test -count 1 -timeout 1h -v -run 'TestServeCrash|TestHooksSurviveKills|TestConnectionsOfAny' ./e2e
	PGFSM_CRASH_ROUNDS=1000 $(GO) test -count 1 -timeout 1h -v -run TestContest ./traces/ledger

crash-postgres: ## gateways killed 130 times and 400 rounds of two ledgers that race, with PostgreSQL: about ten minutes
	PGFSM_TEST_STORE=postgres PGFSM_CRASH_KILLS=50 $(GO) test -count 1 -timeout 1h -v -run 'TestServeCrash|TestConnectionsOfAny' ./e2e
	PGFSM_TEST_STORE=postgres PGFSM_CRASH_ROUNDS=400 $(GO) test -count 1 -timeout 1h -v -run TestContest ./traces/ledger

partition: ## three gateways on PostgreSQL with a standby, 10,000 operations and 200 faults or more: about half an hour (needs PostgreSQL)
	PGFSM_PARTITION_OPERATIONS=10000 PGFSM_PARTITION_FAULTS=200 $(GO) test -count 1 -timeout 3h -v -run TestPartition ./e2e/partition

reload: ## a gateway that reloads a good, a broken and a stricter configuration in turn, 1,000 times, while 32 sessions call: about six minutes
	PGFSM_RELOADS=1000 $(GO) test -count 1 -timeout 1h -v -run TestReloadUnderLoad ./e2e

flood: ## a listener with 10,000 half-open connections: it needs as many descriptors
	PGFSM_HALF_OPEN=10000 $(GO) test -count 1 -timeout 10m -v -run TestFloods ./internal/web

tamper: ## every field of every row of a ledger changed, one at a time: about two minutes
	PGFSM_TAMPER=all $(GO) test -count 1 -timeout 1h -v -run VerifyNames ./traces/ledger

million: ## a ledger of a million runs: what people and calls ask of it, and its verification; about a quarter of an hour
	PGFSM_LEDGER_RUNS=1000000 $(GO) test -count 1 -timeout 2h -v -run TestManyRuns ./traces/ledger

fuzz: ## each fuzz target for FUZZTIME
	@set -e; found=0; for pkg in $$($(GO) list ./...); do \
	  listed=$$($(GO) test -list '^Fuzz' $$pkg); \
	  for target in $$(echo "$$listed" | sed -n '/^Fuzz/p'); do \
	    found=$$((found+1)); echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$pkg; \
	  done; \
	done; written=$$(grep -rhE '^func Fuzz' --include='*_test.go' . | wc -l); \
	echo "$$found fuzz targets run, $$written written"; [ $$found -eq $$written ] && [ $$found -gt 0 ]

docs: ## generate what is generated in docs, pictures too, and the golden files of the machine (needs Chromium)
	$(GO) test ./fsm ./states ./policy ./internal/config ./traces/ledger/api ./mcp/gateway ./cmd/pgfsm -run 'Docs|Golden|Schema|Description|KeyTable|Manual' -update

dist: ## the packages of the commit that is checked out, in dist: archives, Debian packages, images, SBOMs, checksums; DISTFLAGS="-targets linux/amd64" builds for one system
	cd packaging && $(GO) run . -out $(CURDIR)/dist $(DISTFLAGS)

debian-root: bin/debian ## a Debian system with Node; DISTFLAGS="-debian $(CURDIR)/bin/debian" puts it into the image pgfsm-node (needs root, debootstrap, npm)

bin/debian: packaging/debian-root packaging/node/package-lock.json
	packaging/debian-root $@

packages: debian-root interop-tools ## the packages for linux/amd64, installed and run by chroot (needs root, debootstrap, npm, systemd)
	$(MAKE) dist DISTFLAGS="-targets linux/amd64 -debian $(CURDIR)/bin/debian"
	cd packaging && $(GO) vet . && $(GO) run $(STATICCHECK) . && PGFSM_DIST=$(CURDIR)/dist PGFSM_DEBIAN=$(CURDIR)/bin/debian $(GO) test -count 1 -v -timeout 40m .

release: ## packages, and builds them a second time to compare both builds
	PGFSM_RELEASE=1 $(MAKE) packages

soak: ## the random tests of the packages that have long ones, as long as they can be: about an hour
	PGFSM_SOAK=1 $(GO) test -count 1 -timeout 2h $$(grep -rl --include='*_test.go' 'Getenv("PGFSM_SOAK")' . | xargs -n 1 dirname | sort -u)

vuln: ## known vulnerabilities (asks vuln.go.dev)
	$(GO) run $(GOVULNCHECK) ./...
