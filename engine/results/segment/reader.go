package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// File is an open segment. Its methods are safe for concurrent use.
type File struct {
	f            record.File
	pq           *parquet.File
	runID        string
	version      int
	relation, at int // columns
	// columns are those of a row, and places where the file has them.
	columns []column
	places  []int
}

// Open reads what a segment holds, and refuses what is none. It closes the file with the segment, and on an error.
func Open(f record.File) (*File, error) {
	s := &File{f: f}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a segment: %w", err), f.Close())
	}
	return s, nil
}

func (s *File) open() (err error) {
	defer recoverDamage(&err)
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
	s.columns = columns()
	s.places = make([]int, len(s.columns))
	for i, c := range s.columns {
		leaf, ok := s.pq.Schema().Lookup(c.name)
		switch {
		case !ok && version == Version || !ok && (c.name == "series" || c.name == "second"):
			return fmt.Errorf("column %s is missing", c.name)
		case !ok:
			s.places[i] = missingColumn
		case leaf.Node.Type().Kind() != c.kind || !leaf.Node.Required() || !leaf.Node.Leaf():
			return fmt.Errorf("column %s has another type", c.name)
		default:
			s.places[i] = leaf.ColumnIndex
		}
	}
	return nil
}

// recoverDamage turns a panic of the decoder into an error.
func recoverDamage(err *error) {
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
	// NoExtremes leaves the least and the greatest latency of a second out.
	NoExtremes bool
}

func (q *Query) wantsRelation(relation string) bool {
	return len(q.Relations) == 0 || slices.Contains(q.Relations, relation)
}

func (q *Query) wants(r *Row) bool {
	return q.wantsRelation(r.Relation) && (q.From == 0 || r.At >= q.From) && (q.To == 0 || r.At <= q.To)
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

// groupPool have the memory of row groups that were read: some hundred KB each.
var groupPool = sync.Pool{New: func() any { return &group{} }}

// Read calls fn for each row of a query, by series and time. The row, and its counts, are valid until fn returns. Of
// each row group the columns are read that have values in the relations wanted of it.
func (s *File) Read(q Query, fn func(*Row) error) error {
	g := groupPool.Get().(*group)
	defer groupPool.Put(g)
	for _, i := range s.Groups(q) {
		if err := s.rows(i, &q, g, fn); err != nil {
			return fmt.Errorf("reading a segment of the run %s: %w", s.runID, err)
		}
	}
	return nil
}

func (s *File) rows(i int, q *Query, g *group, fn func(*Row) error) error {
	of, err := s.readGroup(i, q, g)
	if err != nil || of == 0 {
		return err
	}
	var r Row
	for i := range g.n {
		g.row(i, of, &r)
		if s.version < 2 {
			r.CreditsPerHour = rollup.Unknown // there was no such column
		}
		if !q.wants(&r) {
			continue
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return nil
}
