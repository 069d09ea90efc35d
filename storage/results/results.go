// Package results reads the Parquet parts of runs, wherever they are kept, and
// computes the exact figures of a run from them. Figures read columns, never rows.
package results

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/storage/objects"
)

// Results implements record.Results on an object store. Its methods are safe for
// concurrent use, except Delete beside another method on the same run.
type Results struct {
	objects objects.Store
}

var _ record.Results = (*Results)(nil)

// Open returns the results that are kept in a folder, which is made when absent.
func Open(dir string) (*Results, error) {
	folder, err := objects.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return New(folder), nil
}

// New returns the results that the store keeps.
func New(kept objects.Store) *Results { return &Results{objects: kept} }

// Put implements record.Results. A file that is not what a says is refused with
// objects.ErrChecksum; another file under the name of a stored part with store.ErrConflict.
func (f *Results) Put(ctx context.Context, a engine.Artifact, from record.Source) error {
	return f.objects.Put(ctx, a, from)
}

// CheckWritable is nil when a part can be stored now, as far as this machine knows: nobody asks storage on another one.
func (f *Results) CheckWritable() error {
	if folder, ok := f.objects.(interface{ CheckWritable() error }); ok {
		return folder.CheckWritable()
	}
	return nil
}

// Delete implements record.Results. A run without results is no error.
func (f *Results) Delete(ctx context.Context, runID string) error {
	return f.objects.Delete(ctx, runID)
}

// DeleteExecutions removes the parts with executions of a run, and what was kept of their parameters; its segment
// and what its database's history told of it stay. One that has none is no error.
func (f *Results) DeleteExecutions(ctx context.Context, runID string) error {
	names, err := f.objects.Names(ctx, runID)
	for _, name := range names {
		if isExecutionsFile(name) {
			err = errors.Join(err, f.objects.Remove(ctx, runID, name))
		}
	}
	return err
}

// executionsPrefix begins the names of parts with executions.
const executionsPrefix = "executions-"

// isExecutionsFile tells the files that tell of single executions.
func isExecutionsFile(name string) bool {
	return strings.HasPrefix(name, executionsPrefix) || strings.HasPrefix(name, record.ParamsPrefix)
}

// Place names where the parts of all runs are, the same for all servers that share it, and says to people what it is.
func (f *Results) Place() (position, label string, err error) { return f.objects.ID() }

// HasExecutions reports whether there is something that DeleteExecutions would remove.
func (f *Results) HasExecutions(ctx context.Context, runID string) (bool, error) {
	names, err := f.objects.Names(ctx, runID)
	return slices.ContainsFunc(names, isExecutionsFile), err
}

// Location says to people where the parts of a run are.
func (f *Results) Location(runID string) string { return f.objects.Location(runID) }

// Open implements record.Results. A part that is not there is store.ErrNotFound.
func (f *Results) Open(ctx context.Context, runID, name string) (io.ReadSeekCloser, int64, error) {
	file, err := f.objects.Open(ctx, runID, name)
	if err != nil {
		return nil, 0, err
	}
	return &download{io.NewSectionReader(file, 0, file.Size()), file}, file.Size(), nil
}

// FindExecutions looks for single executions in these parts of a run, page by page.
func (f *Results) FindExecutions(ctx context.Context, runID string, parts []engine.Artifact,
	q executions.Query) (executions.ExecutionPage, error) {
	return Find(ctx, f.objects, runID, parts, q)
}

// Failures tells what failed in these parts of a run, by error and statement.
func (f *Results) Failures(ctx context.Context, runID string, parts []engine.Artifact) (executions.Failures, error) {
	return Failures(ctx, f.objects, runID, parts)
}

// download is a file from its beginning to its end.
type download struct {
	*io.SectionReader
	io.Closer
}

// part is a stored part of executions.
type part struct {
	objects     objects.Store
	runID, name string
}

func (p part) open(ctx context.Context) (*record.Part, error) {
	file, err := p.objects.Open(ctx, p.runID, p.name)
	if err != nil {
		return nil, fmt.Errorf("opening part %s: %w", p.name, err)
	}
	return record.ReadPart(file, p.name)
}

// executionParts lists the parts that hold executions, by name.
func (f *Results) executionParts(ctx context.Context, runID string) ([]part, error) {
	names, err := f.objects.Names(ctx, runID)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, name := range names {
		if strings.HasPrefix(name, executionsPrefix) {
			parts = append(parts, part{f.objects, runID, name})
		}
	}
	return parts, nil
}
