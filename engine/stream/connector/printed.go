package connector

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// The rows of a query that are kept to be looked at, and those of all queries.
const (
	maxPrintedRows     = 100
	maxPrintedRowBytes = 1000
	maxPrintedQueries  = 1000
	maxPrintedBytes    = 8 << 20
)

// Printed keeps the last rows of queries whose sink is of the type PRINT. The zero value is empty; it is safe for
// concurrent use.
type Printed struct {
	mu   sync.Mutex
	rows map[int64]*printedRows
	// ids are the queries, the one that has begun first before the others.
	ids   []int64
	bytes int
}

type printedRows struct {
	list  []string
	bytes int
}

// Rows are the last rows of a query, the newest last.
func (p *Printed) Rows(query int64) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of := p.rows[query]; of != nil {
		return slices.Clone(of.list)
	}
	return nil
}

// Writer returns what a query prints to; what it has printed before is gone. Of very many queries, or rows, those of
// the oldest queries are forgotten.
func (p *Printed) Writer(query int64) io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		p.rows = map[int64]*printedRows{}
	}
	if of := p.rows[query]; of != nil {
		p.bytes -= of.bytes
	} else {
		p.ids = append(p.ids, query)
	}
	p.rows[query] = &printedRows{}
	if len(p.ids) > maxPrintedQueries {
		p.forget()
	}
	return &printer{printed: p, query: query}
}

// forget lets the rows of the oldest query go. It needs mu.
func (p *Printed) forget() {
	p.bytes -= p.rows[p.ids[0]].bytes
	delete(p.rows, p.ids[0])
	p.ids = slices.Delete(p.ids, 0, 1)
}

// printer takes the text of one query. rest is the beginning of a line that is not whole.
type printer struct {
	printed *Printed
	query   int64
	rest    []byte
}

// Write keeps the lines that are whole.
func (w *printer) Write(text []byte) (int, error) {
	n := len(text)
	var lines []string
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		// Of a line no more is kept than is shown, and a byte by which it is known that there is more.
		w.rest = append(w.rest, line[:min(len(line), maxPrintedRowBytes+1-len(w.rest))]...)
		if !whole {
			break
		}
		shown := w.rest
		if len(shown) > maxPrintedRowBytes {
			shown = append(shown[:maxPrintedRowBytes], "…"...)
		}
		lines = append(lines, strings.ToValidUTF8(string(shown), "?"))
		if len(lines) > 2*maxPrintedRows {
			lines = slices.Delete(lines, 0, maxPrintedRows)
		}
		text, w.rest = rest, w.rest[:0]
	}
	w.printed.keep(w.query, lines)
	return n, nil
}

// keep adds rows of a query.
func (p *Printed) keep(query int64, lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.rows[query]
	if of == nil || len(lines) == 0 {
		return // it was forgotten
	}
	all := append(of.list, lines...)
	of.list = slices.Clone(all[max(0, len(all)-maxPrintedRows):])
	p.bytes -= of.bytes
	of.bytes = 0
	for _, line := range of.list {
		of.bytes += len(line)
	}
	p.bytes += of.bytes
	for p.bytes > maxPrintedBytes && len(p.ids) > 1 {
		p.forget()
	}
}
