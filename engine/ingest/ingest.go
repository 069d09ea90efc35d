// Package ingest takes the records of finished runs into the results database: their seconds, rolled up from every
// recorded execution, and what is known of the run. A run is taken in as a whole, in place of what was there of
// it; when neither its parts nor its figures have changed since, nothing is written.
package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/refresh"
	"github.com/loadstone-db/loadstone/engine/rollup"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Table is the derived table of kind INGEST that the runs belong to.
const Table = "runs"

// Store is what is known of runs.
type Store interface {
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	Warehouse(ctx context.Context, runID string) ([]engine.WarehousePoint, error)
}

// Record reads the parts of runs.
type Record interface {
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
	RollUp(ctx context.Context, runID, name string, into *rollup.Seconds) error
}

// Target is the results database. Its writes are refused when a higher epoch of the task has begun.
type Target interface {
	// Begin notes the epoch of a claim: lower ones write nothing from now on.
	Begin(ctx context.Context, c refresh.Claim) error
	// Fingerprint is that of the run as it is there, "" when it is not.
	Fingerprint(ctx context.Context, runID string) (string, error)
	// PutRun replaces what is there of the run, in one transaction; prove is called before its end.
	PutRun(ctx context.Context, c refresh.Claim, r rollup.Run, prove func(context.Context) error) (rows, bytes int64,
		err error)
	// DropRun removes what is there of the run.
	DropRun(ctx context.Context, c refresh.Claim) error
}

// Ingest takes runs in.
type Ingest struct {
	Store  Store
	Record Record
	Target Target
	// Detail reads a run with its summary.
	Detail func(ctx context.Context, runID string) (engine.RunDetail, error)
}

// Run takes in the run of a claim, or removes it when it is gone.
func (in *Ingest) Run(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
	if err := in.Target.Begin(ctx, c); err != nil {
		return refresh.Result{}, err
	}
	detail, err := in.Detail(ctx, c.Subtask)
	if errors.Is(err, store.ErrNotFound) || engine.HasCode(err, engine.CodeNotFound) {
		if err := in.Target.DropRun(ctx, c); err != nil {
			return refresh.Result{}, err
		}
		return refresh.Result{Gone: true, Note: "The run was deleted."}, nil
	}
	if err != nil {
		return refresh.Result{}, fmt.Errorf("reading run %s: %w", c.Subtask, err)
	}
	r := rollup.Run{Run: detail.Run, Summary: detail.Summary, Adapter: detail.Scenario.Target.Adapter}
	parts, err := in.parts(ctx, &r)
	if err != nil {
		return refresh.Result{}, err
	}
	known, err := in.Target.Fingerprint(ctx, c.Subtask)
	if err != nil {
		return refresh.Result{}, err
	}
	if known == r.Fingerprint {
		return refresh.Result{Unchanged: true, Note: "Nothing of it has changed."}, nil
	}
	if err := in.rollUp(ctx, &r, parts); err != nil {
		return refresh.Result{}, err
	}
	if r.Warehouse, err = in.Store.Warehouse(ctx, c.Subtask); err != nil {
		return refresh.Result{}, fmt.Errorf("reading the warehouse of run %s: %w", c.Subtask, err)
	}
	rows, bytes, err := in.Target.PutRun(ctx, c, r, prove)
	if err != nil {
		return refresh.Result{}, err
	}
	result := refresh.Result{Mode: refresh.Incremental, Rows: rows, Bytes: bytes}
	if len(r.Problems) > 0 {
		result.Note = fmt.Sprintf("%d of %d parts of the record could not be read.", len(r.Problems), r.Parts)
	}
	return result, nil
}

// parts looks at every part of the record: those that are what was stored are to be read. The fingerprint is of
// them all, and of what the run came to.
func (in *Ingest) parts(ctx context.Context, r *rollup.Run) (good []string, err error) {
	artifacts, err := in.Store.Artifacts(ctx, r.Run.RunID)
	if err != nil {
		return nil, fmt.Errorf("listing the parts of run %s: %w", r.Run.RunID, err)
	}
	// The fingerprint must not depend on the order in which a store lists them.
	slices.SortFunc(artifacts, func(a, b engine.Artifact) int { return strings.Compare(a.Name, b.Name) })
	print := sha256.New()
	for _, a := range artifacts {
		if a.Kind != artifact.KindExecutions {
			continue
		}
		r.Parts++
		problem, err := in.check(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("reading part %s of run %s: %w", a.Name, a.RunID, err)
		}
		if problem == "" {
			good = append(good, a.Name)
		} else {
			r.Problems = append(r.Problems, problem)
		}
		_, _ = fmt.Fprintf(print, "%q %s %q\n", a.Name, a.SHA256, problem)
	}
	text, err := json.Marshal(struct {
		Run     engine.Run
		Summary *engine.Summary
	}{r.Run, r.Summary})
	if err != nil {
		return nil, fmt.Errorf("reading run %s: %w", r.Run.RunID, err)
	}
	_, _ = print.Write(text)
	r.Fingerprint = hex.EncodeToString(print.Sum(nil))
	return good, nil
}

// check says what is wrong with a stored part, "" when it is the one that was recorded. An error is of the way
// to it, and may pass.
func (in *Ingest) check(ctx context.Context, a engine.Artifact) (problem string, err error) {
	file, _, err := in.Record.Open(ctx, a.RunID, a.Name)
	if errors.Is(err, store.ErrNotFound) {
		return a.Name + " is not there.", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return a.Name + " is not what was recorded: its SHA-256 is another.", nil
	}
	return "", ctx.Err()
}

// rollUp reads the parts. One that cannot be read though it is what was stored is left out, and the others
// are read anew, because some of it may have been counted.
func (in *Ingest) rollUp(ctx context.Context, r *rollup.Run, parts []string) error {
	for {
		r.Seconds = rollup.New(r.Run.StartTime.Time)
		bad := -1
		for i, name := range parts {
			if err := in.Record.RollUp(ctx, r.Run.RunID, name, r.Seconds); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				r.Problems = append(r.Problems, name+" is damaged.")
				bad = i
				break
			}
		}
		if bad < 0 {
			return nil
		}
		parts = append(parts[:bad:bad], parts[bad+1:]...)
	}
}
