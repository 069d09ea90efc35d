package snowsim

import (
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// why is the error of a statement that ended without one of Snowflake's: cancelled, or Postgres's.
func (j *job) why(err error, _ *translate.Session) *protocol.Error {
	if cause := context.Cause(j.ctx); cause != nil {
		return &protocol.Error{Code: protocol.CodeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
	}
	return explain(err)
}

// explain turns an error into one that Snowflake could have reported.
func explain(err error) *protocol.Error {
	var reported *protocol.Error
	if errors.As(translate.Error(err), &reported) {
		return reported
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &protocol.Error{Code: protocol.CodeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
	}
	return &protocol.Error{Code: "300002", State: "XX000", Message: "Processing aborted by error 300002: " + err.Error(),
		Cause: err}
}
