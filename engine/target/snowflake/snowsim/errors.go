package snowsim

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/target/snowflake/snowsim/plan"
)

// why is the error of a statement that ended without one of Snowflake's: cancelled, or Postgres's.
func (j *job) why(err error, _ *plan.Session) *plan.Error {
	if cause := context.Cause(j.ctx); cause != nil {
		return &plan.Error{Code: codeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
	}
	return explain(err)
}

// duplicate finds the key of "Key (id)=(1) already exists.".
var duplicate = regexp.MustCompile(`\(([^)]*)\)=\(`)

// explain turns an error into one that Snowflake could have reported.
func explain(err error) *plan.Error {
	var reported *plan.Error
	if errors.As(err, &reported) {
		return reported
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return &plan.Error{Code: codeCancelled, State: "57014", Message: "SQL execution canceled", Cause: err}
		}
		return &plan.Error{Code: "300002", State: "XX000", Message: "Processing aborted by error 300002: " + err.Error(), Cause: err}
	}
	with := func(e *plan.Error) *plan.Error {
		e.Cause = err
		return e
	}
	switch pg.Code {
	case "42P01", "42704", "3F000", "42883":
		if pg.Code == "42883" {
			return with(plan.CompilationError("002140", "42601", "Unknown function. (%s)", pg.Message))
		}
		return with(plan.DoesNotExist("Object", strings.ToUpper(quotedIn(pg.Message))))
	case "42703":
		return with(plan.CompilationError("000904", "42000", "error line 1 at position %d\ninvalid identifier '%s'", max(pg.Position-1, 0), strings.ToUpper(quotedIn(pg.Message))))
	case "42601", "42P02":
		return with(plan.SyntaxError("syntax error line 1 at position %d unexpected '%s'.", max(pg.Position-1, 0), quotedIn(pg.Message)))
	case "42P07", "42710", "42P06":
		return with(plan.CompilationError("002002", "42710", "Object '%s' already exists.", strings.ToUpper(quotedIn(pg.Message))))
	case "23505":
		key := ""
		if m := duplicate.FindStringSubmatch(pg.Detail); m != nil {
			key = strings.ToUpper(m[1])
		}
		return with(&plan.Error{Code: "200001", State: "22000", Message: "A primary key already exists. (" + key + ")"})
	case "23502":
		return with(&plan.Error{Code: "100072", State: "22000", Message: "NULL result in a non-nullable column"})
	case "23503":
		return with(&plan.Error{Code: "200009", State: "22000", Message: "Foreign key constraint \"" + pg.ConstraintName + "\" was violated."})
	case "22P02", "22003":
		if pg.Code == "22003" {
			return with(&plan.Error{Code: "100046", State: "22003", Message: "Numeric value is out of range: " + pg.Message})
		}
		return with(&plan.Error{Code: "100038", State: "22018", Message: "Numeric value '" + quotedIn(pg.Message) + "' is not recognized"})
	case "22007", "22008":
		return with(&plan.Error{Code: "100040", State: "22007", Message: "Date '" + quotedIn(pg.Message) + "' is not recognized"})
	case "22012":
		return with(&plan.Error{Code: "100051", State: "22012", Message: "Division by zero"})
	case "22001":
		return with(&plan.Error{Code: "100078", State: "22000", Message: "String is too long and would be truncated"})
	case "40P01", "40001":
		return with(&plan.Error{Code: "000625", State: "57014", Message: "Statement was aborted because the transaction was aborted: " + pg.Message})
	case "55P03":
		return with(&plan.Error{Code: "000625", State: "57014", Message: "Statement was aborted because it waited too long for a lock."})
	case "57014":
		return with(&plan.Error{Code: codeCancelled, State: "57014", Message: "SQL execution canceled"})
	}
	return with(&plan.Error{Code: "300002", State: pg.Code, Message: "Processing aborted by error 300002: " + pg.Message})
}

// quotedIn is what stands in quotation marks in a message of Postgres.
func quotedIn(message string) string {
	_, rest, found := strings.Cut(message, `"`)
	if !found {
		return message
	}
	if i := strings.LastIndexByte(rest, '"'); i >= 0 {
		return rest[:i]
	}
	return rest
}
