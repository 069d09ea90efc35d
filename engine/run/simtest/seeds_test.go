package simtest

import (
	"bytes"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// ofNodes are the lives of servers, nodes and runs.
var ofNodes = story{"TestSeeds", func(t *testing.T, seed uint64, lacks string) ([]string, []byte) {
	return simulate(t, seed, without(lacks))
}, 100}

// TestSeeds lives seeds of servers, nodes and runs.
func TestSeeds(t *testing.T) { ofNodes.seeds(t) }

// TestASeedGivesOneTrace lives seeds twice. Those in which a process is stopped are left out: when it goes on, much is
// due at one moment, and a select of the product takes any of it first. So are those with a second server, which may go
// on with a run at a whole number of seconds before its end, and searches, whose steps end with a second of their run
// workers.
func TestASeedGivesOneTrace(t *testing.T) {
	ofNodes.twice(t, 6, func(trace []byte) bool {
		return !bytes.Contains(trace, []byte(" freezes for ")) && bytes.Count(trace, []byte(" begins\n")) <= 1 &&
			!bytes.Contains(trace, []byte(engine.TargetStepAdvance))
	})
}

// seedsThatFailed are those that have found something, with what it was. A change of the simulation
// makes another story of a seed, so each has a test of its own beside the code that was wrong too.
var seedsThatFailed = map[string]uint64{
	// recovery.TestWhatCouldNotBeFinishedIsTriedAgain
	"a run was claimed, its events could not be read, and its lease was renewed for ever": 26,
	"a run without an owner was claimed and ended, and its figures were never computed":   42,
	// recovery.TestARunIsFinishedByOneAtATime, TestARunThatALateClaimHasFencedIsFinished
	"two goroutines claimed one run, and the one that went on was fenced by the other": 1467,
	// worker.TestEventsApplyAtMostOnceInOrderAndInScope
	"run workers heard nothing any more after the end of a lost one of their run on the same node": 177,
	// storetest: a fenced writer changes no results
	"a server that had been stopped wrote its verdict over that of the one that took over": 1600,
	// writer.TestAnEventIsStoredOnceHoweverLateItsCommit
	"a change of phase was committed while it was made again, and was stored twice": 9,
	// recovery.TestARunThatNobodyCarriesLosesItsLease
	"a run was started after its server had given it up, and its lease was renewed for ever": 17,
	// recovery.TestPartsThatComeWhileARunIsFinishedAreTakenIn
	"parts that came while their run was finished were forgotten": 85,
	// recovery.TestAPartThatCouldNotBeStoredIsTriedAgain
	"a part was damaged on its way twice, and was forgotten":                     466,
	"a part was damaged on its way when its run was finished, and was forgotten": 554,
	"parts that came while others of their run were taken in were forgotten":     1128,
	// worker.TestAnEndTellsOfTheClockOfWhoOwnsTheRun
	"a run went on by the clock of a server that had told an ended run worker of it": 2226,
	// run.TestAnotherServerKnowsWhoMayStillBearLoad
	"a second server that took a run over gave away what the own node of the first one still bore": 3568,
	"a run ended ten minutes before its record, by what was known of another server's clock":       8402,
	// recovery.TestAPartThatComesMeanwhileIsKept
	"a part that was announced while its run was ended was forgotten": 4574,
	// storetest.Rules: what stops a run is kept with how its rules stand
	"a rule stopped a run, and its server was killed before it had kept which":   8926,
	"a rule stopped a run that was over before its server had kept which it was": 6744,
	// rule.TestARuleThatComesTooLateStopsNothing
	"a rule had triggered when its run was ending already": 2243,
}

func TestSeedsThatFailed(t *testing.T) { ofNodes.failed(t, seedsThatFailed) }

// TestSeededBugsAreFound takes one rule out at a time, and looks for it with as many seeds as it
// has to be found within.
func TestSeededBugsAreFound(t *testing.T) {
	ofNodes.misses(t, []seeded{
		{string(withoutFencing), "invariant 1:", 60},
		{string(withoutDeadline), "invariant 3:", 80},
		{string(withoutDeduplication), "invariant 7:", 40},
		{string(withoutStop), "invariant 7:", 40},
		{string(withoutCounting), "invariant 5:", 40},
		{string(withoutKeys), "invariant 7:", 120},
		{string(withoutLapse), "invariant 2:", 120},
		{string(withoutRooms), "invariant 1:", 80},
		{string(withoutDurability), "invariant 6:", 80},
		{string(withoutTargets), "invariant 3:", 80},
		{string(withoutAnswers), "invariant 8:", 80},
		{string(withoutHearing), "invariant 3:", 80},
		{string(withoutLease), "invariant 3:", 120},
		{string(withoutRows), "invariant 1:", 20},
		{string(withoutSteps), "invariant 9:", 80},
		{string(withoutClocks), "invariant 10:", 40},
		{string(withoutBounds), "invariant 3:", 80},
		{string(withoutLosses), "invariant 3:", 40},
		{string(withoutHeirs), "invariant 11:", 120},
	})
}
