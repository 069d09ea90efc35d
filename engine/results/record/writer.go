package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/loadstone-db/loadstone/engine"
)

// WriterOptions configure a Writer. Dir, RunID, ResultID and WorkerID are required.
type WriterOptions struct {
	// Dir is the spool folder; it is made when absent.
	Dir string
	// RunID, ResultID and WorkerID are the same for every execution of the writer.
	// WorkerID becomes part of the file names: letters, digits, '.', '_' and '-'.
	RunID    string
	ResultID string
	WorkerID string
	// Statements is the run's frozen list. A transaction gets the name that its
	// first statement gives it. An execution whose Statement is neither in the list nor a
	// control statement gets an empty statement_id.
	Statements []engine.Statement
	// Errors resolves ids of the run worker's error dictionary. It is called from
	// the goroutine that calls Write, once per distinct error and row group.
	Errors func(id uint32) engine.ExecutionError
	// OpenLoop says that due_at and started_at may differ. It is kept in the parts'
	// metadata, for readers that tell service times; the encoder looks at the executions.
	OpenLoop bool
	// PartRows and PartAge bound a part; 0 means 2 million rows and 10 s: what a killed process loses at most.
	PartRows int64
	PartAge  time.Duration
	// Reserve is how many bytes of the disk stay free; recording ends when there are fewer. 0 is none.
	Reserve int64
	// Quota bounds what is written; nil is no bound.
	Quota Quota
}

const (
	defaultPartRows = 2_000_000
	defaultPartAge  = 10 * time.Second
)

// Writer records the executions of one run worker. One goroutine at a time
// uses it. Memory is bounded: one row group, in columns and encoded.
type Writer struct {
	opts           WriterOptions
	create         func(path string) (file, error)
	cols           columns
	enc            *encoder
	part           *part
	number         int
	done           []engine.Artifact
	err            error
	closed         bool
	spaceCheckedAt time.Time // at the free space, last

	// A finished part is made durable by a goroutine of its own, so that a slow
	// disk does not hold up recording; finishing is not nil while one runs.
	finishing chan finishResult
}

type finishResult struct {
	artifact engine.Artifact
	err      error
}

// ValidName reports whether name is safe as one element of a path: it cannot
// climb, hide, or name a part under construction.
func ValidName(name string) bool { return engine.SafeName(name) }

// NewWriter returns a Writer for one run worker. Parts that the folder holds
// already are left alone; new ones get the next free numbers.
func NewWriter(opts WriterOptions) (*Writer, error) {
	for field, v := range map[string]string{"run id": opts.RunID, "worker id": opts.WorkerID} {
		if !ValidName(v) {
			return nil, fmt.Errorf("opening recorder: %s %q cannot be used in a file name", field, v)
		}
	}
	if opts.PartRows <= 0 {
		opts.PartRows = defaultPartRows
	}
	if opts.PartAge <= 0 {
		opts.PartAge = defaultPartAge
	}
	if opts.Errors == nil {
		opts.Errors = func(uint32) engine.ExecutionError { return engine.ExecutionError{Class: engine.ErrClassOther} }
	}
	if err := os.MkdirAll(opts.Dir, 0o750); err != nil {
		return nil, DiskError(opts.Dir, err)
	}
	w := &Writer{opts: opts, create: createFile, enc: newEncoder(opts)}
	w.cols.reset()
	if err := w.checkDiskSpace(time.Now()); err != nil {
		return nil, err
	}
	return w, nil
}

// Write appends executions; it keeps no reference to recs. The first error is
// fatal: every later call returns it again without touching the disk. It is an
// *engine.Error.
func (w *Writer) Write(recs []engine.Execution) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errors.New("recording executions: writer is closed")
	}
	if err := w.checkDiskSpace(time.Now()); err != nil {
		// What is recorded is kept: the reserve has room for it.
		if ended := w.rotate(); ended != nil {
			return w.fail(ended)
		}
		w.err = err
		return err
	}
	for len(recs) > 0 {
		n, err := w.cols.add(recs)
		if err != nil {
			return w.fail(err)
		}
		recs = recs[n:]
		if w.cols.n == rowGroupRows {
			if err := w.flush(); err != nil {
				return w.fail(err)
			}
		}
	}
	if w.part != nil && time.Since(w.part.opened) >= w.opts.PartAge {
		if err := w.rotate(); err != nil {
			return w.fail(err)
		}
	} else if w.part == nil && w.cols.n > 0 {
		if err := w.open(); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

// Close finishes the last part and returns every finished one, oldest first.
// The parts are whole and durable even when the error is not nil; the error is
// the one that stopped the writer. Calling it again returns the same.
func (w *Writer) Close() ([]engine.Artifact, error) {
	if !w.closed {
		w.closed = true
		if w.err == nil {
			if err := w.rotate(); err != nil {
				_ = w.fail(err) // kept in w.err
			}
		}
		if err := w.awaitFinished(); err != nil && w.err == nil {
			_ = w.fail(err) // kept in w.err
		}
		w.cols = columns{}
	}
	return w.done, w.err
}

func (w *Writer) fail(err error) error {
	if full := (*quotaError)(nil); errors.As(err, &full) {
		if kept := w.closePart(); kept == nil {
			w.err = full.error
			return w.err
		}
	}
	if w.part != nil {
		w.part.abandon()
		w.part = nil
	}
	w.err = DiskError(w.opts.Dir, err)
	return w.err
}

func (w *Writer) open() error {
	for {
		w.number++
		path := filepath.Join(w.opts.Dir, fmt.Sprintf("executions-%s-%05d%s", w.opts.WorkerID, w.number, extension))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		p, err := openPart(&w.opts, path, w.create)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		w.part = p
		return err
	}
}

// flush encodes the row group and writes it.
func (w *Writer) flush() error {
	if w.cols.n == 0 {
		return nil
	}
	if w.part == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	bytes, group, err := w.enc.encode(&w.cols, w.part.size, len(w.part.groups))
	if err != nil {
		return err
	}
	if err := w.part.add(bytes, group, w.cols.minDue, w.cols.maxEnd); err != nil {
		return err
	}
	w.cols.reset()
	if w.part.rows >= w.opts.PartRows {
		return w.rotate()
	}
	return nil
}

// closePart ends the current part with the rows that it has on the disk.
func (w *Writer) closePart() error {
	w.cols.reset()
	if w.part != nil && w.part.rows == 0 {
		w.part.abandon()
		w.part = nil
	}
	return w.rotate()
}

// rotate ends the current part. At most one part is being made durable at a time.
func (w *Writer) rotate() error {
	if w.cols.n > 0 {
		// The flush may itself rotate, when the rows reach the limit.
		if err := w.flush(); err != nil {
			return err
		}
	}
	if w.part == nil {
		return nil
	}
	if err := w.awaitFinished(); err != nil {
		return err
	}
	p, done := w.part, make(chan finishResult, 1)
	w.part, w.finishing = nil, done
	go func() {
		a, err := p.finish()
		if err != nil {
			p.abandon()
		}
		done <- finishResult{a, err} // room: each part has a channel of its own
	}()
	return nil
}

// awaitFinished waits for the part that is being made durable.
func (w *Writer) awaitFinished() error {
	if w.finishing == nil {
		return nil
	}
	f := <-w.finishing
	w.finishing = nil
	if f.err != nil {
		return f.err
	}
	w.done = append(w.done, f.artifact)
	return nil
}
