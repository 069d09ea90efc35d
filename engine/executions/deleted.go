package executions

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// Deleted says that the single executions of a run were deleted, "" where they were not.
func Deleted(r engine.Run) string {
	if r.ExecutionsDeletedAt.IsZero() {
		return ""
	}
	by := ""
	if r.ExecutionsDeletedBy != "" {
		by = " by " + r.ExecutionsDeletedBy
	}
	return fmt.Sprintf("The single executions of this run were deleted on %s%s; its figures, charts and log are there.",
		r.ExecutionsDeletedAt.UTC().Format(time.DateOnly), by)
}

// Gone is the error about executions that were deleted, nil where they were not.
func Gone(r engine.Run) error {
	sentence := Deleted(r)
	if sentence == "" {
		return nil
	}
	return &engine.Error{Code: engine.CodeNotFound, Message: sentence,
		Hint: "Runs with a note, a tag or a link, and the baselines of templates, keep theirs."}
}
