package live

import (
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// outageSecond is what run workers told of one.
func outageSecond(ended, failed int64, active, lost int, dropped int64) *Second {
	return &Second{
		Snapshots: []engine.WorkerSnapshot{{WorkerID: "worker-0", Phase: engine.PhaseMeasurement, TickSeconds: 1,
			TickStarted: ended, TickErrors: failed, TickDropped: dropped, ActiveConnections: active, TargetConnections: 10,
			Connections: engine.ConnectionFigures{Lost: int64(lost)}}},
	}
}

// TestAnOutageIsBorneForAsLongAsAsked: from its first second on, and another one after it anew.
func TestAnOutageIsBorneForAsLongAsAsked(t *testing.T) {
	w := NewOutageWatch(10 * time.Second)
	at := epoch
	var borne []bool
	see := func(n int, s *Second) {
		for range n {
			at = at.Add(time.Second)
			borne = append(borne, w.Observe(at, s))
		}
	}
	see(5, outageSecond(100, 1, 10, 0, 0))
	see(3, outageSecond(0, 0, 0, 10, 7)) // away: nothing ends
	see(1, outageSecond(90, 80, 10, 10, 0))
	see(16, outageSecond(100, 1, 10, 10, 0))
	see(20, outageSecond(90, 90, 10, 20, 0)) // another one, which lasts longer
	want := slices.Concat(slices.Repeat([]bool{false}, 5), slices.Repeat([]bool{true}, 10),
		slices.Repeat([]bool{false}, 10), slices.Repeat([]bool{true}, 10), slices.Repeat([]bool{false}, 10))
	if !slices.Equal(borne, want) {
		t.Errorf("borne in the seconds\n%v, want\n%v", borne, want)
	}
	outages := []engine.Outage{{LastSuccess: engine.At(epoch.Add(5 * time.Second)), DownSeconds: 3},
		{LastSuccess: engine.At(epoch.Add(25 * time.Second)), DownSeconds: 20}}
	drops, known := w.Dropped()
	if AddDropped(outages, drops); !known || *outages[0].Dropped != 21 || *outages[1].Dropped != 0 {
		t.Errorf("%d and %d were dropped", *outages[0].Dropped, *outages[1].Dropped)
	}
	none := NewOutageWatch(0)
	if none.Observe(at, outageSecond(9, 9, 0, 1, 4)) {
		t.Error("a run that bears none bears an outage")
	}
	if drops, known := none.Dropped(); !known || len(drops) != 1 || drops[0].Count != 4 {
		t.Errorf("it has dropped %+v", drops)
	}
	if none.JoinLate(); func() bool { _, known := none.Dropped(); return known }() {
		t.Error("what was dropped before a watch began is known to it")
	}
}

// TestAnOutageThatIsBorneIsNoCause: of failures, missing connections, waits and drops; the generator's lateness is one.
func TestAnOutageThatIsBorneIsNoCause(t *testing.T) {
	for _, tolerated := range []bool{true, false} {
		v := NewValidity()
		for i := range 12 {
			at := epoch.Add(time.Duration(i+1) * time.Second)
			v.Outcome(Outcome{From: epoch, To: at, Operations: 1000, Errors: 100, Scheduled: 2000, Dropped: 600})
			s := outageSecond(100, 0, 10, 0, 0)
			if i >= 3 && i < 9 {
				s = outageSecond(60, 60, 0, 10, 100)
				s.Tolerated = tolerated
				s.Workers = []WorkerSample{{WorkerID: "worker-0", Newest: at, Missing: 10, Target: 10, Dropped: 100, Scheduled: 160,
					PoolWaitMs: new(900.0), ServiceMs: new(2.0)}}
			}
			v.Observe(at, engine.PhaseMeasurement, s)
		}
		v.Outcome(Outcome{From: epoch, To: epoch.Add(12 * time.Second), Operations: 1000, Errors: 100, Scheduled: 2000,
			Dropped: 600, Ended: true})
		causes := v.Clone().Verdict().Causes
		if tolerated == (len(causes) > 0) {
			t.Errorf("tolerated %v: %+v", tolerated, causes)
		}
	}
}
