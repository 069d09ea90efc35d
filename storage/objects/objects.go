// Package objects keeps the files of runs, by run and name: in a folder here, in
// S3-compatible storage in s3store. What is in the files is read by storage/results.
//
// The contract is narrow so that a store can be as plain as a folder, and one suite
// (objectstest) holds every implementation to it.
package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/artifact"
)

// ErrChecksum says that a file is not the artifact it claims to be: its size or
// its SHA-256 differs. The file is left where it was.
var ErrChecksum = errors.New("checksum mismatch")

// Store keeps files by run. Its methods are safe for concurrent use, except Delete
// beside another method on the same run. Names that could climb are refused
// (engine.CodeInvalid).
type Store interface {
	// Put takes the file at path as a.Name of the run a.RunID: all of it, checked by size
	// and SHA-256 and durable, or nothing of it. The file is gone afterwards. Repeating it is
	// harmless, also when the file is gone already. A file that is not what a says is
	// refused with ErrChecksum, another content under a name that is taken with
	// store.ErrConflict; both leave the file where it was.
	Put(ctx context.Context, a engine.Artifact, path string) error
	// Open opens a file for reading; without one the error is store.ErrNotFound. Its reads end with ctx.
	Open(ctx context.Context, runID, name string) (File, error)
	// Names lists the files of a run, sorted; none for a run that has none.
	Names(ctx context.Context, runID string) ([]string, error)
	// Delete removes every file of a run. A run that has none is no error.
	Delete(ctx context.Context, runID string) error
	// Where says to people where the files of a run are, without a secret.
	Where(runID string) string
}

// File is a stored file, open for reading at offsets. It never changes. What was
// damaged since it was stored is an error where the store can know.
type File = artifact.File

// CheckRun refuses what is no run id.
func CheckRun(runID string) error {
	if !artifact.ValidName(runID) {
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
func IsPart(name string) bool { return artifact.ValidName(name) && strings.HasSuffix(name, ".parquet") }
