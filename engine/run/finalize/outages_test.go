package finalize

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/run/live"
)

// outagesFound answers with outages.
type outagesFound struct {
	record.Results
	found []engine.Outage
	err   error
}

func (o outagesFound) Outages(
	context.Context,
	string,
	time.Time,
	time.Time,
	time.Time,
) ([]engine.Outage, int64, error) {
	return o.found, 7, o.err
}

// TestOutagesTellWhichServersAnswered: what was seen last before an outage, and first after it; a run that does not
// reconnect has none, and one whose record cannot be read says so.
func TestOutagesTellWhichServersAnswered(t *testing.T) {
	from := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) engine.Time {
		return engine.At(from.Add(time.Duration(seconds * float64(time.Second))))
	}
	seen := func(first, last float64, address, role string) Server {
		return Server{engine.ServerIdentity{At: at(first), Address: address, Role: role, StartedAt: at(-100)}, at(last).Time}
	}
	run := engine.Run{RunID: "r", WarmupStartTime: at(0)}
	run.Scenario.Workload.OnDisconnect = engine.DisconnectReconnect
	e := Evidence{Run: run, Validity: live.NewValidity(), DropsKnown: true,
		Dropped: []live.Drops{{At: at(12).Time, Count: 5}},
		Servers: []Server{seen(0, 9.5, "a:5432", "primary"), seen(13.5, 40, "b:5432", "primary")}}
	found := func() outagesFound {
		return outagesFound{found: []engine.Outage{{LastSuccess: at(10), FirstSuccess: at(13), DownSeconds: 3, Failed: 4},
			{LastSuccess: at(50), DownSeconds: 10, ToTheEnd: true}}}
	}
	svc := New(Options{Log: zerolog.Nop(), Results: found()})
	f := &engine.Figures{MeasuredFrom: at(1), MeasuredTo: at(60)}
	f.Outages, f.UnknownOutcomes = svc.outages(t.Context(), e, f)
	if len(f.Outages) != 2 || f.Outages[0].Before.Address != "a:5432" || f.Outages[0].After.Address != "b:5432" ||
		*f.Outages[0].Dropped != 5 || f.Outages[1].Before.Address != "b:5432" || f.Outages[1].After != nil {
		t.Fatalf("%+v", f.Outages)
	}
	noteOutages(e.Validity, f)
	if notes := e.Validity.Verdict().Notes; len(notes) != 2 ||
		!strings.Contains(notes[0], "Outage 1: down for 3 s") || !strings.Contains(notes[0], "another server answers") ||
		!strings.Contains(notes[1], "to the end of the load") {
		t.Errorf("%q", notes)
	}
	f.Failing = []engine.FailingTime{{From: at(9.5), Seconds: 4}, {From: at(30), Seconds: 4}, {From: at(50), Seconds: 10}}
	if told := failingTimes(f, 5*time.Second); len(told) != 2 || !told[0].From.Equal(at(30).Time) ||
		!told[1].From.Equal(at(50).Time) {
		t.Errorf("of the times in which operations failed %+v are told", told)
	}
	e.DropsKnown, svc.opts.Results = false, found()
	if f.Outages, f.UnknownOutcomes = svc.outages(t.Context(), e, f); f.Outages[0].Dropped != nil {
		t.Error("what was dropped before another server took the run over is not known")
	}
	e.Run.Scenario.Workload.OnDisconnect = engine.DisconnectFail
	if got, unknown := svc.outages(t.Context(), e, f); got != nil || unknown != nil {
		t.Error("a run that does not reconnect has outages")
	}
	e.Run.Scenario.Workload.OnDisconnect = engine.DisconnectReconnect
	svc.opts.Results = outagesFound{}
	if got, unknown := svc.outages(t.Context(), e, f); got == nil || len(got) != 0 || unknown == nil || *unknown != 7 {
		t.Errorf("without an outage: %v", got)
	}
	svc.opts.Results = outagesFound{err: errors.New("no disk")}
	if got, unknown := svc.outages(t.Context(), e, f); got != nil || unknown != nil ||
		!strings.Contains(strings.Join(e.Validity.Verdict().Notes, " "), "could not be looked for") {
		t.Errorf("a record that cannot be read: %v", got)
	}
}
