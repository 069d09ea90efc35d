package store

import (
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// ConcurrentEditError is the ErrConflict about a thing that somebody else has saved since it was read.
func ConcurrentEditError(what, name, by string, at engine.Time, current int64) error {
	if by == "" {
		by = "somebody else"
	}
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict,
		Message: fmt.Sprintf("The %s %q was changed by %s at %s, after you had opened it.", what, name, by,
			at.UTC().Format(time.DateTime)+" UTC"),
		Hint:   "Load it again and repeat your change.",
		Fields: []engine.FieldError{{Field: "version", Message: fmt.Sprintf("is no longer current: that is %d", current)}}}
}

// concurrentChangeError is the ErrConflict about what is no longer as it was seen, for what is compared and has no
// version.
func concurrentChangeError(message, was string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: ErrConflict, Message: message,
		Hint:   "Load it again and repeat your change.",
		Fields: []engine.FieldError{{Field: "was", Message: was}}}
}
