// Package query writes answers to queries as CSV, JSON and Parquet.
package query

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
)

// Write writes an answer in a format: csv, json (an object for each row, a line each) or parquet.
func Write(w io.Writer, format string, a Answer) error {
	switch format {
	case "csv":
		return writeCSV(w, a)
	case "json":
		return writeJSON(w, a)
	case "parquet":
		return writeParquet(w, a)
	}
	return engine.InvalidField("format", fmt.Sprintf("is %q", format), "csv, json or parquet")
}

// Text is a value as people read it; ok is false for null.
func Text(v any) (s string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	default:
		document, err := json.Marshal(v)
		return string(document), err == nil
	}
}

// writeCSV writes a line for each row. Texts that a spreadsheet would take for formulas begin with an apostrophe.
func writeCSV(out io.Writer, a Answer) error {
	w := csv.NewWriter(out)
	record := make([]string, len(a.Columns))
	for i, c := range a.Columns {
		record[i] = textsafe.CSVField(c.Name)
	}
	errs := w.Write(record)
	for _, row := range a.Rows {
		for i, v := range row {
			record[i], _ = Text(v)
			if _, number := v.(json.Number); !number {
				record[i] = textsafe.CSVField(record[i])
			}
		}
		errs = errors.Join(errs, w.Write(record))
	}
	w.Flush()
	return errors.Join(errs, w.Error())
}

// writeJSON writes an object for each row, a line each.
func writeJSON(out io.Writer, a Answer) error {
	w := bufio.NewWriter(out)
	for _, row := range a.Rows {
		for i, v := range row {
			name, err := json.Marshal(a.Columns[i].Name)
			if err != nil {
				return err
			}
			value, err := json.Marshal(v)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(w, "%s%s:%s", map[bool]string{true: "{", false: ","}[i == 0],
				textsafe.EscapeJSON(name), textsafe.EscapeJSON(value))
		}
		_, _ = w.WriteString("}\n")
	}
	return w.Flush()
}
