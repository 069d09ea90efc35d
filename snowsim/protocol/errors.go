package protocol

import "fmt"

// Error is an error as a Snowflake account reports it.
type Error struct {
	// Code is Snowflake's number with leading zeros, "002003"; State the SQLSTATE.
	Code, State string
	Message     string
	Cause       error
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %s", e.Code, e.State, e.Message) }

func (e *Error) Unwrap() error { return e.Cause }

// CompilationError is an error that is found before a statement runs.
func CompilationError(code, state, format string, args ...any) *Error {
	return &Error{Code: code, State: state, Message: "SQL compilation error:\n" + fmt.Sprintf(format, args...)}
}

// SyntaxError is 001003; message ends Snowflake's sentence, "syntax error line 1 at position 7 unexpected 'FORM'."
func SyntaxError(format string, args ...any) *Error {
	return CompilationError("001003", "42000", format, args...)
}

// DoesNotExist is 002003 for an object of a kind: "Table", "Schema", "Object" …
func DoesNotExist(kind, name string) *Error {
	return CompilationError("002003", "42S02", "%s '%s' does not exist or not authorized.", kind, name)
}

// Unsupported is 000002, what an account like this one cannot do.
func Unsupported(format string, args ...any) *Error {
	return &Error{Code: "000002", State: "0A000", Message: "Unsupported feature '" + fmt.Sprintf(format, args...) + "'."}
}

// NotSimulated is 000002 for what an account can do and the stand-in cannot; it names that,
// and where to read what it can.
func NotSimulated(format string, args ...any) *Error {
	e := Unsupported(format, args...)
	e.Message += " It is not simulated: docs/guides/snowflake-stand-in.md lists the SQL that the stand-in understands."
	return e
}
