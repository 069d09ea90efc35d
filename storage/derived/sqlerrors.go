package derived

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/loadstone-db/loadstone/engine"
)

// queryError is what the database says of a user's query, at its place in the text.
func queryError(err error, text string) error { return sqlError(err, "sql", text, 0) }

// definitionError is what it says of a definition, which was sent inside whole.
func definitionError(err error, text string) error {
	return sqlError(err, "definition", text, len(definitionPrefix))
}

// sqlError puts the refusal of the database into words. The text begins after so many characters of what was sent.
func sqlError(err error, field, text string, before int) error {
	var message *pgconn.PgError
	var own *engine.Error
	var long *pgproto3.ExceededMaxBodyLenErr
	switch {
	case errors.As(err, &own):
		return err
	case errors.As(err, &long):
		return &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The SQL returns a row of %d bytes, and %d are the most that is read.", long.ActualBodyLen,
				long.MaxExpectedBodyLen), Hint: "Shorten its values: left(…, 1000), or count what they are made of."}
	}
	if !errors.As(err, &message) || strings.HasPrefix(message.Code, "57P") ||
		strings.HasPrefix(message.Code, "53") && message.Code != codeLimit &&
			message.Code != codeMemory {
		return wrapError("executing SQL", err)
	}
	e := &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: "The database refuses the SQL: " + message.Message +
		".",
		Hint: message.Hint}
	switch message.Code {
	case "57014":
		return tookTooLong(err)
	case codeMemory:
		e.Message = "The SQL needs more memory than it may have: " + message.Message + "."
		e.Hint = "Build smaller values and lists: fewer rows in string_agg and array_agg, fewer runs."
	case codeLimit:
		e.Message = "The SQL needs more temporary files than it may have: " + message.Message + "."
		e.Hint = "Sort and join fewer rows: fewer runs, or what is added up already."
	case "42501", "25006":
		e.Hint = "Results can be read; nothing can be written, and functions with side effects cannot be called."
	}
	if line, column := lineAndColumn(text, int(message.Position)-before); line > 0 {
		e.Message = "The database refuses the SQL."
		e.Fields = []engine.FieldError{{Field: field, Message: message.Message, Hint: e.Hint, Line: line, Column: column}}
		e.Hint = ""
	}
	return e
}

func tookTooLong(err error) error {
	return &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: "The SQL took longer than it may.",
		Hint: "Ask for less: fewer runs, fewer rows."}
}

// dependencyError words the refusal to make a table anew, or to drop it, on which something depends that is not
// Loadstone's: a view, say, that an administrator has made. Other errors stay as they are.
func dependencyError(err error, table string) error {
	var message *pgconn.PgError
	if !errors.As(err, &message) || message.Code != "2BP01" {
		return err
	}
	return &engine.Error{Code: engine.CodeConflict, Cause: err,
		Message: fmt.Sprintf("Something in the results database depends on the table %q, which is to be made anew "+
			"or dropped: %s.", table, strings.ReplaceAll(strings.TrimSpace(message.Detail), "\n", "; ")),
		Hint: "Drop or change that there first."}
}

// lineAndColumn is the line and the column, from 1, of a character of a text; 0 when it is before the text, or there is
// none. What is behind the text is missing at its end.
func lineAndColumn(text string, character int) (line, column int) {
	if character < 1 || text == "" {
		return 0, 0
	}
	runes := []rune(strings.TrimRight(text, " \t\r\n"))
	line, column = 1, 1
	for _, r := range runes[:min(character-1, len(runes))] {
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}
