package engine

import (
	"errors"
	"strconv"
	"strings"
)

// Code classifies a user-facing error; it is stable and part of the API.
type Code string

// The codes of user-facing errors. The HTTP status and the CLI's exit code follow from them.
const (
	CodeInvalid      Code = "invalid"       // the input is wrong: 422
	CodeNotFound     Code = "not_found"     // no such thing: 404
	CodeConflict     Code = "conflict"      // the thing's state forbids it: 409
	CodeUnauthorized Code = "unauthorized"  // who are you: 401
	CodeForbidden    Code = "forbidden"     // not you: 403
	CodeTarget       Code = "target"        // the target database refused or is unreachable: 422
	CodePlugin       Code = "plugin"        // a plugin is missing, refused, or failed: 422
	CodeUnavailable  Code = "unavailable"   // the control store or a node is away: 503
	CodeTooLarge     Code = "too_large"     // over a size limit: 413
	CodeRateLimited  Code = "rate_limited"  // too much at a time, or too often: 429
	CodeUnsupported  Code = "not_supported" // a later version will: 422
	CodeInternal     Code = "internal"      // our fault: 500
)

// FieldError names one wrong field of an input document.
type FieldError struct {
	// Field is the path in the document, "workload.duration_seconds".
	Field string `json:"field"`
	// Message says what is wrong, in words.
	Message string `json:"message"`
	// Hint says what to do about it.
	Hint string `json:"hint,omitempty"`
	// Subject is what the field lacks or names: that of a connection, where it is to be confirmed.
	Subject string `json:"subject,omitempty"`
	// Line is the line in the document as the user wrote it, from 1; 0 when unknown.
	Line int `json:"line,omitempty"`
	// Column is the character of that line, from 1; 0 when unknown.
	Column int `json:"column,omitempty"`
	// Excerpt is the part of the line around the place, and below it a caret; empty where the text was not a program.
	Excerpt string `json:"excerpt,omitempty"`
}

// Error is what a user sees: a code, a sentence and a hint, without internals.
// Cause is kept for the log and for errors.Is.
type Error struct {
	Code    Code         `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint,omitempty"`
	Fields  []FieldError `json:"fields,omitempty"`
	Cause   error        `json:"-"`
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		b.WriteString("\n  " + f.Field)
		// Where the document has no field, the line stands in its place already.
		if f.Line > 0 && !strings.HasPrefix(f.Field, "(line ") {
			b.WriteString(" (line " + strconv.Itoa(f.Line) + ")")
		}
		b.WriteString(": " + f.Message)
		if f.Hint != "" && f.Hint != e.Hint {
			b.WriteString(" (" + f.Hint + ")")
		}
	}
	if e.Hint != "" {
		b.WriteString("\n  hint: " + e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// AsError returns the user-facing error in err's chain. For an error that has
// none it returns one with CodeInternal that carries err as its cause.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Message: "Something went wrong inside Loadstone.",
		Hint: "The server's log has the details.", Cause: err}
}

// HasCode reports whether err's user-facing error has the given code.
func HasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// InvalidField returns a CodeInvalid error for one field.
func InvalidField(field, message, hint string) *Error {
	return &Error{Code: CodeInvalid, Message: "The request has a field that cannot be used.",
		Fields: []FieldError{{Field: field, Message: message, Hint: hint}}}
}

// ErrorText is an error as sentences for people, with its fields and the cure.
func ErrorText(err error) string {
	e := AsError(err)
	text := e.Message
	for _, f := range e.Fields {
		if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ":") {
			text += "."
		}
		text += " " + f.Field + ": "
		if e.Code == CodeInvalid || f.Hint == "" {
			text += f.Message
			if f.Hint != "" {
				text += "; "
			}
		}
		text += f.Hint + "."
	}
	if e.Hint != "" {
		text += " " + e.Hint
	}
	return text
}
