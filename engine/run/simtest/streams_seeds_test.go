package simtest

import "testing"

// ofStreams are the lives of the catalog of streams, its reconcilers and fragments.
var ofStreams = story{"TestSeedsOfStreams", func(t *testing.T, seed uint64, lacks string) ([]string, []byte) {
	return liveStreams(t, seed, lacking(lacks))
}, 200}

// TestSeedsOfStreams lives seeds of the catalog of streams.
func TestSeedsOfStreams(t *testing.T) { ofStreams.seeds(t) }

// TestASeedOfStreamsGivesOneTrace lives seeds twice.
func TestASeedOfStreamsGivesOneTrace(t *testing.T) {
	ofStreams.twice(t, 20, func([]byte) bool { return true })
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
	// coordinator.TestClocksThatAreOff, life.TestNobodyWaitsForAnotherClock
	"a query waited for an hour, or was never given up, since another server's clock was an hour ahead": 14,
	// coordinator.TestAWatchBeginsWithWhatIsThere
	"who watched, and went to another server, saw what had been before": 6871,
}

func TestStreamSeedsThatFailed(t *testing.T) { ofStreams.failed(t, streamSeedsThatFailed) }
