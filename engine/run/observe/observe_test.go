package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

var activityColumns = []string{
	"session",
	"state",
	"class",
	"event",
	"scope",
	"text",
	"alters",
	"application",
	"user_name",
	"blocked_by",
	"transaction_seconds",
	"sessions",
	"took_ms",
}

// TestRowsBecomeTheCoresTerms: sessions of the run are known by their mark, statements of the run by their text, and what
// others execute loses its values.
func TestRowsBecomeTheCoresTerms(t *testing.T) {
	long := "SELECT '" + strings.Repeat("x", 2000) + "' FROM {table}"
	r := newReader("0a1b2c3d-rest", "", []engine.Statement{{ID: "read", SQL: "SELECT v FROM t WHERE id = $1"},
		{ID: "long", SQL: long}})
	l, err := r.look(&target.ResultSet{Columns: activityColumns, Rows: [][]any{
		{
			"11",
			"active",
			"lock",
			"transactionid",
			"row",
			" SELECT v FROM t WHERE id = $1",
			false,
			"loadstone w-1 0a1b2c3d",
			"u",
			"12, 13",
			0.5,
			int64(1),
			0.4,
		},
		{
			"12",
			"in_transaction",
			"cpu",
			"",
			"",
			"UPDATE t SET secret = 'p4ss' WHERE id = 7",
			false,
			"billing\x1b[2J",
			"eve",
			"",
			9.0,
			int64(1),
			0.6,
		},
		{"14", "active", "cpu", "", "", long[:1024], false, "loadstone w-2 0a1b2c3d", "u", "", 0.0, int64(1), 0.7},
		{"15", "active", "no such class", "", "", "", false, "loadstone w-1 ffffffff", "u", "", 0.0, int64(1), 0.7},
		{"", "idle", "other", "", "", "", false, "loadstone w-1 0a1b2c3d", "", "", 0.0, int64(5), 0.8},
		{"", "idle", "other", "", "", "", false, "billing", "", "", 0.0, int64(2000), 0.8},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if l.Idle != 5 || l.OtherIdle != 2000 || l.TookMs != 0.8 || len(l.Sessions) != 4 {
		t.Fatalf("%+v", l)
	}
	a, b, c, d := l.Sessions[0], l.Sessions[1], l.Sessions[2], l.Sessions[3]
	if !a.Ours || a.StatementID != "read" || a.Text != "" || strings.Join(a.BlockedBy, " ") != "12 13" ||
		a.Scope != "row" {
		t.Errorf("%+v", a)
	}
	if b.Ours || strings.Contains(b.Text, "p4ss") || !strings.Contains(b.Text, "UPDATE t") ||
		strings.Contains(b.Application,
			"\x1b") {
		t.Errorf("%+v", b)
	}
	if c.StatementID != "long" {
		t.Errorf("a statement that the server shows in part: %+v", c)
	}
	if d.Ours || d.Class != engine.WaitOther {
		t.Errorf("%+v", d)
	}
}

// TestRowsThatLie: what a hostile server or adapter answers is an error, or bounded.
func TestRowsThatLie(t *testing.T) {
	r := newReader("short", "named", nil)
	for _, rs := range []*target.ResultSet{{}, {Columns: []string{"a"}, Rows: [][]any{{int64(1)}}}} {
		if _, err := r.look(rs); err == nil {
			t.Errorf("%+v is taken", rs)
		}
		if _, err := r.counters(rs); err == nil {
			t.Errorf("%+v is taken for counters", rs)
		}
	}
	rows := [][]any{
		{nil, nil, nil},
		{"x", int64(1), 2.0, "too", "many", "columns", "for", "this", "one", "and", "that", "is", "it", 1},
		{},
	}
	for range 3 * maxSessions {
		rows = append(
			rows,
			[]any{"9", "active", "lock", "e", "row", strings.Repeat("\xff'", 5000), true, strings.Repeat("n", 1e4),
				"u", strings.Repeat("1,", 3000), "NaN", int64(-3), "x"},
		)
	}
	l, err := r.look(&target.ResultSet{Columns: activityColumns, Rows: rows})
	if err != nil || len(l.Sessions) > maxSessions {
		t.Fatalf("%d sessions, %v", len(l.Sessions), err)
	}
	for _, s := range l.Sessions {
		if len(s.Text) > 2*maxText || len(s.Application) > maxName || len(s.BlockedBy) > maxBlockers ||
			s.TransactionSeconds != 0 {
			t.Fatalf("%+v", s)
		}
	}
	list, err := r.counters(&target.ResultSet{Columns: []string{"NAME", "OBJECT", "VALUE"}, Rows: [][]any{
		{"commits", "", "12"}, {"commits", "", "NaN"}, {"", "", 1.0}, {"x", nil, nil}, {"log_bytes", "o", int64(3)}}})
	if err != nil || len(list) != 2 || list[0].Value != 12 || list[1].Object != "o" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestBudget: however dear a look is, and however often it is due, all looks together take 1 % of the time, or there is
// one a second; cheap ones are all made.
func TestBudget(t *testing.T) {
	for _, c := range []struct {
		cost  time.Duration
		least int
	}{{200 * time.Microsecond, 590}, {time.Millisecond, 400}, {5 * time.Millisecond, 80}, {100 * time.Millisecond, 55}} {
		b := budget{share: lookShare, floor: lookFloor}
		look := turn{every: 100 * time.Millisecond}
		spent, looks := time.Duration(0), 0
		start := time.Unix(0, 0)
		for at := time.Duration(0); at < time.Minute; at += 25 * time.Millisecond {
			if b.allows(start.Add(at)) && look.due(at) {
				// Every fourth waits for a processor, which is no cost.
				took := c.cost
				if looks%4 == 3 {
					took *= 10
				}
				b.spend(look.record(took))
				spent += c.cost
				looks++
			}
		}
		// Once a second is looked whatever it costs.
		if most := max(time.Minute/100, time.Minute/time.Second*c.cost) + burst + c.cost; spent > most || looks < c.least {
			t.Errorf("looks of %v: %d, which took %v", c.cost, looks, spent)
		}
	}
}

// TestTurnsAreNotMadeUpFor: after a pause there is one look, not as many as were missed.
func TestTurnsAreNotMadeUpFor(t *testing.T) {
	look := turn{every: 100 * time.Millisecond}
	n := 0
	for _, at := range []time.Duration{0, 50, 100, 5000, 5001, 5050, 5100, 5101} {
		if look.due(at * time.Millisecond) {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d looks", n)
	}
}
