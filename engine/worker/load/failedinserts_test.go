package load

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// The statements of a workload that inserts rows, and looks for them at once.
const (
	unmadeLookup = iota
	unmadeInsert
	unmadeUpdate
)

// insertAndLook inserts row after row and looks for it 100 operations later. Its keys are texts where
// text is set, alone or before a whole number.
type insertAndLook struct {
	mu    sync.Mutex
	made  int
	text  bool
	group bool // look in a transaction of two statements
}

func (s *insertAndLook) put(b *plugin.Batch, statement uint16, n int, before ...plugin.Value) {
	op := plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args))}
	b.Args = append(b.Args, before...)
	if s.text {
		text := fmt.Sprintf("key%05d", n)
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeText, Off: uint32(len(b.Data)), Len: uint32(len(text))})
		b.Data = append(b.Data, text...)
	} else {
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: int64(n)})
	}
	op.NArgs = uint16(uint32(len(b.Args)) - op.FirstArg)
	b.Ops = append(b.Ops, op)
}

func (s *insertAndLook) Fill(b *plugin.Batch, n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Reset()
	for len(b.Ops)+6 <= n {
		s.put(b, unmadeInsert, s.made)
		if old := s.made - 1000; old >= 0 {
			if s.group {
				b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementBegin})
			}
			s.put(b, unmadeLookup, old)
			s.put(b, unmadeUpdate, old, plugin.Value{Type: engine.TypeI64, I: 7})
			if s.group {
				b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementCommit})
			}
		}
		s.made++
	}
	return nil
}

func (s *insertAndLook) Close() error { return nil }

// pickyDB takes every third row only, and knows which rows it has.
type pickyDB struct {
	*fakeDB
	mu     sync.Mutex
	rows   map[string]bool
	missed int
	met    int
	pairs  map[*pickyConn]string
	apart  int // updates of another row than the transaction has looked for
}

type pickyConn struct {
	target.Conn
	db *pickyDB
	in bool
}

func (d *pickyDB) Connect(ctx context.Context, s []engine.Statement) (target.Conn, error) {
	c, err := d.fakeDB.Connect(ctx, s)
	return &pickyConn{Conn: c, db: d}, err
}

func (c *pickyConn) Exec(ctx context.Context, b *plugin.Batch, op plugin.Op, res *target.Result) error {
	time.Sleep(time.Millisecond)
	*res = target.Result{}
	switch op.Statement {
	case plugin.StatementBegin, plugin.StatementCommit:
		c.in = op.Statement == plugin.StatementBegin
		return nil
	case plugin.StatementRollback:
		return nil
	}
	v := b.Args[op.FirstArg+uint32(op.NArgs)-1]
	key := fmt.Sprint(v.I)
	if v.Type == engine.TypeText {
		key = string(b.Bytes(v))
	}
	c.db.mu.Lock()
	defer c.db.mu.Unlock()
	switch {
	case op.Statement == unmadeInsert:
		if len(c.db.rows)%3 != 0 {
			c.db.rows[key] = false
			return errServer
		}
		c.db.rows[key] = true
		res.Rows = 1
	case c.db.rows[key]:
		c.db.met++
		res.Rows = 1
	default:
		c.db.missed++
	}
	if op.Statement == unmadeLookup {
		c.db.pairs[c] = key
	} else if op.Statement == unmadeUpdate && c.in && c.db.pairs[c] != key {
		c.db.apart++
	}
	return nil
}

// Whatever a workload looks for, it does not look for rows that the run has failed to insert.
func TestRowsThatWereNotInsertedAreNotLookedFor(t *testing.T) {
	for name, s := range map[string]*insertAndLook{"whole numbers": {}, "texts": {text: true},
		"in transactions": {group: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := &pickyDB{fakeDB: &fakeDB{}, rows: map[string]bool{}, pairs: map[*pickyConn]string{}}
				sink := &memorySink{}
				cfg := fakeConfig(db.fakeDB, s, sink)
				cfg.Database = db
				typ := engine.TypeI64
				if s.text {
					typ = engine.TypeText
				}
				key := engine.Bind{Name: "id", Column: "id", Type: typ}
				cfg.Plan.Tables = []engine.Table{{Name: "t", Key: []string{"id"}}}
				cfg.Plan.Statements = []engine.Statement{{ID: "look", Kind: engine.KindPointLookup, Table: "t",
					Binds: []engine.Bind{key}},
					{ID: "put", Kind: engine.KindInsert, Table: "t", Binds: []engine.Bind{key}},
					{ID: "set", Kind: engine.KindUpdate, Table: "t",
						Binds: []engine.Bind{{Name: "v", Column: "v", Type: engine.TypeI64}, key}}}
				g := open(t, cfg, 4)
				g.Start(engine.PhaseMeasurement)
				time.Sleep(3 * time.Second)
				if err := settle(g, db.fakeDB, sink, time.Minute); err != nil {
					t.Error(err)
				}
				if n := g.Totals().KeysReplaced; db.missed > 0 || db.met < 3000 || n < int64(db.met)/3 || n > int64(db.met) {
					t.Errorf("%d operations missed, %d met a row, %d got another key", db.missed, db.met, n)
				}
				if db.apart > 0 {
					t.Errorf("%d transactions changed another row than they had read", db.apart)
				}
			})
		})
	}
}
