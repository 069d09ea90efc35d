package refresh

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// noRelation is what Postgres says of a table that is not there.
var noRelation = regexp.MustCompile(`^relation "(?:tables\.)?(.+)" does not exist$`)

// Unmade words an error about a definition that reads a derived table which has not been refreshed yet: the database
// knows of no such table then. Other errors stay as they are.
func Unmade(err error, tables []Table) error {
	var e *engine.Error
	if !errors.As(err, &e) {
		return err
	}
	for _, f := range e.Fields {
		m := noRelation.FindStringSubmatch(f.Message)
		for _, t := range tables {
			if m == nil || !t.AsOf.IsZero() || t.Name != m[1] && strings.ToLower(t.Name) != m[1] {
				continue
			}
			out := &engine.Error{Code: engine.CodeUnavailable, Cause: err,
				Message: fmt.Sprintf("The table %q has not been refreshed yet: it has no columns until then.", t.Name),
				Hint:    "Try again in a moment. Its page says what its refresh waits for."}
			if t.Status != Active {
				out.Code = engine.CodeConflict
				out.Hint = fmt.Sprintf("It is %s: resume it, or mend what its page says.", t.Status)
			}
			return out
		}
	}
	return err
}
