package lifecycle

import (
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/findmax"
)

// Event is what happens to a run; the set is closed.
type Event interface{ event() }

type (
	// RunStarted says that the run has become RUNNING.
	RunStarted struct{}
	// RunResumed says that another process goes on with the run.
	RunResumed struct{}
	// Prepared says that the target is ready. MostLevel is the highest level that a search may try.
	Prepared struct{ MaxLevel float64 }
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
	// WorkersLost says that run workers have not been heard of for too long, or, with a message, why they have left.
	WorkersLost struct {
		IDs     []string
		Message string
	}
	// StopRequested says that a user, a guardrail or the server wants the run to end.
	StopRequested struct {
		Reason  engine.StopReason
		Message string
		By      string
	}
	// Tick says that time has passed.
	Tick struct{}
	// StepMeasured is what the step of that number gave.
	StepMeasured struct {
		Number      int
		Observation findmax.Observation
		// Length is the longest time that a run worker has measured.
		Length time.Duration
	}
	// StepInvalid says that the step of that number is to be measured again, under the
	// next number; what it gave says nothing.
	StepInvalid struct{ Number int }
	// FiguresReady says that the figures are there. Enrich: the target's history is to be asked.
	FiguresReady struct{ Enrich bool }
	// EnrichmentDone says that the history has been asked.
	EnrichmentDone struct{}
)

func (RunStarted) event()     {}
func (RunResumed) event()     {}
func (Prepared) event()       {}
func (PrepareFailed) event()  {}
func (WorkerChanged) event()  {}
func (WorkerJoined) event()   {}
func (WorkersLost) event()    {}
func (StopRequested) event()  {}
func (Tick) event()           {}
func (StepMeasured) event()   {}
func (StepInvalid) event()    {}
func (FiguresReady) event()   {}
func (EnrichmentDone) event() {}

// ReasonUser is the reason that users read of a run that one of them has stopped.
const ReasonUser = "User requested cancellation"

// UserStop is what a user wants who stops a run.
func UserStop(by string) StopRequested {
	return StopRequested{Reason: engine.StopUserRequested, Message: ReasonUser, By: by}
}
