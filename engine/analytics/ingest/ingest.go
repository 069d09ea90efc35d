// Package ingest takes the records of finished runs into the results database: their seconds, rolled up from every
// recorded execution, and what is known of the run. A run is taken in as a whole, in place of what was there of
// it; when neither its parts nor its figures have changed since, nothing is written.
//
// The same seconds go into a segment, a file beside the parts. It is written first, under a name that no other claim
// gives, and counts from when the results database names it, in the transaction that replaces the run. What earlier
// claims have left is removed after that; a claim never removes what a later one has written.
package ingest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/results/cost"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Table is the derived table of kind INGEST that the runs belong to.
const Table = "runs"

// Store is what is known of runs.
type Store interface {
	Artifacts(ctx context.Context, runID string) ([]engine.Artifact, error)
	Warehouse(ctx context.Context, runID string) ([]engine.WarehousePoint, error)
	// Reports calls fn with what the run workers reported, each one's in the order in which it did.
	Reports(ctx context.Context, runID string, fn func(*engine.WorkerSnapshot)) error
	// QueueDeletion notes a file that is to be removed.
	QueueDeletion(ctx context.Context, l store.PendingDeletion) error
}

// Record reads the parts of runs.
type Record interface {
	Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error)
	RollUp(ctx context.Context, runID, name string, into *rollup.Seconds) error
	// ReadExecutions calls fn with all rows of a part, some thousands at a time.
	ReadExecutions(ctx context.Context, runID, name string, fn func(*rollup.Executions) error) error
	// PutSegment stores a segment, OpenSegment reads one; RemoveSegments removes those of epochs below, all but one.
	PutSegment(ctx context.Context, a engine.Artifact, content []byte) error
	OpenSegment(ctx context.Context, runID, name string) (*segment.File, error)
	RemoveSegments(ctx context.Context, runID string, below int64, keep string) error
	RemoveSegment(ctx context.Context, runID, name string) error
	// Place names where all of it is.
	Place() (place, label string, err error)
}

// Target is the results database. Its writes are refused when a higher epoch of the task has begun.
type Target interface {
	// Begin notes the epoch of a claim: lower ones write nothing from now on.
	Begin(ctx context.Context, c refresh.Claim) error
	// Known is what is there of the run: its fingerprint, "" when it is not there, and its segment.
	Known(ctx context.Context, runID string) (fingerprint, segment string, err error)
	// KnownExecutions is of which parts the single executions of the run are there, "" when they are not.
	KnownExecutions(ctx context.Context, runID string) (fingerprint string, err error)
	// StageExecutions takes what feed gives aside, for PutRun to let it count; Unstage removes it when that will not be.
	StageExecutions(ctx context.Context, c refresh.Claim, start time.Time, fingerprint string,
		feed func(ctx context.Context, take func(*rollup.Executions) error) error) (rollup.Staged, error)
	Unstage(ctx context.Context, s rollup.Staged)
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
	// Executions: the single ones are taken in, too.
	Executions bool
	// Cores is how many parts are read at a time; 0 is one for each core.
	Cores int
	// Detail reads a run with its summary.
	Detail func(ctx context.Context, runID string) (engine.RunDetail, error)
}

// Run takes in the run of a claim, or removes it when it is gone.
func (in *Ingest) Run(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
	r, err := in.run(ctx, c, prove)
	if gone, ok := errors.AsType[executions.DeletedError](err); ok {
		return refresh.Result{Unchanged: true, Note: gone.Sentence + " What was taken in before stays."}, nil
	}
	return r, err
}

func (in *Ingest) run(ctx context.Context, c refresh.Claim, prove func(context.Context) error) (refresh.Result, error) {
	if err := in.Target.Begin(ctx, c); err != nil {
		return refresh.Result{}, err
	}
	detail, err := in.Detail(ctx, c.Subtask)
	if errors.Is(err, store.ErrNotFound) || engine.HasCode(err, engine.CodeNotFound) {
		return in.drop(ctx, c)
	}
	if err != nil {
		return refresh.Result{}, fmt.Errorf("reading run %s: %w", c.Subtask, err)
	}
	if gone := executions.DeletedNotice(detail.Run); gone != "" {
		return refresh.Result{}, executions.DeletedError{Sentence: gone}
	}
	prove = executions.WithDeletionCheck(prove, c.Subtask, in.Detail)
	r := rollup.Run{Run: detail.Run, Summary: detail.Summary, Adapter: detail.Scenario.Target.Adapter}
	parts, sums, err := in.parts(ctx, &r)
	if err != nil {
		return refresh.Result{}, err
	}
	known, stored, err := in.Target.Known(ctx, c.Subtask)
	if err != nil {
		return refresh.Result{}, err
	}
	if known == r.Fingerprint && in.isReadable(ctx, c.Subtask, stored) {
		// A claim that ended in the middle may have left something.
		if err := in.Record.RemoveSegments(ctx, c.Subtask, c.Epoch, stored); err != nil {
			return refresh.Result{}, fmt.Errorf("removing what earlier claims have left: %w", err)
		}
		return refresh.Result{Unchanged: true, Note: "Nothing of it has changed."}, nil
	}
	if parts, err = in.rollUp(ctx, &r, parts); err != nil {
		return refresh.Result{}, err
	}
	if r.Warehouse, err = in.Store.Warehouse(ctx, c.Subtask); err != nil {
		return refresh.Result{}, fmt.Errorf("reading the warehouse of run %s: %w", c.Subtask, err)
	}
	if err := in.addLoads(ctx, &r); err != nil {
		return refresh.Result{}, fmt.Errorf("reading what run workers reported in run %s: %w", c.Subtask, err)
	}
	if in.Executions {
		if r.Executions, err = in.stage(ctx, c, &r, parts, sums); err != nil {
			in.Target.Unstage(ctx, r.Executions)
			return refresh.Result{}, err
		}
	}
	return in.put(ctx, c, &r, prove)
}

// addLoads adds what is in no part of the record: what run workers reported, and what the warehouse takes, at the rate
// that the cost of the run was computed with.
func (in *Ingest) addLoads(ctx context.Context, r *rollup.Run) error {
	if s := r.Summary; s != nil && s.Cost != nil && s.Cost.CreditsPerHour > 0 {
		each := s.Cost.CreditsPerHour
		r.PerHour = func(w engine.Warehouse) (float64, bool) { return each * cost.Started(w), true }
	}
	start := r.Run.StartTime.Time
	last := map[string]*engine.WorkerSnapshot{}
	return in.Store.Reports(ctx, r.Run.RunID, func(w *engine.WorkerSnapshot) {
		r.Seconds.Report(rollup.SecondAt(start, w.Timestamp.Time, w.TickSeconds), w, last[w.WorkerID])
		last[w.WorkerID] = w
	})
}

// stage takes the single executions of the good parts aside, unless those are there already. A part whose seconds could
// be read, and not all else of it, is left out.
func (in *Ingest) stage(ctx context.Context, c refresh.Claim, r *rollup.Run, parts []string, sums map[string]string) (
	rollup.Staged, error) {
	for {
		print := sha256.New()
		_, _ = io.WriteString(print, "each ends in its second\n")
		for _, name := range parts {
			_, _ = fmt.Fprintf(print, "%q %s\n", name, sums[name])
		}
		fingerprint := hex.EncodeToString(print.Sum(nil))
		known, err := in.Target.KnownExecutions(ctx, c.Subtask)
		if err != nil || known == fingerprint {
			return rollup.Staged{Unchanged: true}, err
		}
		bad := -1
		staged, err := in.Target.StageExecutions(ctx, c, r.Run.StartTime.Time, fingerprint,
			func(ctx context.Context, take func(*rollup.Executions) error) error {
				for i, name := range parts {
					var refused error
					if err := in.Record.ReadExecutions(ctx, c.Subtask, name, func(e *rollup.Executions) error {
						refused = take(e)
						return refused
					}); err != nil {
						if refused == nil && ctx.Err() == nil && !store.IsTransient(err) {
							bad = i
						}
						return err
					}
				}
				return nil
			})
		if err == nil || bad < 0 {
			return staged, err
		}
		r.Problems = append(r.Problems, parts[bad]+" is damaged: its single executions cannot be read.")
		parts = slices.Delete(slices.Clone(parts), bad, bad+1)
	}
}

// drop removes what is there of a run that was deleted. Its parts go with the run; a segment may have come after that.
func (in *Ingest) drop(ctx context.Context, c refresh.Claim) (refresh.Result, error) {
	if err := in.Target.DropRun(ctx, c); err != nil {
		return refresh.Result{}, err
	}
	if err := in.Record.RemoveSegments(ctx, c.Subtask, c.Epoch, ""); err != nil {
		return refresh.Result{}, fmt.Errorf("removing the segments of a deleted run: %w", err)
	}
	return refresh.Result{Gone: true, Note: "The run was deleted."}, nil
}

// isReadable reports whether the segment that the results database names can be read.
func (in *Ingest) isReadable(ctx context.Context, runID, name string) bool {
	if name == "" {
		return false
	}
	file, err := in.Record.OpenSegment(ctx, runID, name)
	if err != nil {
		return false
	}
	_ = file.Close() // only read
	return true
}

// put writes what was read of a run: its segment first, which counts once the results database names it.
func (in *Ingest) put(ctx context.Context, c refresh.Claim, r *rollup.Run, prove func(context.Context) error) (
	refresh.Result, error) {
	unstage := true
	defer func() {
		if unstage {
			in.Target.Unstage(ctx, r.Executions)
		}
	}()
	content, count, err := segment.Bytes(r)
	if err != nil {
		return refresh.Result{}, err
	}
	sum := sha256.Sum256(content)
	sha := hex.EncodeToString(sum[:])
	r.Segment = rollup.Segment{Name: segment.Name(c.Epoch, sha), SHA256: sha, SizeBytes: int64(len(content)), Rows: count}
	a := engine.Artifact{RunID: c.Subtask, Name: r.Segment.Name, SHA256: sha, SizeBytes: r.Segment.SizeBytes}
	if err := in.Record.PutSegment(ctx, a, content); err != nil {
		return refresh.Result{}, fmt.Errorf("storing the segment of run %s: %w", c.Subtask, err)
	}
	rows, size, err := in.Target.PutRun(ctx, c, *r, prove)
	if err != nil {
		// Of other errors it is not known whether the name of the segment was written. What stays the next claim removes.
		if _, deleted := errors.AsType[executions.DeletedError](err); deleted || errors.Is(err, store.ErrClaimLost) {
			if left := in.removeSegment(context.WithoutCancel(ctx), c.Subtask, r.Segment.Name); left != nil {
				err = left
			}
		}
		return refresh.Result{}, err
	}
	unstage = false
	if err := in.Record.RemoveSegments(ctx, c.Subtask, c.Epoch, r.Segment.Name); err != nil {
		return refresh.Result{}, fmt.Errorf("removing what earlier claims have left: %w", err)
	}
	result := refresh.Result{Mode: refresh.Incremental, Rows: rows, Bytes: size}
	if len(r.Problems) > 0 {
		result.Note = describeUnreadable(r)
	}
	return result, nil
}

// removeSegment removes a segment that will not count. Where that cannot be done it is left over: of a run whose
// executions were deleted no later claim looks for it.
func (in *Ingest) removeSegment(ctx context.Context, runID, name string) error {
	removing, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	err := in.Record.RemoveSegment(removing, runID, name)
	if err == nil {
		return nil
	}
	place, _, unnamed := in.Record.Place()
	noting, end := context.WithTimeout(ctx, cleanupTimeout)
	defer end()
	if left := errors.Join(unnamed, in.Store.QueueDeletion(noting,
		store.PendingDeletion{RunID: runID, Location: place, Part: name})); left != nil {
		return fmt.Errorf("removing segment %s of run %s: %w", name, runID, errors.Join(err, left))
	}
	return nil
}

// describeUnreadable says which parts could not be read, of many the first.
func describeUnreadable(r *rollup.Run) string {
	const most = 5
	text := fmt.Sprintf("%d of %d parts of the record could not be read: %s", len(r.Problems), r.Parts,
		strings.Join(r.Problems[:min(len(r.Problems), most)], " "))
	if more := len(r.Problems) - most; more > 0 {
		text += fmt.Sprintf(" And %d more, which rollup.runs has in part_problems.", more)
	}
	return text
}

// cleanupTimeout bounds what is removed behind a claim that was lost.
const cleanupTimeout = 5 * time.Second

// parts looks at every part of the record: those that are what was stored are to be read. The fingerprint is of
// them all, and of what the run came to.
func (in *Ingest) parts(ctx context.Context, r *rollup.Run) (good []string, sums map[string]string, err error) {
	artifacts, err := in.Store.Artifacts(ctx, r.Run.RunID)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the parts of run %s: %w", r.Run.RunID, err)
	}
	artifacts = slices.DeleteFunc(artifacts, func(a engine.Artifact) bool { return a.Kind != record.KindExecutions })
	// The fingerprint must not depend on the order in which a store lists them.
	slices.SortFunc(artifacts, func(a, b engine.Artifact) int { return strings.Compare(a.Name, b.Name) })
	problems := make([]string, len(artifacts))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(in.Cores, runtime.GOMAXPROCS(0)))
	for i, a := range artifacts {
		group.Go(func() (err error) {
			if problems[i], err = in.check(looking, a); err != nil {
				return fmt.Errorf("reading part %s of run %s: %w", a.Name, a.RunID, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	sums = map[string]string{}
	print := sha256.New()
	_, _ = fmt.Fprintf(print, "segments %d, executions %v, clusters\n", segment.Version, in.Executions)
	for i, a := range artifacts {
		r.Parts++
		if problems[i] == "" {
			good = append(good, a.Name)
			sums[a.Name] = a.SHA256
		} else {
			r.Problems = append(r.Problems, problems[i])
		}
		_, _ = fmt.Fprintf(print, "%q %s %q\n", a.Name, a.SHA256, problems[i])
	}
	text, err := json.Marshal(struct {
		Run     engine.Run
		Summary *engine.Summary
	}{r.Run, r.Summary})
	if err != nil {
		return nil, nil, fmt.Errorf("reading run %s: %w", r.Run.RunID, err)
	}
	_, _ = print.Write(text)
	r.Fingerprint = hex.EncodeToString(print.Sum(nil))
	return good, sums, nil
}

// check says what is wrong with a stored part, "" when it is the one that was recorded. An error is of the way
// to it, and may pass.
func (in *Ingest) check(ctx context.Context, a engine.Artifact) (problem string, err error) {
	file, _, err := in.Record.Open(ctx, a.RunID, a.Name)
	if errors.Is(err, store.ErrNotFound) {
		return a.Name + " is not there.", nil
	}
	if errors.Is(err, store.ErrDamaged) {
		return engine.AsError(err).Message, nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // only read
	sum := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{file}, make([]byte, 256<<10))
	if errors.Is(err, store.ErrDamaged) {
		return engine.AsError(err).Message, nil
	}
	if err != nil {
		return "", err
	}
	if hex.EncodeToString(sum.Sum(nil)) != a.SHA256 {
		return a.Name + " is not what was recorded: its SHA-256 is another.", nil
	}
	return "", ctx.Err()
}

// rollUp reads the parts, each into seconds of its own: of one that cannot be read though it is what was stored
// nothing is counted. What the others gave is added up; they are returned.
func (in *Ingest) rollUp(ctx context.Context, r *rollup.Run, parts []string) (good []string, err error) {
	fresh := func() *rollup.Seconds {
		s := rollup.New(r.Run.StartTime.Time)
		if r.Summary != nil && !r.Summary.RecordPartial {
			// Otherwise rates are over the time of which all of the record is there, and the rows do not know it.
			s.SetMeasurement(r.Summary.MeasuredFrom.Time, r.Summary.MeasuredTo.Time)
		}
		return s
	}
	r.Seconds = fresh()
	problems := make([]string, len(parts))
	var adding sync.Mutex
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(in.Cores, runtime.GOMAXPROCS(0)))
	for i, name := range parts {
		group.Go(func() error {
			s := fresh()
			if err := in.Record.RollUp(reading, r.Run.RunID, name, s); err != nil {
				if reading.Err() != nil || store.IsTransient(err) {
					return err
				}
				problems[i] = name + " is damaged."
				return nil
			}
			adding.Lock()
			defer adding.Unlock()
			r.Seconds.Merge(s)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("reading the parts of run %s: %w", r.Run.RunID, err)
	}
	for i, name := range parts {
		if problems[i] == "" {
			good = append(good, name)
		} else {
			r.Problems = append(r.Problems, problems[i])
		}
	}
	return good, nil
}
