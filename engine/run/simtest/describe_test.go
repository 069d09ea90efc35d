package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// engineResources are those that a node tells of itself.
var engineResources = engine.Resources{CPUPercent: 5}

// describe tells a message in the trace. about orders messages of one moment: those of the node
// itself are before those of its run workers, of which each keeps its own order.
func describe(m any) (about, what string) {
	of := func(run, worker string) string { return "2 " + run + " " + worker }
	switch m := m.(type) {
	case protocol.Hello:
		for _, w := range m.Workers {
			what += fmt.Sprintf(" %s/%s=%s", w.RunID, w.WorkerID, w.Status)
		}
		for _, p := range m.Parts {
			what += " " + p.WorkID
		}
		return "0", "Hello" + what
	case protocol.Status:
		return "1 Status", fmt.Sprintf("Status accepting=%t", m.AcceptingWork)
	case protocol.Pong:
		return "1 Pong", fmt.Sprintf("Pong %d", m.Seq)
	case protocol.RunAccepted:
		return "1 Run", "RunAccepted " + m.WorkerID
	case protocol.RunRejected:
		return "1 Run", "RunRejected " + m.WorkerID
	case protocol.WorkerState:
		what = fmt.Sprintf("WorkerState %s %s %s event=%d", m.WorkerID, m.Status, m.Phase, m.LastSequence)
		if m.Totals != nil {
			what += fmt.Sprintf(" started=%d", m.Totals.Started)
		}
		return of(m.RunID, m.WorkerID), what
	case protocol.Snapshot:
		return of(m.RunID, m.WorkerID),
			fmt.Sprintf("Snapshot %s tick=%d %s started=%d", m.WorkerID, m.Tick, m.Phase, m.Started)
	case protocol.Log:
		return of(m.RunID, m.WorkerID), "Log " + m.Message
	case protocol.WorkReady:
		return of(m.Artifact.RunID, m.Artifact.WorkerID), fmt.Sprintf("WorkReady %s rows=%d salvaged=%t", m.WorkID,
			m.Artifact.RowCount, m.Salvaged)
	case protocol.Ping:
		return "1 Ping", fmt.Sprintf("Ping %d", m.Seq)
	case protocol.StatusAck:
		owned := make([]string, len(m.Runs))
		for i, r := range m.Runs {
			owned[i] = fmt.Sprintf(" %s@%d", r.RunID, r.Epoch)
		}
		slices.Sort(owned)
		return "1 StatusAck", "StatusAck" + strings.Join(owned, "")
	case protocol.AssignRun:
		return of(m.RunID, ""), fmt.Sprintf("AssignRun %s@%d of %d", m.WorkerID, m.Epoch, m.Workers)
	case protocol.RunEvent:
		return of(m.Event.RunID, ""), fmt.Sprintf("RunEvent %d@%d %s %s %s", m.Event.SequenceID, m.Epoch, m.Event.Type,
			m.Event.Data.Phase, m.Event.Data.Reason)
	case protocol.RunState:
		var targets string
		for _, id := range slices.Sorted(maps.Keys(m.Targets)) {
			if q := m.Targets[id].TargetQPS; q != nil {
				targets += fmt.Sprintf(" %s=%.3f", id, *q)
			}
		}
		return of(m.RunID, ""), fmt.Sprintf("RunState %d@%d %s %s%s", m.LastSequence, m.Epoch, m.Status, m.Phase, targets)
	case protocol.ArtifactAck:
		return "3 " + m.RunID + " " + m.WorkerID, "ArtifactAck " + m.WorkerID + " " + m.Name
	case protocol.WorkerAck:
		return "3 " + m.RunID + " " + m.WorkerID, "WorkerAck " + m.WorkerID
	}
	return "4", fmt.Sprintf("%T", m)
}
