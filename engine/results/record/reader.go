package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/loadstone-db/loadstone/engine"
)

// Part is a finished part, open for reading by column. Its methods are safe
// for concurrent use; the slices they fill belong to the caller.
type Part struct {
	f    File
	pq   *parquet.File
	cols [numColumns]int
	info engine.Artifact

	openLoop bool
}

// maxGroupRows bounds what a row group may claim to hold.
const maxGroupRows = 1 << 24

// File is what a part is read from, at offsets.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// OpenFile opens a file of the disk.
func OpenFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &localFile{f, st.Size()}, nil
}

type localFile struct {
	*os.File
	size int64
}

func (f *localFile) Size() int64 { return f.size }

// OpenPart is ReadPart of a file of the disk.
func OpenPart(path string) (*Part, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, fmt.Errorf("opening part: %w", err)
	}
	return ReadPart(f, filepath.Base(path))
}

// ReadPart reads a finished part and checks that it is one: magic, footer,
// columns and a schema version this package knows. It closes the file with the part, and on an error.
func ReadPart(f File, name string) (*Part, error) {
	p := &Part{f: f}
	if err := p.open(name); err != nil {
		f.Close()
		return nil, fmt.Errorf("opening part %s: %w", name, err)
	}
	return p, nil
}

func (p *Part) open(name string) (err error) {
	defer corrupt(&err)
	if p.pq, err = parquet.OpenFile(p.f, p.f.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.ReadBufferSize(64<<10)); err != nil {
		return err
	}
	meta := map[string]string{}
	for _, kv := range p.pq.Metadata().KeyValueMetadata {
		meta[kv.Key] = kv.Value
	}
	var rows int64
	for _, g := range p.pq.RowGroups() {
		if g.NumRows() <= 0 || g.NumRows() > maxGroupRows {
			return fmt.Errorf("a row group of %d rows", g.NumRows())
		}
		rows += g.NumRows()
	}
	if rows != p.pq.NumRows() {
		return fmt.Errorf("%d rows in its row groups, %d in its footer", rows, p.pq.NumRows())
	}
	version, err := strconv.Atoi(meta[metaSchemaVersion])
	if err != nil {
		return errors.New("not a part of executions: no schema version in its metadata")
	}
	if version > SchemaVersion {
		return fmt.Errorf("written by a newer version: schema %d, this one reads up to %d", version, SchemaVersion)
	}
	for i, d := range columnDefs() {
		if d.since > version {
			p.cols[i] = absent
			continue
		}
		leaf, ok := p.pq.Schema().Lookup(d.name)
		if !ok {
			return fmt.Errorf("column %s is missing", d.name)
		}
		if leaf.Node.Type().Kind() != parquet.Kind(d.typ) || leaf.Node.Optional() != d.optional {
			return fmt.Errorf("column %s has another type", d.name)
		}
		p.cols[i] = leaf.ColumnIndex
	}
	instant := func(key string) engine.Time {
		ns, err := strconv.ParseInt(meta[key], 10, 64)
		if err != nil {
			return engine.Time{}
		}
		return engine.At(time.Unix(0, ns))
	}
	p.info = engine.Artifact{
		ArtifactID: meta[metaArtifactID], RunID: meta[metaRunID], ResultID: meta[metaTestID], WorkerID: meta[metaWorkerID],
		Kind: KindExecutions, Name: name, SizeBytes: p.f.Size(), RowCount: p.pq.NumRows(),
		MinTime: instant(metaMinTime), MaxTime: instant(metaMaxTime), SchemaVersion: version,
	}
	p.openLoop = meta[metaOpenLoop] == strconv.FormatBool(true)
	if at, err := time.Parse(time.RFC3339Nano, meta[metaCreatedAt]); err == nil {
		p.info.CreatedAt = engine.At(at)
	}
	return nil
}

// absent is the place of a column that a part of an older version does not have.
const absent = -1

// zeros returns n of them in dst's memory.
func zeros[T any](dst []T, n int) []T {
	dst = slices.Grow(dst[:0], n)[:n]
	clear(dst)
	return dst
}

// Artifact describes the part, without its checksum.
func (p *Part) Artifact() engine.Artifact { return p.info }

// OpenLoop reports whether the executions were due on a schedule.
func (p *Part) OpenLoop() bool { return p.openLoop }

// RowGroups is the number of row groups.
func (p *Part) RowGroups() int { return len(p.pq.RowGroups()) }

// Rows is the number of rows of one row group.
func (p *Part) Rows(group int) int { return int(p.pq.RowGroups()[group].NumRows()) }

// Close closes the file.
func (p *Part) Close() error { return p.f.Close() }

// pages calls fn for every page of a column chunk.
func (p *Part) pages(group int, col Column, fn func(parquet.Page) error) (err error) {
	defer corrupt(&err)
	pages := p.pq.RowGroups()[group].ColumnChunks()[p.cols[col]].Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	rows, want := 0, p.Rows(group)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			if rows != want {
				return fmt.Errorf("reading column %s: %d values for %d rows", columnDefs()[col].name, rows, want)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading column %s: %w", columnDefs()[col].name, err)
		}
		if rows += int(page.NumValues()); rows <= want {
			err = fn(page)
		} else {
			err = errors.New("more values than rows")
		}
		parquet.Release(page)
		if err != nil {
			return fmt.Errorf("reading column %s: %w", columnDefs()[col].name, err)
		}
	}
}

var errCorrupt = errors.New("dictionary index out of range")

// corrupt turns a panic of the decoder into an error: a damaged file must not
// take the process with it.
func corrupt(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("damaged Parquet data: %v", r)
	}
}

// fixed reads a required column of fixed-size values, plain or dictionary-encoded.
func fixed[T any](p *Part, group int, col Column, dst []T, plain func(parquet.Page) []T,
	value func(parquet.Value) T) ([]T, error) {
	if p.cols[col] == absent {
		return zeros(dst, p.Rows(group)), nil
	}
	dst = slices.Grow(dst[:0], p.Rows(group))
	err := p.pages(group, col, func(page parquet.Page) error {
		dict := page.Dictionary()
		if dict == nil {
			dst = append(dst, plain(page)...)
			return nil
		}
		entries := make([]T, dict.Len())
		for i := range entries {
			entries[i] = value(dict.Index(int32(i)))
		}
		data := page.Data()
		for _, i := range data.Int32() {
			if uint(i) >= uint(len(entries)) {
				return errCorrupt
			}
			dst = append(dst, entries[i])
		}
		return nil
	})
	return dst, err
}

// Doubles reads a DOUBLE column of one row group into dst, which is grown as needed.
func (p *Part) Doubles(group int, col Column, dst []float64) ([]float64, error) {
	return fixed(p, group, col, dst,
		func(page parquet.Page) []float64 { d := page.Data(); return d.Double() }, parquet.Value.Double)
}

// Int64s reads an INT64 column (timestamps are nanoseconds since the epoch) of one row group.
func (p *Part) Int64s(group int, col Column, dst []int64) ([]int64, error) {
	return fixed(p, group, col, dst,
		func(page parquet.Page) []int64 { d := page.Data(); return d.Int64() }, parquet.Value.Int64)
}

// Int32s reads an INT32 column of one row group. Unsigned columns keep their bits.
func (p *Part) Int32s(group int, col Column, dst []int32) ([]int32, error) {
	return fixed(p, group, col, dst,
		func(page parquet.Page) []int32 { d := page.Data(); return d.Int32() }, parquet.Value.Int32)
}

// Bools reads a BOOLEAN column of one row group.
func (p *Part) Bools(group int, col Column, dst []bool) ([]bool, error) {
	if p.cols[col] == absent {
		return zeros(dst, p.Rows(group)), nil
	}
	dst = slices.Grow(dst[:0], p.Rows(group))
	err := p.pages(group, col, func(page parquet.Page) error {
		data := page.Data()
		packed := data.Boolean()
		for i := range int(page.NumValues()) {
			dst = append(dst, packed[i/8]>>(i%8)&1 == 1)
		}
		return nil
	})
	return dst, err
}

// Strings reads a text column of one row group as indexes into the returned
// values; −1 is null. A column without a dictionary, as query ids have none, gives a value for each row.
func (p *Part) Strings(group int, col Column, dst []int32) (indexes []int32, values []string, err error) {
	dst = slices.Grow(dst[:0], p.Rows(group))
	err = p.pages(group, col, func(page parquet.Page) error {
		levels := page.DefinitionLevels()
		dict := page.Dictionary()
		if dict == nil {
			if len(levels) == 0 {
				return errors.New("not dictionary-encoded")
			}
			var err error
			dst, values, err = plainStrings(page, levels, dst, values)
			return err
		}
		base := int32(len(values))
		for i := range dict.Len() {
			values = append(values, string(dict.Index(int32(i)).ByteArray()))
		}
		data := page.Data()
		entries := data.Int32()
		for _, i := range entries {
			if uint(i) >= uint(dict.Len()) {
				return errCorrupt
			}
		}
		if levels == nil {
			for _, i := range entries {
				dst = append(dst, base+i)
			}
			return nil
		}
		for _, level := range levels {
			if level == 0 || len(entries) == 0 {
				dst = append(dst, -1)
				continue
			}
			dst = append(dst, base+entries[0])
			entries = entries[1:]
		}
		return nil
	})
	return dst, values, err
}

// plainStrings appends the values of a page without a dictionary, which share one string.
func plainStrings(page parquet.Page, levels []byte, dst []int32, values []string) ([]int32, []string, error) {
	data := page.Data()
	bytes, offsets := data.ByteArray()
	text, next := string(bytes), 0
	for _, level := range levels {
		if level == 0 {
			dst = append(dst, -1)
			continue
		}
		if next+1 >= len(offsets) || offsets[next] > offsets[next+1] || int(offsets[next+1]) > len(text) {
			return nil, nil, errors.New("fewer values than rows")
		}
		dst = append(dst, int32(len(values)))
		values = append(values, text[offsets[next]:offsets[next+1]])
		next++
	}
	return dst, values, nil
}

// QueryIDs reads server_query_id of one row group into dst, which is grown as
// needed; null is the zero QueryID.
func (p *Part) QueryIDs(group int, dst []engine.QueryID) ([]engine.QueryID, error) {
	dst = slices.Grow(dst[:0], p.Rows(group))
	err := p.pages(group, ColServerQueryID, func(page parquet.Page) error {
		indexes, values, err := plainStrings(page, page.DefinitionLevels(), nil, nil)
		if err != nil {
			return err
		}
		for _, i := range indexes {
			var id engine.QueryID
			if i >= 0 {
				if id, err = engine.ParseQueryID(values[i]); err != nil {
					return err
				}
			}
			dst = append(dst, id)
		}
		return nil
	})
	return dst, err
}
