package postgres

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// batch are rows as COPY reads them.
type batch struct {
	text []byte
	rows int
}

// defaultMaxBytes is how many bytes of rows a transaction has unless options say otherwise.
const defaultMaxBytes = 4 << 20

// add appends rows in the text format of COPY. What Postgres has no text for is an error, and adds none of them.
func (b *batch) add(columns []column.Column, from *column.Batch) error {
	begin := len(b.text)
	for i := range from.N {
		for c := range from.Cols {
			if c > 0 {
				b.text = append(b.text, '\t')
			}
			v := &from.Cols[c]
			switch {
			case v.Null[i] || v.Type.Kind == column.Unknown:
				b.text = append(b.text, `\N`...)
			case v.Type.Kind == column.Text:
				text := v.Text(i)
				if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
					b.text = b.text[:begin]
					return mismatchFailure(
						fmt.Sprintf("the column %s has a text that Postgres can not hold: %.80q", columns[c].Name, text),
						"leave such rows out in the query, or have the source send UTF-8 without zero bytes",
						nil,
					)
				}
				b.text = appendText(b.text, text)
			default:
				b.text = v.AppendValue(b.text, i)
			}
		}
		b.text = append(b.text, '\n')
	}
	b.rows += from.N
	return nil
}

// appendText appends a text with what COPY reads otherwise escaped.
func appendText(to, text []byte) []byte {
	for _, c := range text {
		switch c {
		case '\\':
			to = append(to, `\\`...)
		case '\n':
			to = append(to, `\n`...)
		case '\r':
			to = append(to, `\r`...)
		case '\t':
			to = append(to, `\t`...)
		default:
			to = append(to, c)
		}
	}
	return to
}
