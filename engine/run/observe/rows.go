package observe

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/target"
)

const (
	// maxSessions bounds the sessions of a look, maxName and maxText what is kept of names and statements, maxTexts how
	// many statements of others are remembered without their values, maxBlockers whom one session waits for.
	maxSessions, maxName, maxText, maxTexts, maxBlockers = 5000, 64, 500, 2000, 16
	// shownQuery is how much of a statement the server may show at least.
	shownQuery = 200
	// maxCounters bounds the rows of one statement of counters, maxValue and maxAge the numbers: a larger one is none.
	maxCounters, maxValue, maxAge = 500, 1e18, 10 * 365 * 24 * 3600.0
	// maxRaw is how much of a statement is looked at before its values are masked.
	maxRaw = 2 << 10
)

// errShape is of rows that are not what an observation promises.
var errShape = &engine.Error{Code: engine.CodeTarget, Message: "The result lacks required columns."}

// columns are the places of a result's columns by their names.
type columns map[string]int

func columnsOf(rs *target.ResultSet) columns {
	c := columns{}
	for i, name := range rs.Columns {
		c[strings.ToUpper(name)] = i
	}
	return c
}

func (c columns) value(row []any, name string) any {
	if i, ok := c[name]; ok && i < len(row) {
		return row[i]
	}
	return nil
}

func (c columns) text(row []any, name string, most int) string {
	switch v := c.value(row, name).(type) {
	case string:
		return bounded(v, most)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

func (c columns) number(row []any, name string) (float64, bool) {
	var v float64
	switch n := c.value(row, name).(type) {
	case float64:
		v = n
	case int64:
		v = float64(n)
	case string:
		var err error
		if v, err = strconv.ParseFloat(n, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// bounded is a text in one line, without what a terminal would obey. It keeps nothing of s in memory.
func bounded(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.Clone(textsafe.OneLine(strings.ToValidUTF8(s, "")))
}

// reader turns what a server answers into the core's terms. What it says is not trusted: texts are bounded and made
// safe, and statements lose their values.
type reader struct {
	// application is the name of the run's sessions; "" where they carry its mark.
	application, mark string
	// known are the names of counters that the core has a use for.
	known map[string]bool
	// statements are ids of frozen statements by the beginning of their SQL.
	statements map[string]string
	masked     map[string]string
}

func newReader(runID, application string, statements []engine.Statement) *reader {
	r := &reader{application: application, mark: runID[:min(len(runID), target.RunMarkLength)],
		statements: map[string]string{}, masked: map[string]string{}, known: map[string]bool{}}
	for _, name := range plugin.CounterNames() {
		r.known[name] = true
	}
	for _, s := range statements {
		r.statements[beginning(s.SQL)] = s.ID
	}
	return r
}

// beginning is what a statement is known by: a server shows long ones in part.
func beginning(sql string) string {
	sql = strings.TrimSpace(sql)
	return sql[:min(len(sql), shownQuery)]
}

// ours reports whether sessions of an application are the run's.
func (r *reader) ours(application string) bool {
	if r.application != "" {
		return application == r.application
	}
	return strings.HasSuffix(application, " "+r.mark)
}

// mask is a statement of others without its values.
func (r *reader) mask(text string) string {
	text = text[:min(len(text), maxRaw)]
	if known, ok := r.masked[text]; ok {
		return known
	}
	if len(r.masked) >= maxTexts {
		clear(r.masked)
	}
	out := bounded(executions.MaskSQL(strings.ToValidUTF8(text, "")), maxText)
	r.masked[strings.Clone(text)] = out
	return out
}

// look reads the rows of an activity.
func (r *reader) look(rs *target.ResultSet) (l engine.ServerLook, err error) {
	c := columnsOf(rs)
	for _, name := range []string{"SESSION", "STATE", "CLASS"} {
		if _, ok := c[name]; !ok {
			return l, fmt.Errorf("%w: there is no %s", errShape, name)
		}
	}
	for _, row := range rs.Rows {
		if took, ok := c.number(row, "TOOK_MS"); ok && took >= 0 {
			l.TookMs = max(l.TookMs, took)
		}
		if stateOf(c.text(row, "STATE", maxName)) == engine.SessionIdle {
			r.idle(c, row, &l)
		} else if len(l.Sessions) < maxSessions {
			l.Sessions = append(l.Sessions, r.session(c, row))
		}
	}
	return l, nil
}

// idle counts sessions that do nothing.
func (r *reader) idle(c columns, row []any, l *engine.ServerLook) {
	n := 1
	if many, ok := c.number(row, "SESSIONS"); ok && many >= 1 && many < 1e6 {
		n = int(many)
	}
	if r.ours(c.text(row, "APPLICATION", maxName)) {
		l.Idle += n
	} else {
		l.OtherIdle += n
	}
}

// session reads one that does something.
func (r *reader) session(c columns, row []any) engine.ActivitySample {
	application := c.text(row, "APPLICATION", maxName)
	ours := r.ours(application)
	state := stateOf(c.text(row, "STATE", maxName))
	a := engine.ActivitySample{Session: c.text(row, "SESSION", maxName), Ours: ours && state != engine.SessionService,
		State: state, Class: classOf(c.text(row, "CLASS", maxName)), Event: c.text(row, "EVENT", maxName),
		Scope: c.text(row, "SCOPE", maxName), Application: application, User: c.text(row, "USER_NAME", maxName)}
	a.Alters, _ = c.value(row, "ALTERS").(bool)
	if age, ok := c.number(row, "TRANSACTION_SECONDS"); ok {
		a.TransactionSeconds = min(max(0, age), maxAge)
	}
	text, _ := c.value(row, "TEXT").(string)
	if id := r.statements[beginning(text)]; id != "" && ours {
		a.StatementID = id
	} else {
		a.Text = r.mask(text)
	}
	for id := range strings.SplitSeq(c.text(row, "BLOCKED_BY", maxText), ",") {
		if id = strings.TrimSpace(id); id != "" && len(a.BlockedBy) < maxBlockers {
			a.BlockedBy = append(a.BlockedBy, id)
		}
	}
	return a
}

func stateOf(s string) engine.SessionState {
	switch state := engine.SessionState(s); state {
	case engine.SessionActive, engine.SessionIdle, engine.SessionInTransaction, engine.SessionService:
		return state
	}
	return engine.SessionActive
}

func classOf(s string) engine.WaitClass {
	for _, class := range engine.WaitClasses() {
		if string(class) == s {
			return class
		}
	}
	return engine.WaitOther
}

// counters reads the rows of a statement of counters. Names that the core does not know are left out.
func (r *reader) counters(rs *target.ResultSet) (list []engine.ServerCounter, err error) {
	c := columnsOf(rs)
	for _, name := range []string{"NAME", "VALUE"} {
		if _, ok := c[name]; !ok {
			return nil, fmt.Errorf("%w: there is no %s", errShape, name)
		}
	}
	for _, row := range rs.Rows[:min(len(rs.Rows), maxCounters)] {
		value, ok := c.number(row, "VALUE")
		if name := c.text(row, "NAME", maxName); ok && math.Abs(value) <= maxValue && r.known[name] {
			list = append(list, engine.ServerCounter{Name: name, Object: c.text(row, "OBJECT", 2*maxName), Value: value})
		}
	}
	return list, nil
}
