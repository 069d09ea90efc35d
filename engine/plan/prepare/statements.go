package prepare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// maxStatements keeps the indexes of the frozen list below the control statements of a batch.
const maxStatements = 65_000

var bindTypes = []engine.ValueType{engine.TypeI64, engine.TypeF64, engine.TypeText, engine.TypeBytes, engine.TypeBool,
	engine.TypeTimestamp}

// checkSupport refuses, before anything is looked at or made, what the table type
// cannot do. It asks for the statements on the tables as the workload declares
// them; where those of the target decide, freeze is the judge.
func (r *resolved) checkSupport(ctx context.Context, sc engine.Scenario) error {
	m := r.adapter.Info().Manifest
	if len(m.Kinds) == 0 && (m.Supports == nil || !m.Supports.ReadOnly) {
		return nil
	}
	wanted, err := r.workload.Statements(ctx, r.params, r.declaredTables(sc))
	if err != nil {
		// The workload does not go with its own table, and may go with the one that is there.
		return ctx.Err()
	}
	return supported(r.adapter.Info(), wanted)
}

// supported refuses kinds of operation that the table type does not have.
func supported(adapter plugin.Info, wanted []plugin.Statement) error {
	m := adapter.Manifest
	readOnly := m.Supports != nil && m.Supports.ReadOnly
	var refused []string
	var fields []engine.FieldError
	for _, s := range wanted {
		what := s.Kind.String()
		if len(m.Kinds) == 0 || slices.Contains(m.Kinds, s.Kind) {
			if !readOnly || !s.Writes {
				continue
			}
			what = "statements that write"
		}
		if !slices.Contains(refused, what) {
			refused = append(refused, what)
		}
		field := engine.FieldError{Field: "workload.plugin", Message: fmt.Sprintf("asks for %s (%s)", what, s.ID)}
		if s.Param != "" {
			field.Field = paramsField + "." + s.Param
		}
		if !slices.ContainsFunc(fields, func(f engine.FieldError) bool { return f.Field == field.Field }) {
			fields = append(fields, field)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	var names []string
	for _, k := range m.Kinds {
		names = append(names, k.String())
	}
	message, hint := fmt.Sprintf("The table type %s does not support %s", adapter.Name, strings.Join(refused, ", ")),
		fmt.Sprintf("%s supports %s", adapter.Name, strings.Join(names, ", "))
	if m.Supports != nil && m.Supports.Reason != "" {
		message += ": " + m.Supports.Reason
	}
	if m.Supports != nil && m.Supports.Instead != "" {
		hint = m.Supports.Instead
	}
	for i := range fields {
		fields[i].Hint = hint
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: strings.TrimRight(message, ".") + ".", Fields: fields}
}

// validate checks the list before it is frozen. A violation is the adapter's (or the workload's) fault.
func validate(adapter plugin.Info, wanted []plugin.Statement, list []engine.Statement) error {
	refuse := func(format string, args ...any) error {
		return &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The statements that the plugin %s wrote cannot be used: ", adapter.Name) + fmt.Sprintf(format,
				args...),
			Hint: "the plugin's author has to correct it"}
	}
	switch {
	case len(list) == 0:
		return &engine.Error{Code: engine.CodeInvalid, Message: "The workload has no statement to execute.",
			Fields: []engine.FieldError{{Field: paramsField, Message: "leave nothing to do",
				Hint: "give at least one kind of operation a weight above 0"}}}
	case len(list) > maxStatements:
		return refuse("%d statements are more than the %d allowed", len(list), maxStatements)
	case len(list) != len(wanted):
		return refuse("%d came back for the %d that the workload declared", len(list), len(wanted))
	}
	seen := make(map[string]bool, len(list))
	for i, s := range list {
		switch {
		case s.ID == "":
			return refuse("number %d has no id", i)
		case seen[s.ID]:
			return refuse("the id %q occurs twice", s.ID)
		case s.ID != wanted[i].ID:
			return refuse("%q stands where the workload declared %q", s.ID, wanted[i].ID)
		case s.Kind >= engine.NumKinds:
			return refuse("%q has an unknown kind", s.ID)
		case s.Kind != wanted[i].Kind:
			return refuse("%q became %s, the workload declared %s", s.ID, s.Kind, wanted[i].Kind)
		case strings.TrimSpace(s.SQL) == "":
			return refuse("%q has no SQL", s.ID)
		}
		seen[s.ID] = true
		for _, b := range s.Binds {
			if !slices.Contains(bindTypes, b.Type) {
				return refuse("%q binds %q with the unknown type %q", s.ID, b.Name, b.Type)
			}
		}
		for _, at := range s.BindOrder {
			if at < 0 || at >= len(s.Binds) {
				return refuse("%q orders a bind %d of %d", s.ID, at, len(s.Binds))
			}
		}
	}
	return nil
}

// noTransactions refuses statements that open or end transactions: what follows
// them would be counted, and rolled back when the connection ends. Transactions
// are groups of a batch. Each statement of a text is looked at.
func noTransactions(adapter plugin.Info, wanted []plugin.Statement, list []engine.Statement) error {
	i, word := findWords(adapter, list, sqltext.TransactionControl)
	if i < 0 {
		return nil
	}
	return notLoadError(wanted[i], word,
		fmt.Sprintf("The statement %s begins, divides or ends a transaction by itself (%s): what is counted after it need "+
			"not be stored.", list[i].ID, word),
		"let the workload group its statements as a transaction: its batches have BEGIN, COMMIT and ROLLBACK of their own")
}

// noSessions refuses statements that change their session: whichever operations come after them on the
// same connection would do something else than was planned, or fail, and those on others would not.
func noSessions(adapter plugin.Info, wanted []plugin.Statement, list []engine.Statement) error {
	i, word := findWords(adapter, list, sqltext.SessionChange)
	if i < 0 {
		return nil
	}
	return notLoadError(wanted[i], word,
		fmt.Sprintf("The statement %s changes its session (%s): what comes after it on the same connection would run under "+
			"other conditions than the rest.", list[i].ID, word),
		"give the setting to the user that the run connects as (ALTER ROLE or ALTER USER … SET …); SET LOCAL is for one "+
			"transaction")
}

// findWords looks for the first statement in whose text look finds something; -1 is none.
func findWords(adapter plugin.Info, list []engine.Statement, look func([]sqltext.Token, sqltext.Dialect) string) (
	int, string) {
	dialect := sqltext.DialectOf(adapter.Manifest.Dialect)
	for i, s := range list {
		tokens, err := sqltext.Tokens(s.SQL, dialect)
		if err != nil {
			continue // the database says what is wrong with it
		}
		if word := look(tokens, dialect); word != "" {
			return i, word
		}
	}
	return -1, ""
}

// notLoadError is the refusal of a statement that is not for load.
func notLoadError(wanted plugin.Statement, word, message, hint string) error {
	field := paramsField
	if wanted.Param != "" {
		field += "." + wanted.Param
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: message,
		Fields: []engine.FieldError{{Field: field, Message: word + " is no operation", Hint: hint}}}
}
