// Package watch tells how the answer of WATCH SELECT … FROM a table of the catalog changes: first all of it, then what
// comes, changes and goes. It compares answers and knows no history but that of keys: whoever reads slowly sees the
// newest state, and not each one on the way to it. It is pure.
package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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

// OneRow is the Type of events with one row.
const OneRow Kind = "EVENT"

// Event is a change of the answer. The rows of SNAPSHOT are all; of the others it is one: the new one, or that which is
// gone. Whoever writes it as JSON adds `data`: the rows of SNAPSHOT and RESUMED, the row of CREATE and UPDATE.
type Event struct {
	Kind Kind `json:"event"`
	// Type and Op are the Kind in two parts: SNAPSHOT and RESUMED, or EVENT with what has happened to Key, an entity.
	Type Kind   `json:"type"`
	Op   Kind   `json:"op,omitempty"`
	Key  string `json:"key,omitempty"`
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
	// Timeout is how long finding out what it shows may take, a second unless somebody sets it.
	Timeout time.Duration
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
	v := &View{source: source, query: s, Timeout: viewTimeout, key: -1}
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

// ViewRows is the rows of a view by the key of their entity, each a JSON object that nobody changes.
type ViewRows map[string]json.RawMessage

// rowOverhead is about what a row takes apart from its key and its text.
const rowOverhead = 96

// Size is how many bytes the rows take. Apply has counted as many.
func (r ViewRows) Size() int {
	n := 0
	for key, row := range r {
		n += len(key) + len(row) + rowOverhead
	}
	return n
}

// What a view may take: it is evaluated anew whenever the catalog has changed.
const (
	MaxViewBytes = 16 << 20
	viewTimeout  = time.Second
)

// tooMuch is the error of a view that takes too much.
func (v *View) tooMuch(format string, args ...any) error {
	return sql.Errorf(sql.StateLimit, "", -1, "select fewer columns, or narrow it down with WHERE; the bound is fixed",
		format, args...)
}

// Apply returns what the view shows of a table's rows. It takes as long as the timeout of the view at most, and ends
// when ctx does. The account counts what evaluating takes, and afterwards the Size of what is returned, which whoever
// drops it frees.
func (v *View) Apply(ctx context.Context, account *memory.Account, rows []catalog.Row) (ViewRows, error) {
	working, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	held := account.Used()
	a, err := v.apply(working, account, rows)
	if err != nil {
		account.Free(account.Used() - held)
		if working.Err() != nil && ctx.Err() == nil {
			return nil, v.tooMuch("the WATCH takes more than %s", v.Timeout)
		}
		var e *memory.ExceededError
		if errors.As(err, &e) {
			return nil, v.Exceeded(e)
		}
		return nil, err
	}
	account.Free(account.Used() - held - a.Size())
	return a, nil
}

// Exceeded is the error of a watch that may not hold more.
func (v *View) Exceeded(e *memory.ExceededError) error {
	if e.Total {
		return sql.Errorf(sql.StateLimit, "", -1, "watch again later, with fewer columns or a WHERE; --streams-memory of "+
			"the server is for all queries and watches together", "the continuous queries of this process need the memory "+
			"of the WATCH: they and all watches hold at most %d MiB", e.Limit>>20)
	}
	return sql.Errorf(sql.StateLimit, "", -1, "select fewer columns, or narrow it down with WHERE; "+
		"--streams-query-memory of the server is what a query or a watch holds", "the WATCH would hold more than %d MiB",
		e.Limit>>20)
}

// maxPushBytes is about how much of a table is evaluated at a time.
const maxPushBytes = 1 << 20

func (v *View) apply(ctx context.Context, account *memory.Account, rows []catalog.Row) (ViewRows, error) {
	defer context.AfterFunc(ctx, account.Stop)()      // without its answer the watch ends
	p, err := plan.Bind(v.source, v.query, schemas{}) // a plan is run once
	if err != nil {
		return nil, err
	}
	a := &answer{view: v, account: account, columns: p.Columns, rows: ViewRows{}}
	q := flow.New(p, flow.Options{Origins: []int{1}, Account: account, Now: time.Now, Ended: ctx.Err,
		Out: func(b *column.Batch) error {
			for i := range b.N {
				if err := a.keep(b, i); err != nil {
					return err
				}
			}
			return nil
		}})
	b, held := &column.Batch{}, 0
	for len(rows) > 0 {
		b.Reset(p.Scans[0].Columns)
		for size := 0; len(rows) > 0 && size < maxPushBytes; rows = rows[1:] {
			for i, x := range append(slices.Clip(rows[0].Values), rows[0].Key) {
				switch x := x.(type) {
				case string:
					b.Cols[i].AppendText([]byte(x))
					size += len(x)
				case int64:
					b.Cols[i].AppendInt(x)
					size += 8
				}
			}
			b.N++
		}
		if held, err = account.Set(held, b.Size()); err != nil {
			return nil, err
		}
		if err := q.Push(0, 0, b); err != nil {
			return nil, err
		}
	}
	return a.rows, nil
}

// answer is what a view shows, while it is evaluated.
type answer struct {
	view    *View
	account *memory.Account
	columns []column.Column
	rows    ViewRows
	bytes   int
}

// keep adds row i of a batch. What it takes as JSON is counted before it is made.
func (a *answer) keep(b *column.Batch, i int) error {
	key := string(b.Cols[a.view.key].Text(i))
	texts, encoded := 0, len(key)+rowOverhead
	for c, col := range a.columns {
		if c == a.view.key {
			continue
		}
		encoded += encodedSize([]byte(col.Name)) + maxNumber
		if v := &b.Cols[c]; v.Type.Kind == column.Text && !v.Null[i] {
			texts += len(v.Text(i))
			encoded += encodedSize(v.Text(i))
		}
	}
	if a.bytes+encoded > MaxViewBytes {
		return a.view.tooMuch("the WATCH shows more than %d MiB", MaxViewBytes>>20)
	}
	making := 2*texts + 3*encoded // values, and the buffer of the encoder with what comes out of it
	if err := a.account.Grow(making); err != nil {
		return err
	}
	defer a.account.Free(making)
	row := map[string]any{}
	for c, col := range a.columns {
		if c != a.view.key {
			row[col.Name] = value(&b.Cols[c], i)
		}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	size := len(key) + len(text) + rowOverhead
	if err := a.account.Grow(size); err != nil {
		return err
	}
	a.rows[key] = text
	a.bytes += size
	return nil
}

// maxNumber is how long a value is that is no text, with what stands around it.
const maxNumber = 48

// encodedSize is how long a text is as JSON, at most. Where anything beyond ASCII is escaped, all of it counts as such.
func encodedSize(text []byte) int {
	n := len(text) + 2
	for _, c := range text {
		switch {
		case c == '"', c == '\\':
			n++
		case c < ' ', c == '<', c == '>', c == '&':
			n += 5
		}
	}
	if !utf8.Valid(text) || bytes.Contains(text, separators) {
		for _, c := range text {
			if c >= utf8.RuneSelf {
				n += 5
			}
		}
	}
	return n
}

// separators begins the line and paragraph separators, which JSON escapes.
var separators = []byte("\u2028")[:2]

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
	e := Event{Kind: Snapshot, Type: Snapshot, Position: position, Columns: v.Columns, Rows: []json.RawMessage{}}
	for _, key := range slices.Sorted(maps.Keys(a)) {
		e.Rows = append(e.Rows, a[key])
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
		e := Event{Kind: Update, Type: OneRow, Key: catalog.ShownKey(key), Rows: []json.RawMessage{after}}
		switch {
		case was && is && bytes.Equal(before, after):
			continue
		case !was:
			e.Kind = Create
		case !is:
			e.Kind, e.Rows = Drop, []json.RawMessage{before}
		}
		e.Op = e.Kind
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
