package simulation

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
)

// tail is how many lines of the trace of a seed that failed are printed.
const tail = 60

// lived lives one seed and fails with what was broken, how to repeat it, and the end of its trace.
func lived(t *testing.T, seed uint64) {
	t.Helper()
	wrong, trace := simulate(t, seed, withoutNothing)
	if len(wrong) == 0 {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	t.Errorf("seed %d:\n%s\nrepeat it: LOADSTONE_SEED=%d go test ./engine/simulation -run '^TestSeeds$' -v\n"+
		"the end of its trace of %d lines:\n%s", seed, strings.Join(wrong, "\n"), seed, len(lines),
		strings.Join(lines[max(0, len(lines)-tail):], "\n"))
}

// unraced leaves a test to the part of make test without the race detector.
func unraced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("takes too long with the race detector; make test runs it without")
	}
}

// TestSeeds lives as many seeds as make test has time for, or LOADSTONE_SEEDS of them from
// LOADSTONE_FIRST_SEED on, or the one that LOADSTONE_SEED names, whose trace is printed whole.
func TestSeeds(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEED"), 10, 64); err == nil {
		wrong, trace := simulate(t, seed, without(os.Getenv("LOADSTONE_WITHOUT")))
		t.Logf("%s", trace)
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
	n, first := uint64(100), uint64(1)
	if raced {
		n = 4
	}
	if soak, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEEDS"), 10, 64); err == nil {
		n = soak
	}
	if from, err := strconv.ParseUint(os.Getenv("LOADSTONE_FIRST_SEED"), 10, 64); err == nil {
		first = from
	}
	const groups = 2
	for g := range uint64(groups) {
		t.Run(fmt.Sprintf("%d of %d", g+1, groups), func(t *testing.T) {
			t.Parallel()
			for seed := first + g; seed < first+n; seed += groups {
				lived(t, seed)
			}
		})
	}
}

// TestASeedGivesOneTrace lives seeds twice: whatever crossed a border is the same, to the byte. Those
// in which a process is stopped are left out: when it goes on, much is due at one moment, and a select
// of the product takes any of it first. So are those with a second server, which may go on with a run at a whole
// number of seconds before its end, and searches, whose steps end with a second of their run workers.
func TestASeedGivesOneTrace(t *testing.T) {
	t.Parallel()
	unraced(t)
	for seed, seen := uint64(1), 0; seen < 6; seed++ {
		_, one := simulate(t, seed, withoutNothing)
		if bytes.Contains(one, []byte(" freezes for ")) || bytes.Count(one, []byte(" begins\n")) > 1 ||
			bytes.Contains(one, []byte(engine.TargetStepAdvance)) {
			continue
		}
		seen++
		_, other := simulate(t, seed, withoutNothing)
		if bytes.Equal(one, other) {
			continue
		}
		a, b := strings.Split(string(one), "\n"), strings.Split(string(other), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("seed %d: line %d\n%s\nis in another life\n%s\nafter\n%s", seed, i+1, a[i], b[i],
					strings.Join(a[max(0, i-8):i], "\n"))
				break
			}
		}
	}
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
	// keeper.TestAnEventIsStoredOnceHoweverLateItsCommit
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
	// crew.TestAnotherServerKnowsWhoMayStillBearLoad
	"a second server that took a run over gave away what the own node of the first one still bore": 3568,
	"a run ended ten minutes before its record, by what was known of another server's clock":       8402,
	// recovery.TestAPartThatComesMeanwhileIsKept
	"a part that was announced while its run was ended was forgotten": 4574,
}

func TestSeedsThatFailed(t *testing.T) {
	t.Parallel()
	unraced(t)
	for what, seed := range seedsThatFailed {
		t.Run(what, func(t *testing.T) { lived(t, seed) })
	}
}

// TestSeededBugsAreFound takes one rule out at a time, and looks for it with as many seeds as it
// has to be found within.
func TestSeededBugsAreFound(t *testing.T) {
	t.Parallel()
	unraced(t)
	for _, tc := range []struct {
		missing   without
		invariant string
		within    uint64
	}{
		{withoutFencing, "invariant 1:", 60},
		{withoutDeadline, "invariant 3:", 80},
		{withoutDeduplication, "invariant 7:", 40},
		{withoutStop, "invariant 7:", 40},
		{withoutCounting, "invariant 5:", 40},
		{withoutKeys, "invariant 7:", 120},
		{withoutLapse, "invariant 2:", 120},
		{withoutRooms, "invariant 1:", 80},
		{withoutDurability, "invariant 6:", 80},
		{withoutTargets, "invariant 3:", 80},
		{withoutAnswers, "invariant 8:", 80},
		{withoutHearing, "invariant 3:", 80},
		{withoutLease, "invariant 3:", 120},
		{withoutRows, "invariant 1:", 20},
		{withoutSteps, "invariant 9:", 80},
		{withoutClocks, "invariant 10:", 40},
		{withoutBounds, "invariant 3:", 80},
		{withoutLosses, "invariant 3:", 40},
	} {
		t.Run(string(tc.missing), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= tc.within; seed++ {
				wrong, _ := simulate(t, seed, tc.missing)
				for _, text := range wrong {
					if strings.Contains(text, tc.invariant) {
						t.Logf("seed %d: %s", seed, text)
						return
					}
				}
			}
			t.Errorf("%d seeds do not miss it", tc.within)
		})
	}
}
