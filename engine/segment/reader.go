package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine/artifact"
	"github.com/loadstone-db/loadstone/engine/rollup"
)

// File is an open segment. Its methods are safe for concurrent use.
type File struct {
	f            artifact.File
	pq           *parquet.File
	runID        string
	version      int
	relation, at int // columns
}

// Open reads what a segment holds, and refuses what is none. It closes the file with the segment, and on an error.
func Open(f artifact.File) (*File, error) {
	s := &File{f: f}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a segment: %w", err), f.Close())
	}
	return s, nil
}

func (s *File) open() (err error) {
	defer damaged(&err)
	if s.pq, err = parquet.OpenFile(s.f, s.f.Size(), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true)); err != nil {
		return err
	}
	text, _ := s.pq.Lookup(metaVersion)
	version, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("not a segment: no version in its metadata")
	}
	if version > Version {
		return fmt.Errorf("written by a newer version: %d, this one reads up to %d", version, Version)
	}
	s.version = version
	s.runID, _ = s.pq.Lookup(metaRunID)
	for name, at := range map[string]*int{"relation": &s.relation, "at": &s.at} {
		leaf, ok := s.pq.Schema().Lookup(name)
		if !ok {
			return fmt.Errorf("column %s is missing", name)
		}
		*at = leaf.ColumnIndex
	}
	return nil
}

// damaged turns a panic of the decoder into an error.
func damaged(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged Parquet data: %v", r)
	}
}

// RunID is the run whose series these are.
func (s *File) RunID() string { return s.runID }

// Rows is how many there are.
func (s *File) Rows() int64 { return s.pq.NumRows() }

// RowGroups is in how many stretches they can be read.
func (s *File) RowGroups() int { return len(s.pq.RowGroups()) }

// Close closes the file.
func (s *File) Close() error { return s.f.Close() }

// Query says which rows are wanted.
type Query struct {
	// Relations are all when there are none.
	Relations []string
	// From and To bound when a second began, in microseconds since the epoch of Unix, both included; 0 does not.
	From, To int64
}

func (q *Query) wants(r *Row) bool {
	return (len(q.Relations) == 0 || slices.Contains(q.Relations, r.Relation)) && (q.From == 0 || r.At >= q.From) &&
		(q.To == 0 || r.At <= q.To)
}

// Groups are the row groups that may hold rows of a query, as their statistics say.
func (s *File) Groups(q Query) (groups []int) {
	for i, g := range s.pq.Metadata().RowGroups {
		if s.mayHold(g.Columns[s.relation].MetaData.Statistics.MinValue,
			g.Columns[s.relation].MetaData.Statistics.MaxValue, g.Columns[s.at].MetaData.Statistics.MinValue,
			g.Columns[s.at].MetaData.Statistics.MaxValue, q) {
			groups = append(groups, i)
		}
	}
	return groups
}

func (s *File) mayHold(first, last, from, to []byte, q Query) bool {
	if len(from) == 8 && len(to) == 8 {
		if q.From != 0 && int64(binary.LittleEndian.Uint64(to)) < q.From {
			return false
		}
		if q.To != 0 && int64(binary.LittleEndian.Uint64(from)) > q.To {
			return false
		}
	}
	if len(q.Relations) == 0 || len(first) == 0 || len(last) == 0 {
		return true
	}
	return slices.ContainsFunc(q.Relations, func(name string) bool {
		return name >= string(first) && name <= string(last)
	})
}

// Read calls fn for each row of a query, by series and time. The row, and its counts, are valid until fn returns.
func (s *File) Read(q Query, fn func(*Row) error) error {
	for _, g := range s.Groups(q) {
		if err := s.readGroup(g, q, fn); err != nil {
			return fmt.Errorf("reading a segment of the run %s: %w", s.runID, err)
		}
	}
	return nil
}

func (s *File) readGroup(group int, q Query, fn func(*Row) error) (err error) {
	defer damaged(&err)
	r := parquet.NewGenericRowGroupReader[Row](s.pq.RowGroups()[group])
	defer func() { err = errors.Join(err, r.Close()) }()
	rows := make([]Row, batch)
	for {
		n, readErr := r.Read(rows)
		for i := range rows[:n] {
			if s.version < 2 {
				rows[i].CreditsPerHour = rollup.Unknown // there was no such column
			}
			if !q.wants(&rows[i]) {
				continue
			}
			if err := fn(&rows[i]); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}
