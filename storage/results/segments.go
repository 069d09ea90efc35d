package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/segment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// bytesSource is a source that is held in memory.
type bytesSource []byte

func (m bytesSource) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m)), nil
}

// PutSegment stores a segment, whole or not at all.
func (f *Results) PutSegment(ctx context.Context, a engine.Artifact, content []byte) error {
	return f.objects.Put(ctx, a, bytesSource(content))
}

// SegmentContent opens a stored segment for who hands it on, and says how large it is; one that is not there is
// store.ErrNotFound.
func (f *Results) SegmentContent(ctx context.Context, runID, name string) (io.ReadCloser, int64, error) {
	file, err := f.objects.Open(ctx, runID, name)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, 0, file.Size()), file}, file.Size(), nil
}

// OpenSegment opens a stored segment; one that is not there is store.ErrNotFound.
func (f *Results) OpenSegment(ctx context.Context, runID, name string) (*segment.File, error) {
	file, err := f.objects.Open(ctx, runID, name)
	if err != nil {
		return nil, err
	}
	return segment.Open(file)
}

// RemoveSegment removes a segment; one that is not there is no error.
func (f *Results) RemoveSegment(ctx context.Context, runID, name string) error {
	return f.objects.Remove(ctx, runID, name)
}

// RemoveSegments removes what epochs below the given one have written of a run, all but the named one.
func (f *Results) RemoveSegments(ctx context.Context, runID string, below int64, keep string) error {
	names, err := f.objects.Names(ctx, runID)
	if err != nil {
		return err
	}
	for _, name := range names {
		if epoch, ok := segment.Epoch(name); ok && epoch < below && name != keep {
			err = errors.Join(err, f.objects.Remove(ctx, runID, name))
		}
	}
	return err
}

// LatestSegment opens the newest segment of a run; a run that has none yet is store.ErrNotFound.
func (f *Results) LatestSegment(ctx context.Context, runID string) (*segment.File, error) {
	name, err := f.latestSegment(ctx, runID)
	if err != nil {
		return nil, err
	}
	return f.OpenSegment(ctx, runID, name)
}

// LatestSegmentContent implements snowflakeexport.Record.
func (f *Results) LatestSegmentContent(ctx context.Context, runID string) ([]byte, error) {
	name, err := f.latestSegment(ctx, runID)
	if err != nil {
		return nil, err
	}
	file, _, err := f.SegmentContent(ctx, runID, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading segment %s of run %s: %w", name, runID, err)
	}
	return content, nil
}

// latestSegment is the name of the newest one.
func (f *Results) latestSegment(ctx context.Context, runID string) (string, error) {
	names, err := f.objects.Names(ctx, runID)
	if err != nil {
		return "", err
	}
	latest, newest := "", int64(-1)
	for _, name := range names {
		if epoch, ok := segment.Epoch(name); ok && epoch > newest {
			latest, newest = name, epoch
		}
	}
	if latest == "" {
		return "", store.ErrNotFound
	}
	return latest, nil
}
