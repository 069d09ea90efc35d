package snowsim

import (
	"context"
	"errors"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
)

// why is the error of a statement that ended without one of Snowflake's: cancelled, or Postgres's.
func (j *job) why(err error, _ *plan.Session) *plan.Error {
	if cause := context.Cause(j.ctx); cause != nil {
		return &plan.Error{Code: protocol.CodeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
	}
	return explain(err)
}

// explain turns an error into one that Snowflake could have reported.
func explain(err error) *plan.Error {
	var reported *plan.Error
	if errors.As(catalog.Error(err), &reported) {
		return reported
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &plan.Error{Code: protocol.CodeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
	}
	return &plan.Error{Code: "300002", State: "XX000", Message: "Processing aborted by error 300002: " + err.Error(),
		Cause: err}
}
