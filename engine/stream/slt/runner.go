package slt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// FailureError is a record of a file that did not give what it has to.
type FailureError struct {
	File string
	Line int
	Text string
}

// Error is the place and what was wrong there.
func (f *FailureError) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text) }

// record is a part of a file, between empty lines.
type record struct {
	line int
	head []string // the words of the first line
	body []string
	rows []string // behind ----
	cut  bool     // there was a ----
}

// records divides a file. Lines that begin with # are comments, except inside of a record named file.
func records(text string) []record {
	var all []record
	var r *record
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case strings.TrimSpace(line) == "":
			r = nil
		case strings.HasPrefix(line, "#") && (r == nil || r.head[0] != "file"):
		case r == nil:
			all = append(all, record{line: i + 1, head: strings.Fields(line)})
			r = &all[len(all)-1]
		case line == "----" && !r.cut:
			r.cut = true
		case r.cut:
			r.rows = append(r.rows, line)
		default:
			r.body = append(r.body, line)
		}
	}
	return all
}

// recordTimeout is how long the statements of one record may take.
const recordTimeout = time.Minute

// Run runs a file and returns how many records it has. The error is a *FailureError for the first one that failed.
// Files
// that the test names lie in a folder that is made for it and removed; recordings are those in a folder "data" beside
// the test file.
func Run(ctx context.Context, file string) (n int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("reading the test: %w", err)
	}
	dir, err := os.MkdirTemp("", "loadstone-slt-")
	if err != nil {
		return 0, fmt.Errorf("making a folder for the test: %w", err)
	}
	defer os.RemoveAll(dir)
	folder, err := connector.OpenFolder(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = folder.Close() }()
	s := &session{catalog: &catalog.Catalog{}, folder: folder}
	for _, r := range records(string(text)) {
		each, cancel := context.WithTimeout(ctx, recordTimeout)
		what := s.record(each, r, dir, filepath.Dir(file))
		cancel()
		if what != "" {
			return n, &FailureError{file, r.line, what}
		}
		n++
	}
	return n, nil
}

// record carries one out, and returns what is wrong with it.
func (s *session) record(ctx context.Context, r record, dir, beside string) string {
	body := strings.Join(r.body, "\n")
	option := func(i int) string {
		if i < len(r.head) {
			return r.head[i]
		}
		return ""
	}
	switch r.head[0] + " " + option(1) {
	case "statement ok":
		if err := s.execute(ctx, body); err != nil {
			return err.Error()
		}
		return ""
	case "statement error":
		return s.expectError(ctx, r, body, option(2))
	case "query ", "query rowsort", "query nearly":
		if err := s.execute(ctx, body); err != nil {
			return err.Error()
		}
		return compare(s.rows, r, option(1))
	case "counts ":
		return s.expectCounts(r)
	}
	switch r.head[0] {
	case "file":
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(option(1))), []byte(body+"\n"), 0o600); err != nil {
			return err.Error()
		}
		return ""
	case "recording":
		data, err := os.ReadFile(filepath.Join(beside, "data", filepath.Base(option(1))))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(option(1))), data, 0o600)
		}
		if err != nil {
			return err.Error()
		}
		return ""
	case "written":
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(option(1))))
		if err != nil {
			return err.Error()
		}
		return compare(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), r, "")
	case "state_limit":
		n, err := strconv.Atoi(option(1))
		if s.state = n; err != nil || n < 1 {
			return "state_limit needs a number of bytes"
		}
		return ""
	}
	return fmt.Sprintf("a record begins with statement ok, statement error, query, counts, file, recording, written or "+
		"state_limit, not with %s", strings.Join(r.head, " "))
}

// expectError has the statements end in an error of a kind; lines behind ---- have to be in it.
func (s *session) expectError(ctx context.Context, r record, body, kind string) string {
	err := s.execute(ctx, body)
	if err == nil {
		return fmt.Sprintf("it was accepted, and should have been refused with %s", kind)
	}
	var e *sql.Error
	if !errors.As(err, &e) || kind != "" && string(e.Kind) != kind {
		return fmt.Sprintf("it was refused with another error than %s:\n%v", kind, err)
	}
	for _, line := range r.rows {
		if !strings.Contains(err.Error(), line) {
			return fmt.Sprintf("the error does not say %q:\n%v", line, err)
		}
	}
	return ""
}

// expectCounts compares what became of the rows of the last query, as "late 2".
func (s *session) expectCounts(r record) string {
	c := s.counts
	all := map[string]int64{"in": c.In, "out": c.Out, "late": c.Late, "ahead": c.Ahead, "timeless": c.Timeless,
		"malformed": c.Malformed, "dropped": c.Dropped, "division_by_zero": c.DivisionByZero, "overflow": c.Overflow,
		"cast": c.Cast, "state": int64(c.State)}
	for _, line := range r.body {
		name, wanted, _ := strings.Cut(line, " ")
		got, ok := all[name]
		if !ok || strconv.FormatInt(got, 10) != strings.TrimSpace(wanted) {
			return fmt.Sprintf("%s is %d, not %s", name, got, wanted)
		}
	}
	return ""
}

// compare compares rows, in whatever order with rowsort; with nearly, numbers may differ by a hundredth of their size.
func compare(rows []string, r record, how string) string {
	wanted := slices.Clone(r.rows)
	rows = slices.Clone(rows)
	if how == "rowsort" {
		slices.Sort(wanted)
		slices.Sort(rows)
	}
	for i := range max(len(rows), len(wanted)) {
		got, want := "nothing", "nothing"
		if i < len(rows) {
			got = rows[i]
		}
		if i < len(wanted) {
			want = wanted[i]
		}
		if got != want && (how != "nearly" || !nearly(got, want)) {
			return fmt.Sprintf("row %d is\n  %s\nand not\n  %s\nall rows:\n  %s", i+1, got, want,
				strings.Join(rows[:min(len(rows), 50)], "\n  "))
		}
	}
	return ""
}

// nearly compares rows of CSV. NaN and infinities are near to themselves only.
func nearly(got, want string) bool {
	a, b := strings.Split(got, ","), strings.Split(want, ",")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		x, err := strconv.ParseFloat(a[i], 64)
		y, too := strconv.ParseFloat(b[i], 64)
		if err != nil || too != nil || math.IsInf(x, 0) || math.IsInf(y, 0) || !(math.Abs(x-y) <= 0.01*math.Abs(y)) {
			return false
		}
	}
	return true
}
