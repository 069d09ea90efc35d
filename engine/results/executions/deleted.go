package executions

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// DeletedNotice says that the single executions of a run were deleted, "" where they were not.
func DeletedNotice(r engine.Run) string {
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

// DeletedError is that of work on single executions that were deleted while it went on.
type DeletedError struct{ Sentence string }

func (d DeletedError) Error() string { return d.Sentence }

// WithDeletionCheck is prove, and asks besides whether the executions of a run were deleted since. Parts are read for
// minutes: what was deleted meanwhile would look like parts that are lost, and replace what was taken in before. The
// error is a DeletedError.
func WithDeletionCheck(prove func(context.Context) error, runID string,
	detail func(context.Context, string) (engine.RunDetail, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		d, err := detail(ctx, runID)
		if err != nil {
			return fmt.Errorf("reading run %s again: %w", runID, err)
		}
		if gone := DeletedNotice(d.Run); gone != "" {
			return DeletedError{gone}
		}
		return prove(ctx)
	}
}

// CheckDeleted is the error about executions that were deleted, nil where they were not.
func CheckDeleted(r engine.Run) error {
	sentence := DeletedNotice(r)
	if sentence == "" {
		return nil
	}
	return &engine.Error{Code: engine.CodeNotFound, Message: sentence,
		Hint: "Runs with a note, a tag or a link, and the baselines of templates, keep theirs."}
}
