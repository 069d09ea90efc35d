package simulation

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestSeedsOfStreams lives as many seeds as make test has time for, or LOADSTONE_SEEDS of them from
// LOADSTONE_FIRST_SEED on, or the one that LOADSTONE_SEED names, whose trace is printed whole.
func TestSeedsOfStreams(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("LOADSTONE_SEED"), 10, 64); err == nil {
		wrong, trace := liveStreams(t, seed, lacking(os.Getenv("LOADSTONE_WITHOUT")))
		t.Logf("%s", trace)
		for _, text := range wrong {
			t.Error(text)
		}
		return
	}
	n, first := uint64(200), uint64(1)
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
				livedStreams(t, seed)
			}
		})
	}
}

// livedStreams lives one seed and fails with what was broken, how to repeat it, and the end of its trace.
func livedStreams(t *testing.T, seed uint64) {
	t.Helper()
	wrong, trace := liveStreams(t, seed, lacksNothing)
	if len(wrong) == 0 {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(trace)), "\n")
	t.Errorf("seed %d:\n%s\nrepeat it: LOADSTONE_SEED=%d go test ./engine/simulation -run '^TestSeedsOfStreams$' -v\n"+
		"the end of its trace of %d lines:\n%s", seed, strings.Join(wrong, "\n"), seed, len(lines),
		strings.Join(lines[max(0, len(lines)-tail):], "\n"))
}

// TestASeedOfStreamsGivesOneTrace lives seeds twice: whatever crossed a border is the same, to the byte.
func TestASeedOfStreamsGivesOneTrace(t *testing.T) {
	t.Parallel()
	unraced(t)
	for seed := uint64(1); seed <= 20; seed++ {
		_, one := liveStreams(t, seed, lacksNothing)
		_, other := liveStreams(t, seed, lacksNothing)
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

// streamSeedsThatFailed are those that have found something, with what it was. A change of the simulation makes
// another story of a seed, so each has a test of its own beside the code that was wrong too.
var streamSeedsThatFailed = map[string]uint64{
	// keeptest: slots
	"a fragment that waited for its next attempt gave its slot away": 9,
	// coordinator.TestNothingRunsLongerThanItsLease
	"a query ran on two servers while a look hung at the store": 41,
	// coordinator.TestALeaseThatALookHasGotBackEnds
	"a query ran on two servers, since a lease that a look had got back was not ended": 8365,
	// coordinator.TestAQueryReadsWhatItWasAcceptedWith
	"a query that began anew read a physical source that it did not hold": 140,
	// life.TestWhatWasSentBeforeIsNotGone
	"a name was given free while a fragment of an earlier attempt ran on a node":             204,
	"a fragment of the server that was not ready in time was asked for, of nobody, for ever": 71,
	// keeptest: slots
	"a fragment that had ended before the others began anew without a slot": 6123,
	// coordinator.TestAWatchBeginsWithWhatIsThere
	"who watched, and went to another server, saw what had been before": 6871,
}

func TestStreamSeedsThatFailed(t *testing.T) {
	t.Parallel()
	unraced(t)
	for what, seed := range streamSeedsThatFailed {
		t.Run(what, func(t *testing.T) { livedStreams(t, seed) })
	}
}
