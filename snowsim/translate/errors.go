package translate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Error returns an error of Postgres as a Snowflake account would report it. A
// *plan.Error and what is no error of Postgres come back as they are.
func Error(err error) error {
	var pg *pgconn.PgError
	var known *protocol.Error
	if err == nil || errors.As(err, &known) || !errors.As(err, &pg) {
		return err
	}
	e := postgresError(pg)
	e.Cause = err
	return e
}

var quotedValue = regexp.MustCompile(`"((?:[^"]|"")*)"`)

func postgresError(pg *pgconn.PgError) *protocol.Error {
	value := ""
	if m := quotedValue.FindAllStringSubmatch(pg.Message, -1); len(m) > 0 {
		value = strings.ReplaceAll(m[len(m)-1][1], `""`, `"`)
	}
	is := func(code, state, format string, args ...any) *protocol.Error {
		return &protocol.Error{Code: code, State: state, Message: fmt.Sprintf(format, args...)}
	}
	switch pg.Code {
	case "42P01", "3F000", "42704": // undefined table, schema, object
		_, object, found := strings.Cut(value, ".")
		if i := strings.LastIndexByte(object, '.'); found && i >= 0 {
			value = object[i+1:]
		}
		return protocol.DoesNotExist("Object", displayName(value))
	case "42703": // undefined column
		return protocol.CompilationError("000904", "42000", "error line 1 at position 0\ninvalid identifier '%s'",
			columnName(pg.Message))
	case "42702": // ambiguous column
		return protocol.CompilationError("001003", "42000", "ambiguous column name '%s'", value)
	case "42P07", "42P06", "42710": // duplicate table, schema, object
		return protocol.CompilationError("002002", "42710", "Object '%s' already exists.", value)
	case "42701":
		return protocol.CompilationError("002025", "42S21", "duplicate column name '%s'", value)
	case "23502":
		return is("100072", "22000", "NULL result in a non-nullable column")
	case "23505":
		if strings.HasPrefix(pg.ConstraintName, "pg_") { // two sessions that make the same thing
			return protocol.CompilationError("002002", "42710", "Object '%s' already exists.", value)
		}
		if strings.HasSuffix(pg.ConstraintName, "_pkey") {
			return is("200001", "22000", "A primary key already exists.")
		}
		return is("200001", "22000", "Duplicate key value violates unique constraint \"%s\"", pg.ConstraintName)
	case "23503":
		return is("200009", "22000", "Foreign key constraint \"%s\" was violated.", pg.ConstraintName)
	case "22P02": // invalid text representation
		switch {
		case strings.Contains(pg.Message, "numeric"), strings.Contains(pg.Message, "double"),
			strings.Contains(pg.Message, "integer"), strings.Contains(pg.Message, "bigint"):
			return is("100038", "22018", "Numeric value '%s' is not recognized", value)
		case strings.Contains(pg.Message, "boolean"):
			return is("100037", "22018", "Boolean value '%s' is not recognized", value)
		case strings.Contains(pg.Message, "json"):
			return is("100069", "22P02", "Error parsing JSON: %s", pg.Detail)
		}
		return is("100038", "22018", "Value '%s' is not recognized", value)
	case "22007", "22008": // datetime
		if strings.Contains(pg.Message, "type date") || len(value) == len("2006-01-02") {
			return is("100040", "22007", "Date '%s' is not recognized", value)
		}
		if strings.Contains(pg.Message, "type time:") {
			return is("100108", "22007", "Time '%s' is not recognized", value)
		}
		return is("100035", "22007", "Timestamp '%s' is not recognized", value)
	case "22003":
		return is("100039", "22003", "Numeric value '%s' is out of range", value)
	case "22001":
		return is("100078", "22000", "String is too long and would be truncated")
	case "22012":
		return is("100051", "22012", "Division by zero")
	case "57014":
		if strings.Contains(pg.Message, "statement timeout") {
			return is("000630", "57014", "Statement reached its statement or warehouse timeout and was canceled.")
		}
		if strings.Contains(pg.Message, "lock timeout") {
			return lockTimeout()
		}
		return is("000604", "57014", "SQL execution canceled")
	case "55P03", "40P01", "40001": // lock not available, deadlock, serialisation
		return lockTimeout()
	case "42803":
		return protocol.CompilationError("000979", "42601", "[%s] is not a valid group by expression", value)
	case "42883", "42804", "42846": // no such function or operator for these types, type mismatch
		return protocol.CompilationError("001044", "42P13", "Invalid argument types: %s", pg.Message)
	case "42P10":
		return protocol.CompilationError("001045", "42601", "%s", pg.Message)
	case "53300", "53200", "53100", "57P01", "57P03", "58030":
		return is("000603", "XX000", "SQL execution internal error: Processing aborted by error 300005:1; incident %s.",
			pg.Code)
	case "54001", "54000":
		return is("000603", "XX000", "SQL execution internal error: the statement is too complex.")
	}
	if strings.HasPrefix(pg.Code, "42") {
		return protocol.CompilationError("001003", "42000", "%s", pg.Message)
	}
	return is("100000", "22000", "%s", pg.Message)
}

// columnName finds the column in Postgres's message: column "X" of …, column T.X does not exist.
func columnName(message string) string {
	rest, ok := strings.CutPrefix(message, "column ")
	if !ok {
		return message
	}
	rest = strings.TrimSuffix(rest, " does not exist")
	if i := strings.Index(rest, " of relation"); i > 0 {
		rest = rest[:i]
	}
	return strings.ReplaceAll(rest, `"`, "")
}

func lockTimeout() *protocol.Error {
	return &protocol.Error{Code: "000625", State: "57014",
		Message: "Statement has waited for a lock that another transaction holds, which has not yet released it. Your " +
			"statement has been aborted."}
}

// insufficient is 003001.
func insufficient(kind, object string) *protocol.Error {
	return &protocol.Error{Code: "003001", State: "42501",
		Message: fmt.Sprintf("SQL access control error:\nInsufficient privileges to operate on %s '%s'.", kind, object)}
}

// noSchema is 002003 for a schema.
func noSchema(n objectName) *protocol.Error {
	return protocol.CompilationError("002003", "02000", "Schema '%s.%s' does not exist or not authorized.",
		displayName(n.database), displayName(n.schema))
}

// noRole is 002003 for a role.
func noRole(role string) *protocol.Error {
	return protocol.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.", displayName(role))
}
