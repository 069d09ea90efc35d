// Package objects keeps the files of runs, by run and name: in a folder here, in
// S3-compatible storage in s3store. What is in the files is read by storage/results.
//
// The contract is narrow so that a store can be as plain as a folder, and one suite
// (objectstest) holds every implementation to it.
package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
)

// ErrChecksum says that a source is not the artifact it claims to be: its size or
// its SHA-256 differs.
var ErrChecksum = errors.New("checksum mismatch")

// Store keeps files by run. Its methods are safe for concurrent use, except Delete
// beside another method on the same run. Names that could climb are refused
// (engine.CodeInvalid).
type Store interface {
	// Put stores what from gives as a.Name of the run a.RunID: all of it, checked by size
	// and SHA-256 and durable, or nothing of it. The source is read once at most, and stays as
	// it was. Repeating it is harmless, also when the source is gone already. What is not what
	// a says is refused with ErrChecksum, after no more than one byte too many; another
	// content under a name that is taken with store.ErrConflict.
	Put(ctx context.Context, a engine.Artifact, from record.Source) error
	// Open opens a file for reading; without one the error is store.ErrNotFound. Its reads end with ctx.
	Open(ctx context.Context, runID, name string) (File, error)
	// Names lists the files of a run, sorted; none for a run that has none.
	Names(ctx context.Context, runID string) ([]string, error)
	// Remove removes one file of a run. One that is not there is no error; who has it open reads on, or
	// hears that it is gone.
	Remove(ctx context.Context, runID, name string) error
	// Delete removes every file of a run. A run that has none is no error.
	Delete(ctx context.Context, runID string) error
	// ID names the folder or bucket, the same for all servers that share it, and says to people what it is.
	ID() (place, label string, err error)
	// Location says to people where the files of a run are, without a secret.
	Location(runID string) string
}

// File is a stored file, open for reading at offsets. It never changes. What was
// damaged since it was stored is an error where the store can know.
type File = record.File

// CheckRun refuses what is no run id.
func CheckRun(runID string) error {
	if !record.ValidName(runID) {
		return engine.InvalidField("run_id", fmt.Sprintf("%q is not a run id", runID),
			"Use the id that the list of runs shows.")
	}
	return nil
}

// CheckNames refuses what is no run id or no name of a part.
func CheckNames(runID, name string) error {
	if err := CheckRun(runID); err != nil {
		return err
	}
	if !IsPart(name) {
		return engine.InvalidField("part", fmt.Sprintf("%q is not the name of a part", name),
			"Use a name from the run's list of artifacts.")
	}
	return nil
}

// IsPart reports whether a part can have that name.
func IsPart(name string) bool { return record.ValidName(name) && strings.HasSuffix(name, ".parquet") }

// copyBuffer is how much is read, summed and written at a time.
const copyBuffer = 256 << 10

// Receive writes what from gives to w, and makes sure that it is a. An error of the
// source, or ErrChecksum, comes as err; one of w, such as a full disk, as failed.
func Receive(ctx context.Context, a engine.Artifact, from record.Source, w io.Writer) (failed, err error) {
	r, err := from.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	sum, buf := sha256.New(), make([]byte, copyBuffer)
	for n := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		// One byte more than there should be is enough to see that it is more.
		got, err := io.ReadFull(r, buf[:1+min(int64(len(buf)-1), a.SizeBytes-n)])
		n += int64(got)
		over := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !over {
			return nil, err
		}
		if n > a.SizeBytes || over && n < a.SizeBytes {
			return nil, fmt.Errorf("%s has not the %d bytes that it should: %w", a.Name, a.SizeBytes, ErrChecksum)
		}
		sum.Write(buf[:got])
		if _, err := w.Write(buf[:got]); err != nil {
			return err, nil
		}
		if over {
			break
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.SHA256 {
		return nil, fmt.Errorf("%s has the SHA-256 %s, and not %s: %w", a.Name, got, a.SHA256, ErrChecksum)
	}
	return nil, nil
}
