#!/usr/bin/env bash
# Fuzzes every target for a minute, and gives a server the whole hostile corpus beside
# an open-loop run, the engine 200 rounds of broken connections, and a server a full disk
# (where one can be mounted) and a control store that hangs, and nodes that are stopped
# for 5, 65 and 130 s, cuts nodes off, lets them go wrong, and kills servers and nodes. usage: deploy/soak.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
	grep -ho '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | sed 's/^func //' | while read -r target; do
		echo "== $package $target"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" </dev/null
	done
done
LOADSTONE_SOAK=1 go test ./cli -run '^TestHostileFilesOnALiveServer$' -v -count 1 -timeout 30m
LOADSTONE_SOAK=1 go test ./cli -run '^(TestAFullDisk|TestAStopIsHeardWhileTheStoreIsAway)$' -v -count 1 -timeout 30m
LOADSTONE_SOAK=1 go test ./cli -run '^TestNodesThatAreFrozenForReal$' -v -count 1 -timeout 30m
# Ways between servers and nodes are cut in network namespaces (root, iproute2, nftables), nodes go wrong, versions differ.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestPartitions|TestAKilledNodeIsNoticedAtOnce|TestNodesThatGoWrong|TestVersionsApart|TestATakeoverBetweenVersions|TestRunsWaitForRoomOnNodesOfTwoServers)$' -parallel 6 -v -count 1 -timeout 30m
# A node behind a long way: 200 ms, 2 s, jitter, both directions and one.
LOADSTONE_SOAK=1 go test ./cli -run '^TestNodesBehindALongWay$' -parallel 4 -v -count 1 -timeout 30m
# A server that stands still for a minute, and two installations that know the same node.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestAServerThatStandsStillForAMinute|TestTwoInstallationsWithOneNode)$' -parallel 2 -v -count 1 -timeout 30m
# A node and clients that read nothing, floods on a node's port, plugins that are changed on their way, clocks that are
# set, a run that changes its owner as one trace.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestANodeThatStopsReading|TestClientsThatStopReading|TestFloodsOnANodesPort|TestANodeLacksAPlugin|TestClocksThatStepUnderLoad|TestARunThatChangesItsOwnerIsOneTrace)$' -parallel 3 -v -count 1 -timeout 60m
# The control store is restarted or hangs, or the way to it is cut, under the load of a node in another process.
LOADSTONE_SOAK=1 go test ./cli -run '^TestTheControlStoreGoesAway$' -parallel 5 -v -count 1 -timeout 30m
# Servers and nodes are killed in turn: 20 rounds with the limits as they are, 180 with shorter leases.
LOADSTONE_KILLS=20 go test ./cli -run '^TestRoundsOfKills$' -v -count 1 -timeout 60m
LOADSTONE_KILLS=180 LOADSTONE_LEASE=1500ms go test ./cli -run '^TestRoundsOfKills$' -v -count 1 -timeout 90m
# A thousand cancelled queries leave nothing on the nodes.
LOADSTONE_SOAK=1 go test ./engine/analytics/promql -run '^TestACancelledQueryEndsOnItsNodes$' -v -count 1 -timeout 20m
# Two servers and a node share the parts of one derived table, and nothing is refreshed beside a measurement.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestServersAndANodeRefreshOneTable|TestAQueryIsCancelledThroughTheOtherServer|TestNothingIsRefreshedWhileTheOwnNodeMeasures)$' -v -count 1 -timeout 20m
# Nodes take runs in from S3 and are killed; runs are deleted meanwhile, parts damaged, Postgres restarted, its disk full (root).
LOADSTONE_SOAK=1 go test ./cli -run '^(TestANodeTakesRunsInFromS3|TestWhatHappensToARunThatIsTakenIn|TestAFullResultsDatabase|TestLiveSecondsOfARunWhoseOwnerIsKilled)$' -v -count 1 -timeout 30m
# Definitions that never end or fill the disk, and databases of somebody else's that are not as they should be.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestTablesThatNobodyShouldMake|TestDefinitionsWithoutEnd|TestDatabasesThatAreNotAsTheyShouldBe)$' -v -count 1 -timeout 30m
# The bundled tables against what the Parquet files of real runs give by hand.
LOADSTONE_SOAK=1 go test ./cli -run '^TestBundledTablesOfRealRuns$' -v -count 1 -timeout 20m
# A hundred thousand claims of 64 claimers, and an hour of claims beside a transaction that stays open (in ten minutes).
LOADSTONE_SOAK=1 go test ./storage/postgres -run '^(TestManyClaimers|TestClaimsBesideAnOldTransaction)$' -v -count 1 -timeout 40m
# Workers of refreshes stand still for 130 s or are killed, at each step of a refresh.
LOADSTONE_SOAK=1 go test ./storage/derived -run '^(TestWorkersThatStandStillOrDie|TestARestartOfPostgres)$' -v -count 1 -timeout 30m
# The same with servers, each a process with the real limits.
LOADSTONE_SOAK=1 go test ./cli -run '^TestServersThatStandStillInARefresh$' -v -count 1 -timeout 30m
# Queries in PromQL over real nodes, which are killed, cut off, stand still, drain, and lose what they make; and whose
# server is killed.
LOADSTONE_SOAK=1 go test ./cli -run '^(TestQueriesAreAnsweredByNodesOfOtherProcesses|TestQueriesWhileNodesAndServersFail)$' -v -count 1 -timeout 20m
# The database of two POSTGRES sinks is down for a minute while rows keep coming.
LOADSTONE_SOAK=1 go test ./cli -run '^TestAnOutageUnderLoad$' -v -count 1 -timeout 20m
# make test leaves the race detector out of the programs that tests start, and of TPC-C.
LOADSTONE_SOAK=1 go test -race ./cli -run '^(TestTwoServersShareAControlStore|TestAKilledServersRun.*)$' -v -count 1 -timeout 30m
LOADSTONE_SOAK=1 go test -race ./plugins/bundled -run '^TestTpcc' -v -count 1 -timeout 30m
LOADSTONE_SOAK=1 go test ./plugins/host -run '^(TestStalls|TestHostileTruncations)' -v -count 1 -timeout 60m
LOADSTONE_SOAK=1 go test -race ./engine/worker/load -run '^TestChaos$' -count 1 -timeout 30m
# 10 000 seeds of the simulation; make test lives 100.
LOADSTONE_SEEDS=10000 go test ./engine/run/simtest -run '^TestSeeds$' -count 1 -timeout 120m
# The same of the catalog of streams, its reconcilers and fragments on servers and nodes; make test lives 200.
LOADSTONE_SEEDS=10000 go test ./engine/run/simtest -run '^TestSeedsOfStreams$' -count 1 -timeout 120m
# 50 000 random continuous queries over random rows, which Postgres answers too; make test asks 200.
LOADSTONE_QUERIES=1000 go test ./engine/stream/exec -run '^TestRandomQueriesAreThoseOfPostgres$' -v -count 1 -timeout 90m
# Addresses of databases, as a server and as the driver reads them.
LOADSTONE_DSN_INPUTS=10000000 go test ./engine/target/postgres/dsn -run '^TestReadersAgree$' -v -count 1 -timeout 120m
# PromQL: 2 000 expressions from a generator, also asked of a TSDB of Prometheus that has the same samples.
(cd deploy/promsuite && LOADSTONE_EXPRESSIONS=2000 go test -run '^TestAsPrometheusWould$' -v -count 1 -timeout 30m .)
