package query

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// NotPreparedError says why a run cannot start.
func NotPreparedError(run engine.Run) error {
	if run.Status.Live() {
		return &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("The run is %s since %s.", run.Status, run.StartTime.Format(engine.TimeLayout)),
			Hint:    "watch it, or create another run of the template"}
	}
	return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The run is %s already.", run.Status),
		Hint: "a run is started once; create another run of the template"}
}

// FinishedError says why a run that is over cannot be stopped.
func FinishedError(run engine.Run) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: fmt.Sprintf("The run is %s since %s; there is nothing to stop.", run.Status,
			run.EndTime.Format(engine.TimeLayout))}
}

// EnrichingError says why a run with an enrichment under way cannot be deleted.
func EnrichingError() error {
	return &engine.Error{Code: engine.CodeConflict, Message: "The enrichment of the run is under way.",
		Hint: "stop it, and delete the run then"}
}

// InUseError says why a run that a server carries, or computes the figures of, cannot be deleted.
func InUseError(run engine.Run) error {
	if run.Status.Terminal() {
		return &engine.Error{Code: engine.CodeConflict, Hint: "delete it again when they are there",
			Message: fmt.Sprintf("The run is %s, and its figures are being computed.", run.Status)}
	}
	return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The run is %s.", run.Status),
		Hint: "stop it, and delete it when it has ended"}
}

// releaseTimeout is how long AwaitReleased waits: longer than the figures of most runs take.
const releaseTimeout = 10 * time.Second

// AwaitReleased waits until nobody has a run in hand that has ended: its figures are shown a moment before
// its end is stored. refused says why it is not free yet, and whether it has ended.
func AwaitReleased(ctx context.Context, refused func() (ended bool, err error)) error {
	for begin := time.Now(); ; {
		ended, err := refused()
		if err == nil || !ended || !engine.HasCode(err, engine.CodeConflict) || time.Since(begin) > releaseTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
