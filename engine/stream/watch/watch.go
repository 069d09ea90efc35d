// Package watch tells how the answer of WATCH SELECT … FROM a table of the catalog changes: first all of it, then what
// comes, changes and goes. It compares answers and knows no history but that of keys: whoever reads slowly sees the
// newest state, and not each one on the way to it. It is pure.
package watch

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Kind says what an event is.
type Kind string

// The kinds of events. A watch begins with SNAPSHOT, or with RESUMED where its reader knows what was.
const (
	Snapshot Kind = "SNAPSHOT"
	Resumed  Kind = "RESUMED"
	Create   Kind = "CREATE"
	Update   Kind = "UPDATE"
	Drop     Kind = "DROP"
)

// Event is a change of the answer. The rows of SNAPSHOT are all; of the others it is one: the new one, or that which is
// gone.
type Event struct {
	Kind Kind `json:"event"`
	// Position is where the watch can be resumed behind this event; empty within changes of one moment.
	Position string `json:"position,omitempty"`
	// Columns are those of the rows, in the order in which they were selected; of SNAPSHOT and RESUMED alone.
	Columns []string          `json:"columns,omitempty"`
	Rows    []json.RawMessage `json:"rows"`
}

// View is a SELECT over a table.
type View struct {
	source  string
	query   *sql.Select
	Table   string
	Columns []string
	key     int
}

// hidden is the column of the key. No statement can name it: names are not empty, and hold no control characters.
const hidden = "\x00key"

// schemas are the tables with the hidden column.
type schemas struct{}

func (schemas) Schema(name string) ([]column.Column, bool) {
	for table, columns := range catalog.Tables {
		if sql.SameName(table, name) {
			key := column.Column{Name: hidden, Type: column.Type{Kind: column.Text}}
			return append(slices.Clip(slices.Clone(columns)), key), true
		}
	}
	return nil, false
}

func (schemas) Names() []string { return slices.Sorted(maps.Keys(catalog.Tables)) }

// Parse reads one WATCH. The error is a *sql.Error.
func Parse(source string) (*View, error) {
	parsed, err := sql.Parse(source)
	if err != nil {
		return nil, err
	}
	wrong := func(at int, hint, what string) error {
		return sql.Errorf(sql.BinderError, source, at, hint, "%s", what)
	}
	const example = "WATCH SELECT name, state FROM queries WHERE state = 'FAILED'"
	if len(parsed) != 1 {
		return nil, wrong(0, example, "one WATCH is asked for at a time, and alone")
	}
	w, is := parsed[0].Statement.(*sql.Watch)
	if !is {
		return nil, wrong(parsed[0].At, example, "this is no WATCH")
	}
	s := w.Select
	if s.From.Query != nil || s.Join != nil || s.Window != nil || len(s.Group) > 0 || s.Having != nil ||
		s.DropOnOverflow ||
		len(s.Settings) > 0 {
		return nil, wrong(s.At, example, "WATCH selects from one table, with WHERE and without windows, groups and joins")
	}
	// The rows of a table have no order.
	lag := func(e sql.Expr) (sql.Expr, error) {
		if c, is := e.(*sql.Call); is && c.Over != nil {
			return nil, wrong(c.Name.At, example, "WATCH compares no row with another one: there is no "+
				strings.ToUpper(c.Name.Text)+" … OVER")
		}
		return nil, nil
	}
	for _, i := range s.Items {
		if _, err := sql.Rewrite(i.Expr, lag); err != nil {
			return nil, err
		}
	}
	v := &View{source: source, query: s, key: -1}
	if !slices.ContainsFunc(s.Items, func(i sql.Item) bool { return i.Expr == nil }) {
		of := &sql.Column{Name: sql.Name{Text: hidden, At: s.At}}
		s.Items = append(s.Items, sql.Item{Expr: of, At: s.At})
	}
	p, err := plan.Bind(source, s, schemas{})
	if err != nil {
		return nil, err
	}
	v.Table = p.Scans[0].Source
	for i, c := range p.Columns {
		if c.Name == hidden {
			v.key = i
		} else {
			v.Columns = append(v.Columns, c.Name)
		}
	}
	return v, nil
}

// ViewRows is the rows of a view by the key of their entity, each a JSON object.
type ViewRows map[string]string

// What a view may take: it is evaluated anew whenever the catalog has changed.
const (
	maxViewBytes = 16 << 20
	viewTimeout  = time.Second
)

// tooMuch is the error of a view that takes too much.
func (v *View) tooMuch(format string, args ...any) error {
	return sql.Errorf(sql.StateLimit, "", -1, "select fewer columns, or narrow it down with WHERE", format, args...)
}

// Apply returns what the view shows of a table's rows. It takes a second at most, and ends when ctx does.
func (v *View) Apply(ctx context.Context, rows []catalog.Row) (ViewRows, error) {
	working, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	a, err := v.apply(working, rows)
	if err != nil && working.Err() != nil && ctx.Err() == nil {
		return nil, v.tooMuch("the WATCH takes more than %s", viewTimeout)
	}
	return a, err
}

func (v *View) apply(ctx context.Context, rows []catalog.Row) (ViewRows, error) {
	account := memory.Limits{}.Open(0, nil)
	defer context.AfterFunc(ctx, account.Stop)()
	p, err := plan.Bind(v.source, v.query, schemas{}) // a plan is run once
	if err != nil {
		return nil, err
	}
	a, bytes := ViewRows{}, 0
	q := flow.New(p, flow.Options{Origins: []int{1}, Account: account, Now: time.Now, Ended: ctx.Err,
		Out: func(b *column.Batch) error {
			for i := range b.N {
				if bytes > maxViewBytes {
					return v.tooMuch("the WATCH shows more than %d MiB", maxViewBytes>>20)
				}
				row := map[string]any{}
				for c, col := range p.Columns {
					if c != v.key {
						row[col.Name] = value(&b.Cols[c], i)
					}
				}
				text, err := json.Marshal(row)
				if err != nil {
					return err
				}
				a[string(b.Cols[v.key].Text(i))] = string(text)
				bytes += len(text)
			}
			return nil
		}})
	b := &column.Batch{}
	b.Reset(p.Scans[0].Columns)
	for _, r := range rows {
		for i, x := range append(slices.Clip(r.Values), r.Key) {
			switch x := x.(type) {
			case string:
				b.Cols[i].AppendText([]byte(x))
			case int64:
				b.Cols[i].AppendInt(x)
			}
		}
		b.N++
	}
	if b.N == 0 {
		return a, nil
	}
	return a, q.Push(0, 0, b)
}

// value is a value as JSON has it: numbers and truth values as such, the rest as text.
func value(v *column.Vec, i int) any {
	switch {
	case v.Null[i]:
		return nil
	case v.Type.Kind == column.Boolean:
		return v.Bools[i]
	case v.Type.Kind == column.Timestamp:
		return time.UnixMicro(v.Ints[i]).UTC().Format(engine.TimeLayout)
	}
	text := string(v.AppendValue(nil, i))
	if v.Type.Numeric() && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

// SnapshotEvent is the event of an answer that nobody knows yet.
func (v *View) SnapshotEvent(a ViewRows, position string) Event {
	e := Event{Kind: Snapshot, Position: position, Columns: v.Columns, Rows: []json.RawMessage{}}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		e.Rows = append(e.Rows, json.RawMessage(a[key]))
	}
	return e
}

// Changes are the events between two answers, in the order of keys. The last one has the position.
func Changes(was, is ViewRows, position string) (events []Event) {
	keys := maps.Clone(was)
	maps.Copy(keys, is)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		before, was := was[key]
		after, is := is[key]
		e := Event{Kind: Update, Rows: []json.RawMessage{json.RawMessage(after)}}
		switch {
		case was && is && before == after:
			continue
		case !was:
			e.Kind = Create
		case !is:
			e.Kind, e.Rows = Drop, []json.RawMessage{json.RawMessage(before)}
		}
		events = append(events, e)
	}
	if n := len(events); n > 0 {
		events[n-1].Position = position
	}
	return events
}

// maxChanges is how many changes of rows are remembered, for readers that come back.
const maxChanges = 20_000

// maxHistoryBytes is how long what is remembered of rows may be.
const maxHistoryBytes = 16 << 20

// change is what a row was before a moment.
type change struct {
	moment     int64
	table, key string
	was        *catalog.Row
}

// size is about how many bytes it takes.
func (c change) size() int {
	n := 64 + len(c.key)
	if c.was != nil {
		for _, v := range c.was.Values {
			if text, is := v.(string); is {
				n += len(text)
			}
			n += 16
		}
	}
	return n
}

// History is how the tables are now, and for a while what they were.
type History struct {
	// Moment counts the states that were different.
	Moment int64
	tables map[string]map[string]catalog.Row
	log    []change
	bytes  int
	oldest int64
}

// Note takes in how the tables are now, and reports whether they are different.
func (h *History) Note(now map[string][]catalog.Row) bool {
	next, moment := map[string]map[string]catalog.Row{}, h.Moment+1
	var log []change
	for table := range catalog.Tables {
		next[table] = map[string]catalog.Row{}
		for _, r := range now[table] {
			next[table][r.Key] = r
			if was, there := h.tables[table][r.Key]; !there {
				log = append(log, change{moment, table, r.Key, nil})
			} else if !slices.Equal(was.Values, r.Values) {
				log = append(log, change{moment, table, r.Key, &was})
			}
		}
		for key, was := range h.tables[table] {
			if _, there := next[table][key]; !there {
				log = append(log, change{moment, table, key, &was})
			}
		}
	}
	if h.tables != nil && len(log) == 0 {
		return false
	}
	if h.tables == nil {
		log, h.oldest = nil, moment // of what was before nothing is known
	}
	h.tables, h.Moment, h.log = next, moment, append(h.log, log...)
	for _, c := range log {
		h.bytes += c.size()
	}
	n := 0
	for ; n < len(h.log) && (len(h.log)-n > maxChanges || h.bytes > maxHistoryBytes); n++ {
		h.bytes -= h.log[n].size()
	}
	if n > 0 {
		h.oldest = h.log[n-1].moment // what was before it can not be told any more
		h.log = slices.Clone(h.log[n:])
	}
	return true
}

// Rows are those of a table as they were at a moment; not known where that is too long ago.
func (h *History) Rows(table string, moment int64) (rows []catalog.Row, known bool) {
	if moment < h.oldest || moment > h.Moment {
		return nil, false
	}
	then := maps.Clone(h.tables[table])
	for i := len(h.log) - 1; i >= 0 && h.log[i].moment > moment; i-- {
		if c := h.log[i]; c.table != table {
			continue
		} else if c.was == nil {
			delete(then, c.key)
		} else {
			then[c.key] = *c.was
		}
	}
	return slices.Collect(maps.Values(then)), true
}
