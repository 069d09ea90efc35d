package live

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Fewer connections than asked are never valid in silence.
func TestConnectionsShortDegrades(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a, v := New(), NewValidity()
	for tick := int64(1); tick <= 6; tick++ {
		at := begin.Add(time.Duration(tick) * time.Second)
		s := &engine.WorkerSnapshot{WorkerID: "worker-0", Tick: tick, Phase: engine.PhaseMeasurement,
			Timestamp: engine.At(at), TickSeconds: 1, TickStarted: 10, Started: 10 * tick,
			ActiveConnections: 16, TargetConnections: 16}
		if tick >= 3 && tick <= 5 {
			s.ActiveConnections, s.Missing, s.Refusal = 8, 8, "Opening a connection failed: too many connections for role."
			s.Connections = engine.ConnectionFigures{Refused: 20 * tick, MaxMissing: 8}
		}
		a.Add(s)
		second := a.Tick(engine.PhaseMeasurement,
			[]Worker{{WorkerID: "worker-0", Status: engine.WorkerRunning, LastHeartbeat: at}})
		v.Observe(at, engine.PhaseMeasurement, second)
		if c := second.Payload.Connections; tick == 4 &&
			(c.Missing != 8 || c.Refused != 80 || c.Active != 8 || c.Target != 16) {
			t.Errorf("payload: %+v", c)
		}
	}
	verdict := v.Verdict()
	if verdict.Verdict != engine.VerdictDegraded || len(verdict.Causes) != 1 ||
		verdict.Causes[0].Cause != engine.CauseConnectionsShort ||
		!strings.Contains(verdict.Causes[0].Detail,
			"up to 8 of 16 connections were not open, for 3 s: Opening a connection failed: too many connections for role") {
		t.Errorf("%+v", verdict)
	}
}
