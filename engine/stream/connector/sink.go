package connector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// Sink takes the rows of a query.
type Sink interface {
	// Write takes rows, which are the caller's again when it returns.
	Write(b *column.Batch) error
	// Close writes what is left.
	Close() error
}

// Failing is an optional ability of a Sink that writes by itself: it tells when it can not any more, though nobody
// writes. Close says why.
type Failing interface {
	Failed() <-chan struct{}
}

// Holding is an optional ability of a Sink: it says how many bytes it holds for rows that it was given. Only who writes
// asks.
type Holding interface {
	Held() int
}

// OpenSink opens a sink of the type FILE or PRINT; what PRINT writes goes to out.
func OpenSink(kind string, c Config, columns []column.Column, folder *Folder, out io.Writer) (Sink, error) {
	e := &encoder{columns: columns, json: strings.EqualFold(c.String("SINK.INPUT_FORMAT"), "JSON")}
	for _, col := range columns {
		name, err := json.Marshal(col.Name)
		if err != nil {
			return nil, fmt.Errorf("naming the columns: %w", err)
		}
		e.names = append(e.names, string(name)+":")
	}
	switch kind {
	case Print:
		e.to = bufio.NewWriter(out)
		return e, nil
	case File:
	default:
		return nil, fmt.Errorf("a sink of the type %s %w: it needs a server", kind, ErrPath)
	}
	f, err := folder.write(c.String("SINK.FILE_PATH"), c.Bool("SINK.APPEND"))
	if err != nil {
		return nil, err
	}
	e.to, e.file = bufio.NewWriterSize(f, 64<<10), f
	if !e.json {
		if err := e.header(); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return e, nil
}

// header writes the names of the columns into a file that is empty.
func (e *encoder) header() error {
	e.file.mu.Lock()
	defer e.file.mu.Unlock()
	if info, err := e.file.Stat(); err != nil || info.Size() > 0 {
		return err
	}
	for i, col := range e.columns {
		e.separate(i)
		e.line = quoteCSV(e.line, []byte(col.Name))
	}
	e.line = append(e.line, '\n')
	if _, err := e.to.Write(e.line); err != nil {
		return fmt.Errorf("writing the names of columns: %w", err)
	}
	e.line = e.line[:0]
	if err := e.to.Flush(); err != nil {
		return fmt.Errorf("writing the names of columns: %w", err)
	}
	return nil
}

// encoder writes rows as CSV or as lines of JSON.
type encoder struct {
	columns []column.Column
	names   []string
	json    bool
	to      *bufio.Writer
	file    *written
	line    []byte
	scratch []byte
}

func (e *encoder) Write(b *column.Batch) error {
	if e.file != nil {
		e.file.mu.Lock()
		defer e.file.mu.Unlock()
	}
	for i := range b.N {
		if e.json {
			e.object(b, i)
		} else {
			for c := range b.Cols {
				e.separate(c)
				e.line = AppendCSV(e.line, &b.Cols[c], i)
				e.part()
			}
		}
		e.line = append(e.line, '\n')
		e.flushLine()
	}
	if err := e.to.Flush(); err != nil { // also that of a write before
		return fmt.Errorf("writing rows: %w", err)
	}
	if cap(e.line)+cap(e.scratch) > maxKeptLine {
		e.line, e.scratch = nil, nil
	}
	return nil
}

// maxKeptLine is how many bytes of memory for rows are kept for the next ones, and linePart after how many bytes of a
// row these are passed on.
const (
	maxKeptLine = 256 << 10
	linePart    = 32 << 10
)

// part passes on what there is of a long row, so that a row is never there as a whole. The error is told by Flush.
func (e *encoder) part() {
	if len(e.line) >= linePart {
		e.flushLine()
	}
}

func (e *encoder) flushLine() {
	_, _ = e.to.Write(e.line) // a bufio.Writer keeps its error
	e.line = e.line[:0]
}

func (e *encoder) separate(column int) {
	if column > 0 {
		e.line = append(e.line, ',')
	}
}

// AppendCSV appends a value as a field of CSV: NULL is nothing, an empty text two quotes.
func AppendCSV(to []byte, v *column.Vec, i int) []byte {
	if v.Null[i] || v.Type.Kind != column.Text {
		return v.AppendValue(to, i)
	}
	return quoteCSV(to, v.Text(i))
}

func quoteCSV(to, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, "\",\n\r") && len(bytes.TrimSpace(text)) == len(text) {
		return append(to, text...)
	}
	to = append(to, '"')
	for _, c := range text {
		if c == '"' {
			to = append(to, '"')
		}
		to = append(to, c)
	}
	return append(to, '"')
}

// object appends a row as JSON; what JSON has no number for is a text.
func (e *encoder) object(b *column.Batch, i int) {
	e.line = append(e.line, '{')
	for c := range b.Cols {
		e.separate(c)
		e.line = append(e.line, e.names[c]...)
		v := &b.Cols[c]
		if v.Null[i] {
			e.line = append(e.line, "null"...)
			continue
		}
		e.scratch = v.AppendValue(e.scratch[:0], i)
		plain := v.Type.Kind == column.Boolean || v.Type.Numeric() && e.scratch[len(e.scratch)-1] <= '9'
		if plain {
			e.line = append(e.line, e.scratch...)
			continue
		}
		text, err := json.Marshal(string(e.scratch))
		if err != nil {
			text = []byte("null")
		}
		e.line = append(e.line, text...)
		e.part()
	}
	e.line = append(e.line, '}')
}

// Close writes what is left, and closes the file.
func (e *encoder) Close() error {
	err := e.to.Flush()
	if e.file != nil {
		if c := e.file.Close(); err == nil {
			err = c
		}
	}
	return err
}
