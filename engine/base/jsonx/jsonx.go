// Package jsonx reads JSON with errors that a user may read: they name the field and what it
// should hold, and no type of this program.
package jsonx

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Read is json.Unmarshal whose errors a user may read: they name the field
// and what it should hold, and no type of this program. The original is in the chain.
func Read(text []byte, into any) error { return Explain(json.Unmarshal(text, into)) }

// Explain rewrites an error of encoding/json for a user; others stay as they are.
func Explain(err error) error {
	var (
		mistyped *json.UnmarshalTypeError
		syntax   *json.SyntaxError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mistyped):
		return &jsonError{message: messageOf(mistyped), cause: err}
	case errors.As(err, &syntax):
		what := syntax.Error()
		if strings.Contains(what, "unexpected end") {
			return &jsonError{message: "it is no JSON: it ends too early", cause: err}
		}
		return &jsonError{message: fmt.Sprintf("it is no JSON: %s, at byte %d", what, syntax.Offset), cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &jsonError{message: "it is no JSON: it ends too early", cause: err}
	}
	if rest, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return &jsonError{message: rest, cause: err}
	}
	return err
}

// ExplainIn replaces what encoding/json said of err within a longer text.
func ExplainIn(text string, err error) string {
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return strings.ReplaceAll(text, mistyped.Error(), messageOf(mistyped))
	}
	return text
}

// jsonError is an error of encoding/json in words.
type jsonError struct {
	message string
	cause   error
}

func (e *jsonError) Error() string { return e.message }
func (e *jsonError) Unwrap() error { return e.cause }

func messageOf(e *json.UnmarshalTypeError) string {
	what := "it"
	// Names of Go types that are embedded stand in the path too; ours in JSON are in lower case.
	path := slices.DeleteFunc(strings.Split(e.Field, "."), func(step string) bool {
		return step == "" || step[0] >= 'A' &&
			step[0] <= 'Z'
	})
	if len(path) > 0 {
		what = "the field " + strings.Join(path, ".")
	}
	is, number := strings.CutPrefix(e.Value, "number ")
	switch {
	case number:
		is = "the number " + is
	case e.Value == "object":
		is = "a group of fields"
	case e.Value == "array":
		is = "a list"
	case e.Value == "string":
		is = "text"
	case e.Value == "bool":
		is = "true or false"
	default:
		is = "a " + e.Value
	}
	return fmt.Sprintf("%s is %s, which should be %s", what, is, jsonTypeName(e.Type))
}

// jsonTypeName says what a value of the type looks like in JSON.
func jsonTypeName(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d", int64(1)<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	case reflect.Float32, reflect.Float64:
		return "a number that fits in 64 bits"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "text"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		if t.String() == "time.Time" {
			return "a time"
		}
		return "a group of fields"
	default:
		return "something else"
	}
}
