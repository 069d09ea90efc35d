package connector

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
)

// The rows of a query that are kept to be looked at.
const (
	maxPrintedRows     = 100
	maxPrintedRowBytes = 1000
	maxPrintedQueries  = 1000
)

// Printed keeps the last rows of queries whose sink is of the type PRINT. The zero value is empty; it is safe for
// concurrent use.
type Printed struct {
	mu   sync.Mutex
	rows map[int64][]string
	ids  []int64
}

// Rows are the last rows of a query, the newest last.
func (p *Printed) Rows(query int64) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.rows[query])
}

// Writer returns what a query prints to; what it has printed before is gone. Of very many queries the oldest are
// forgotten.
func (p *Printed) Writer(query int64) io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows == nil {
		p.rows = map[int64][]string{}
	}
	if _, there := p.rows[query]; !there {
		if p.ids = append(p.ids, query); len(p.ids) > maxPrintedQueries {
			delete(p.rows, p.ids[0])
			p.ids = p.ids[1:]
		}
	}
	p.rows[query] = nil
	return &printer{printed: p, query: query}
}

// printer takes the text of one query.
type printer struct {
	printed *Printed
	query   int64
	rest    []byte
}

// Write keeps the lines that are whole.
func (w *printer) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	w.printed.mu.Lock()
	defer w.printed.mu.Unlock()
	rows, there := w.printed.rows[w.query]
	for {
		line, rest, whole := bytes.Cut(w.rest, []byte("\n"))
		if !whole {
			break
		}
		if w.rest = rest; len(line) > maxPrintedRowBytes {
			line = append(line[:maxPrintedRowBytes:maxPrintedRowBytes], "…"...)
		}
		rows = append(rows, strings.ToValidUTF8(string(line), "?"))
	}
	if there {
		w.printed.rows[w.query] = slices.Clone(rows[max(0, len(rows)-maxPrintedRows):])
	}
	return len(text), nil
}
