package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Problem is an error as the API answers it.
type Problem struct {
	Title  string              `json:"title"`
	Detail string              `json:"detail"`
	Code   engine.Code         `json:"code"`
	Hint   string              `json:"hint"`
	Errors []engine.FieldError `json:"errors"`
}

// ProblemError is the error of an answer that is none: a problem, or something that no Loadstone server says.
func ProblemError(base, status string, answer []byte) error {
	var p Problem
	if json.Unmarshal(answer, &p) != nil || p.Code == "" {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The server %s answered %s.", base, status),
			Hint: "is this the address of a Loadstone server?"}
	}
	if p.Code == engine.CodeUnauthorized { // the server speaks of browsers then
		return &engine.Error{Code: p.Code, Message: fmt.Sprintf("The server %s does not know this token, or it has ended.",
			base), Hint: "make one on its page under Settings, or there with loadstone token NAME, and give it as " +
			"LOADSTONE_TOKEN, --token-file or --token"}
	}
	return &engine.Error{Code: p.Code, Message: cmp.Or(p.Detail, p.Title), Hint: p.Hint, Fields: p.Errors}
}

// Interrupted says of what a signal has ended that it was one, and not what a command saw of it: a server that does not
// answer, for example. Runs say it themselves, with their exit code.
func Interrupted(ctx context.Context, err error) error {
	var message *ExitError
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) || errors.As(err, &message) {
		return err
	}
	return &engine.Error{Code: engine.CodeUnavailable, Message: "Interrupted.", Cause: err}
}

// FlagError is an error of a flag that speaks of the command line: what the flag is wrong with is told like a field of
// a request, which nobody who types a command has made.
func FlagError(e *engine.Error) *engine.Error {
	if len(e.Fields) != 1 || !strings.HasPrefix(e.Fields[0].Field, "--") {
		return e
	}
	if requested := engine.InvalidField("", "", ""); e.Message != requested.Message {
		return e
	}
	message := *e
	message.Message = "An argument cannot be used."
	return &message
}
