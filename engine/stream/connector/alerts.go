package connector

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Alert is what a query had somebody told: a run was stopped, or rows were posted.
type Alert struct {
	At      time.Time
	QueryID int64
	Query   string
	Type    string // that of the sink
	// RunID is the run that was stopped.
	RunID string
	// Row is the first of so many rows, in words.
	Row  string
	Rows int
	// Failure is why nobody could be told.
	Failure string
	// Retrying says that it is tried again: nobody has been told yet.
	Retrying bool
}

// AlertFunc takes alerts; nil is nobody.
type AlertFunc func(Alert)

// maxAlerts is how many alerts are kept to be looked at.
const maxAlerts = 200

// Alerts keeps the last alerts. The zero value is empty; it is safe for concurrent use.
type Alerts struct {
	mu   sync.Mutex
	list []Alert
}

// For returns what takes the alerts of a query. One that is tried again is not kept: another one follows.
func (a *Alerts) For(id int64, query, sink string) AlertFunc {
	return func(one Alert) {
		if one.Retrying {
			return
		}
		one.At, one.QueryID, one.Query, one.Type = time.Now().UTC(), id, query, sink
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.list = append(a.list, one); len(a.list) > maxAlerts {
			a.list = slices.Clone(a.list[len(a.list)-maxAlerts:])
		}
	}
}

// List are the alerts that are kept, the newest first.
func (a *Alerts) List() []Alert {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := slices.Clone(a.list)
	slices.Reverse(list)
	return list
}

// send tells of an attempt.
func (t AlertFunc) send(a Alert, err error) {
	if t == nil {
		return
	}
	var known *sql.Error
	if errors.As(err, &known) {
		err = errors.New(known.Message)
	}
	if err != nil {
		a.Failure = err.Error()
	}
	t(a)
}

// maxValueLength is how many characters of a value are told, and maxValues how many values of a row.
const (
	maxValueLength = 100
	maxValues      = 50
)

// RowText is a row as text: names and values, long ones cut.
func RowText(columns []column.Column, b *column.Batch, i int) string {
	var parts []string
	for c := range b.Cols {
		if len(parts) == maxValues {
			parts = append(parts, "…")
			break
		}
		v := "NULL"
		if of := &b.Cols[c]; !of.Null[i] {
			if of.Type.Kind == column.Text {
				v = string(of.Text(i)[:min(len(of.Text(i)), utf8.UTFMax*maxValueLength)])
			} else {
				v = string(of.AppendValue(nil, i))
			}
		}
		if r := []rune(v); len(r) > maxValueLength {
			v = string(r[:maxValueLength-1]) + "…"
		}
		parts = append(parts, columns[c].Name+" "+v)
	}
	return strings.Join(parts, ", ")
}
