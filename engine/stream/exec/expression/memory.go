package expression

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// ErrPiece says that the rows of a batch take too much when they are evaluated together: fewer of them may not.
var ErrPiece = errors.New("the rows take too much at once")

// ErrStopped says that the query has to end.
var ErrStopped = errors.New("the query was told to end")

// Memory counts what the expressions of one operator hold: the vectors that they are evaluated in, which are kept from
// one batch to the next. One goroutine may use it.
type Memory struct {
	account *memory.Account
	// most is what several rows may take together.
	most    int
	held    int
	filled  int
	vectors []*result
}

// NewMemory returns what counts for an account. Several rows that would hold more than most bytes together are
// ErrPiece; a single one may hold what the account has.
func NewMemory(a *memory.Account, most int) *Memory { return &Memory{account: a, most: most} }

// Filled is how many bytes the values take that were evaluated since the last call.
func (m *Memory) Filled() int {
	n := m.filled
	m.filled = 0
	return n
}

// Held is how many bytes the vectors take.
func (m *Memory) Held() int { return m.held }

// Release gives the vectors back. What was evaluated in them is not valid any more.
func (m *Memory) Release() {
	for _, r := range m.vectors {
		r.Vec = column.Vec{Type: r.Type}
		r.held = 0
	}
	m.account.Free(m.held)
	m.held = 0
}

// MemoryError is the error of an expression for which there is not enough memory.
type MemoryError struct {
	// Of is the expression as it was written, shortened.
	Of    string
	Cause error
}

func (e *MemoryError) Error() string { return "evaluating " + e.Of + ": " + e.Cause.Error() }

func (e *MemoryError) Unwrap() error { return e.Cause }

// maxShown is how many characters of an expression an error has.
const maxShown = 80

// tooMuch names the expression.
func (e *Expr) tooMuch(cause error) error {
	text := []rune("an expression")
	if e.of != nil {
		if text = []rune(sql.Text(e.of)); len(text) > maxShown {
			text = append(text[:maxShown-1:maxShown-1], '…')
		}
	}
	return &MemoryError{Of: string(text), Cause: cause}
}

// result is the vector that a node evaluates in. A Memory counts held bytes of it.
type result struct {
	column.Vec
	held  int
	known bool
}

// input is a batch, and what counts what is made of it; m is nil where nothing does.
type input struct {
	*column.Batch
	m *Memory
}

// abort ends an evaluation: it is what nodes panic with, and Eval returns.
type abort struct{ err error }

// done counts a vector that was filled, with so many bytes that its node holds besides, and returns it. It ends the
// evaluation of a query that has to end.
func (in *input) done(r *result, besides int) *column.Vec {
	if in.m == nil {
		return &r.Vec
	}
	if size := r.Size() + besides; size != r.held {
		in.m.count(r, size, in.N)
	}
	in.m.filled += 8*(len(r.Ints)+len(r.Floats)) + len(r.Bools) + len(r.Bytes) + 4*len(r.Ends) + len(r.Null) + besides
	in.check()
	return &r.Vec
}

// check ends the evaluation of a query that has to end. Whoever looks at a value for long calls it in between.
func (in *input) check() {
	if in.m != nil && in.m.account.Stopped() {
		panic(abort{ErrStopped})
	}
}

// room makes room for a text of n bytes in r, and counts it before.
func (in *input) room(r *result, n int) {
	need, has := len(r.Bytes)+n, cap(r.Bytes)
	if need <= has {
		return
	}
	to := max(need, min(2*has, has+1<<20), 64)
	if in.m != nil {
		in.check()
		in.m.count(r, max(r.held, r.Size())+to, in.N) // both are there while one is copied
	}
	grown := make([]byte, len(r.Bytes), to)
	copy(grown, r.Bytes)
	r.Bytes = grown
	if in.m != nil {
		in.m.count(r, r.held-has, in.N)
	}
}

// count has a vector hold so many bytes, or ends the evaluation.
func (m *Memory) count(r *result, size, rows int) {
	if !r.known {
		r.known = true
		m.vectors = append(m.vectors, r)
	}
	if rows > 1 && m.held+size-r.held > m.most {
		panic(abort{ErrPiece})
	}
	now, err := m.account.Set(r.held, size)
	if err != nil {
		panic(abort{err})
	}
	m.held += now - r.held
	r.held = now
}
