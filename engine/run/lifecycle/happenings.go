package lifecycle

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// Happening is what happens to a run; the set is closed.
type Happening interface{ happening() }

type (
	// Begun says that the run has become RUNNING.
	Begun struct{}
	// Resumed says that another process goes on with the run.
	Resumed struct{}
	// Prepared says that the target is ready. MostLevel is the highest level that a search may try.
	Prepared struct{ MostLevel float64 }
	// PrepareFailed says that the target could not be made ready, or nobody waits for it any more.
	PrepareFailed struct{ Message string }
	// WorkerChanged says that a run worker reports a status.
	WorkerChanged struct {
		ID      string
		Status  engine.WorkerStatus
		Message string
		// StartIn is how far ahead the load begins, should all run workers be ready with this one: so
		// long START takes to them, so that they begin at one instant.
		StartIn time.Duration
	}
	// WorkerJoined says that a run worker was placed while the run goes on.
	WorkerJoined struct{ ID string }
	// WorkersLost says that the run workers have not been heard of for too long.
	WorkersLost struct{ IDs []string }
	// StopAsked says that a user, a guardrail or the server wants the run to end.
	StopAsked struct {
		Reason   engine.StopReason
		Sentence string
		By       string
	}
	// Ticked says that time has passed.
	Ticked struct{}
	// Measured is what the step of that number gave.
	Measured struct {
		Number   int
		Observed findmax.Observation
		// Length is the longest time that a run worker has measured.
		Length time.Duration
	}
	// MeasuredInVain says that the step of that number is to be measured again, under the
	// next number; what it gave says nothing.
	MeasuredInVain struct{ Number int }
	// Finished says that the figures are there. Enrich: the target's history is to be asked.
	Finished struct{ Enrich bool }
	// Enriched says that the history has been asked.
	Enriched struct{}
)

func (Begun) happening()          {}
func (Resumed) happening()        {}
func (Prepared) happening()       {}
func (PrepareFailed) happening()  {}
func (WorkerChanged) happening()  {}
func (WorkerJoined) happening()   {}
func (WorkersLost) happening()    {}
func (StopAsked) happening()      {}
func (Ticked) happening()         {}
func (Measured) happening()       {}
func (MeasuredInVain) happening() {}
func (Finished) happening()       {}
func (Enriched) happening()       {}
