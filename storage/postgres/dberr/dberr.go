// Package dberr says what Postgres and the way to it have refused in the terms of
// engine/store: sentinel errors for the program, sentences for a user.
package dberr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The error codes of the database, its own and the schema's.
const (
	codeForeignKey = "23503"
	codeUnique     = "23505"
	codeCheck      = "23514"
	codeNotNull    = "23502"
	codeTransition = "LS001"
	codeAppendOnly = "LS002"
	codeFenced     = "LS003"
	codeNoRun      = "LS004"
	codeOrder      = "LS005"
	codeRetiredKey = "LS007"
)

// Map wraps err in the contract's sentinel error, when there is one for it.
func Map(err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	var network net.Error
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	case errors.As(err, &refused):
		return mapRefusal(refused, err)
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &connecting), errors.As(err, &network), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		strings.Contains(err.Error(), "conn closed"), strings.Contains(err.Error(), "closed pool"):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	default:
		return err
	}
}

func mapRefusal(refused *pgconn.PgError, err error) error {
	switch refused.Code {
	case codeUnique, codeTransition, codeAppendOnly, codeOrder:
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	case codeForeignKey:
		// "… is still referenced" on deletion, "… is not present" on insertion.
		if strings.Contains(refused.Detail, "still referenced") {
			return fmt.Errorf("%w: %w", store.ErrInUse, err)
		}
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	case codeNoRun:
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	case codeRetiredKey:
		return Conflict("A secret was sealed under a key that has been replaced meanwhile.",
			"Try again: the server reads the present key within 5 seconds. Look at `loadstone keys status` if it lasts.")
	case codeFenced:
		return fmt.Errorf("%w: %w", store.ErrFenced, err)
	case codeCheck, codeNotNull, "22021", "22P05", "22001", "22003":
		return &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: "The control store refused a value: " + refused.Message + "."}
	}
	// 08: connection; 57P: shutting down, starting up; 53: out of connections, memory or disk.
	if class := refused.Code[:min(2, len(refused.Code))]; class == "08" || class == "53" ||
		strings.HasPrefix(refused.Code, "57P") ||
		refused.Code == "25006" || refused.Code == "57014" {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// Failed adds what was being done, keeping the sentinel.
func Failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, Map(err))
}

// NotFound is a user-facing store.ErrNotFound.
func NotFound(what, name string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("There is no %s %q.", what, name)}
}

// Conflict is a user-facing store.ErrConflict.
func Conflict(message, hint string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict, Message: message, Hint: hint}
}

// Reading turns the absence of a row into a user-facing error.
func Reading(what, name string, err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return NotFound(what, name)
	}
	return Failed("reading "+what, err)
}

// Saving turns a violated unique name into a user-facing error.
func Saving(what, name string, err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == codeUnique && strings.HasSuffix(refused.ConstraintName, "_name_key") {
		return store.NameTaken(what, name)
	}
	return Failed("saving "+what, err)
}
