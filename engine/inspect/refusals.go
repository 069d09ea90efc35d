package inspect

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine"
)

// NotPrepared says why a run cannot start.
func NotPrepared(run engine.Run) error {
	if run.Status.Live() {
		return &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("The run is %s since %s.", run.Status, run.StartTime.Format(engine.TimeLayout)),
			Hint:    "watch it, or create another run of the template"}
	}
	return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("The run is %s already.", run.Status),
		Hint: "a run is started once; create another run of the template"}
}

// Finished says why a run that is over cannot be stopped.
func Finished(run engine.Run) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: fmt.Sprintf("The run is %s since %s; there is nothing to stop.", run.Status,
			run.EndTime.Format(engine.TimeLayout))}
}
