package flow

import (
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/expression"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

const (
	// pieceShare is what part of a query's memory the expressions of an operator may take for several rows together.
	pieceShare = 16
	// minPieceBytes is what they may take though that is more.
	minPieceBytes = 64 << 10
)

// pieces has an operator take batches: whole, or in pieces where all rows of a batch would take too much memory.
type pieces struct {
	q      *Query
	memory *expression.Memory
	most   int
	// eval evaluates rows, and changes nothing else: it may be called again with fewer of them.
	eval func(rows *column.Batch) error
	// use takes what was evaluated. more says that rows of the same batch follow.
	use func(rows *column.Batch, more bool) error
	// rows is how many are evaluated at once at most; 0: all of a batch.
	rows  int
	piece column.Piece
}

func newPieces(q *Query, eval func(*column.Batch) error, use func(*column.Batch, bool) error) *pieces {
	most := max(q.memory.Limit()/pieceShare, minPieceBytes)
	p := &pieces{q: q, memory: expression.NewMemory(q.memory, most), most: most, eval: eval, use: use}
	q.pieces = append(q.pieces, p)
	return p
}

// push has a batch evaluated and used.
func (p *pieces) push(b *column.Batch) error {
	for from := 0; from < b.N; {
		n := b.N - from
		if p.rows > 0 {
			n = min(n, p.rows)
		}
		rows := b
		if n < b.N {
			rows = p.piece.Slice(b, from, from+n)
		}
		faults := *p.q.plan.Faults
		if err := p.eval(rows); err != nil {
			p.memory.Release()
			var held *memory.ExceededError
			if n == 1 || !errors.Is(err, expression.ErrPiece) && !errors.As(err, &held) {
				return p.explain(err)
			}
			*p.q.plan.Faults = faults
			p.rows = n / 2
			continue
		}
		filled := p.memory.Filled()
		p.adapt(n, filled)
		from += n
		if err := p.use(rows, b.More || from < b.N); err != nil {
			return err
		}
		if held := p.memory.Held(); held > p.most && filled < held/4 {
			p.memory.Release() // of a row that was longer than the others
		}
	}
	return nil
}

// adapt decides how many rows are evaluated next: n have filled so many bytes.
func (p *pieces) adapt(n, filled int) {
	if p.rows == 0 {
		return
	}
	fit := p.most / 2 * n / max(filled, 1)
	if p.rows = max(1, min(2*n, fit)); p.rows > column.MaxWireRows {
		p.rows = 0
	}
}

// explain says why an expression could not be evaluated.
func (p *pieces) explain(err error) error {
	if errors.Is(err, expression.ErrStopped) {
		if ended := p.q.o.Ended(); ended != nil {
			return ended
		}
		return err
	}
	var of *expression.MemoryError
	if errors.As(err, &of) {
		return p.q.StateLimit(of.Cause, "one row takes too much in "+of.Of)
	}
	return err
}

// StateLimit is the end of a query that may not hold more; what says with what.
func (q *Query) StateLimit(err error, what string) error {
	const less = "group by what has fewer values, make windows smaller, or let fewer rows and shorter texts through"
	var e *memory.ExceededError
	switch {
	case !errors.As(err, &e):
		return err
	case e.Total:
		return caused(e, less+"; --streams-memory of the server or node is for all queries together",
			"the continuous queries of this process would hold more than %s together, and those of its user the most of "+
				"them: %s", size(e.Limit), what)
	}
	return caused(e, less+"; or give the query more: SET(256 AS QUERY.MEMORY_MIB), or all of them with "+
		"--streams-query-memory of the server or node",
		"the query would hold more than %s: %s", size(e.Limit), what)
}

// caused is a StateLimit that says what of the account it was.
func caused(by error, hint, format string, args ...any) *sql.Error {
	e := sql.Errorf(sql.StateLimit, "", -1, hint, format, args...)
	e.Cause = by
	return e
}

// size is a number of bytes as it is told.
func size(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// held is a buffer that is counted.
type held int

// set has the buffer take so many bytes.
func (h *held) set(q *Query, bytes int, what string) error {
	now, err := q.memory.Set(int(*h), bytes)
	if *h = held(now); err != nil {
		return q.StateLimit(err, what)
	}
	return nil
}

// moments knows the latest times of rows whose batch goes on.
type moments map[int]int64

// of returns the latest time of an origin's rows when the last batch of several that go together is there.
func (m moments) of(from int, latest int64, seen, more bool) (int64, bool) {
	before, open := m[from]
	if open && (!seen || before > latest) {
		latest, seen = before, true
	}
	switch {
	case more && seen:
		m[from] = latest
		return 0, false
	case open:
		delete(m, from)
	}
	return latest, seen
}
