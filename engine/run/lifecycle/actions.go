package lifecycle

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Action is what is to be done for a run; the set is closed.
type Action interface{ action() }

type (
	// Prepare makes the target ready; Prepared or PrepareFailed answers.
	Prepare struct{}
	// CancelPrepare ends the preparation; PrepareFailed or Prepared still answers.
	CancelPrepare struct{}
	// AssignWorkers gives the run workers to nodes.
	AssignWorkers struct{}
	// MarkLost marks run workers dead that did not leave in time.
	MarkLost struct {
		IDs    []string
		Reason string
	}
	// SendTargets tells the run workers their first targets.
	SendTargets struct{}
	// BeginStage says that the stage of that index has begun, at that time.
	BeginStage struct {
		Index int
		At    time.Time
	}
	// BeginStep brings the run workers to a level of the search: Settle passes, then Length is measured.
	BeginStep struct {
		Number         int
		Settle, Length time.Duration
		Level          float64
		Stage          engine.SearchStage
	}
	// MeasureStep asks for StepMeasured now, with what there is.
	MeasureStep struct{ Number int }
	// RecordStep keeps a step that has been judged.
	RecordStep struct{ Step engine.FindMaxStep }
	// SkipStep says why a step was not judged.
	SkipStep struct {
		Number int
		Level  float64
		Stage  engine.SearchStage
		Why    string
	}
	// ComputeFigures follows when all run workers have left; FiguresReady answers.
	ComputeFigures struct{}
	// StartEnrichment asks the target's history; EnrichmentDone answers.
	StartEnrichment struct{}
	// End says that nothing is left to do.
	End struct{}
)

// Change is a transition of the run with its events, allowed from From alone.
// The times that are not zero are new.
type Change struct {
	From engine.Status
	// To is the new status; empty leaves it.
	To engine.Status
	// Phase is the new phase; nil leaves it.
	Phase              *engine.Phase
	StopReason         engine.StopReason
	CancellationReason string

	WarmupStartTime, WarmupEndTime, MeasurementEndTime, EndTime time.Time

	Events []engine.Event
	// Urgent events go to the run workers at once, the store follows.
	Urgent bool
}

func (Prepare) action()         {}
func (CancelPrepare) action()   {}
func (AssignWorkers) action()   {}
func (Change) action()          {}
func (MarkLost) action()        {}
func (SendTargets) action()     {}
func (BeginStage) action()      {}
func (BeginStep) action()       {}
func (MeasureStep) action()     {}
func (RecordStep) action()      {}
func (SkipStep) action()        {}
func (ComputeFigures) action()  {}
func (StartEnrichment) action() {}
func (End) action()             {}
