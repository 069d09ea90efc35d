package command

import (
	"cmp"
	"encoding/json"
	"fmt"

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

// Refused is the error of an answer that is none: a problem, or something that no Loadstone server says.
func Refused(base, status string, answer []byte) error {
	var p Problem
	if json.Unmarshal(answer, &p) != nil || p.Code == "" {
		return &engine.Error{Code: engine.CodeUnavailable, Message: fmt.Sprintf("The server %s answered %s.", base, status),
			Hint: "is this the address of a Loadstone server?"}
	}
	return &engine.Error{Code: p.Code, Message: cmp.Or(p.Detail, p.Title), Hint: p.Hint, Fields: p.Errors}
}
