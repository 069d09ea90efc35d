package protocol

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// The sentence of a run worker without contact. Nodes of all versions write it, and servers know it by these words.
const (
	outOfContactBegin = "%s stopped by itself: for "
	outOfContactEnd   = " s no owner of the run has acknowledged what its node reports."
)

// OutOfContact is why a run worker has stopped that no owner of its run has acknowledged for so long.
func OutOfContact(workerID string, silence time.Duration) *engine.Error {
	return &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf(outOfContactBegin+"%.0f"+outOfContactEnd, workerID, silence.Seconds())}
}

// WasOutOfContact reports whether a run worker has stopped for want of contact, rather than with its node.
func (w WorkerState) WasOutOfContact() bool {
	return w.Err != nil && w.Err.Code == engine.CodeUnavailable &&
		strings.HasPrefix(w.Err.Message, fmt.Sprintf(outOfContactBegin, w.WorkerID)) &&
		strings.HasSuffix(w.Err.Message, outOfContactEnd)
}
