package translate

import (
	"context"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Column is a column of a history, with its Postgres type and its value
// of an execution or an interval.
type Column[T any] struct {
	name, postgres string
	value          func(r *T) any
}

// named returns the columns of a history that the statement names: it reads the
// tokens, since the list of a SELECT stands before its FROM.
func named[T any](p *Parser, all []Column[T]) []Column[T] {
	words := map[string]bool{}
	star := false
	for i, t := range p.Tokens {
		if t.Kind == Word || t.Kind == Quoted {
			words[t.Text] = true
		}
		if t.Kind == Symbol && t.Text == "*" && i > 0 {
			before := p.Tokens[i-1]
			star = star || before.Kind == Symbol && (before.Text == "," || before.Text == ".") ||
				IsOneOf(before, "SELECT", "DISTINCT", "ALL")
		}
	}
	if star {
		return all
	}
	var used []Column[T]
	for _, c := range all {
		if words[c.name] {
			used = append(used, c)
		}
	}
	if len(used) == 0 {
		used = all[:1]
	}
	return used
}

// FromRows makes a temporary table of rows before the statement runs and returns its name.
func FromRows[T any](p *Parser, what string, all []Column[T],
	rows func(ctx context.Context, conn *pgx.Conn) (func() (*T, bool), error)) string {
	p.Volatile = true
	used := named(p, all)
	table := p.Fresh(what)
	definitions, names := make([]string, len(used)), make([]string, len(used))
	for i, c := range used {
		definitions[i], names[i] = Quote(c.name)+" "+c.postgres, c.name
	}
	p.Before = append(p.Before, func(ctx context.Context, conn *pgx.Conn) error {
		next, err := rows(ctx, conn)
		if err != nil {
			return err
		}
		if err := ExecAll(ctx, conn, "CREATE TEMPORARY TABLE "+Quote(table)+" ("+
			strings.Join(definitions, ", ")+
			") ON COMMIT DROP"); err != nil {
			return err
		}
		_, err = conn.CopyFrom(ctx, pgx.Identifier{"pg_temp", table}, names, pgx.CopyFromFunc(func() ([]any, error) {
			r, ok := next()
			if !ok {
				return nil, nil
			}
			values := make([]any, len(used))
			for i, c := range used {
				values[i] = c.value(r)
			}
			return values, nil
		}))
		return err
	})
	return "pg_temp." + Quote(table)
}

// Each returns the rows one by one.
func Each[T any](rows []T) func() (*T, bool) {
	i := -1
	return func() (*T, bool) {
		i++
		if i >= len(rows) {
			return nil, false
		}
		return &rows[i], true
	}
}

// OrNull is a text, nil when it is empty.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Results are what RESULT_SCAN may be asked for: the statements of the account's
// sessions whose results can be had again.
type Results struct {
	mu  sync.Mutex
	ids map[string]scanned // by query id
}

// scanned is one of them.
type scanned struct {
	session int64
	made    *Plan
}

// scanLimit is how many results RESULT_SCAN finds again.
const scanLimit = 1000

// Keep remembers a SHOW or DESCRIBE, whose result RESULT_SCAN may be asked for.
func (r *Results) Keep(s *Session, made *Plan) {
	if s.QueryID == "" || made.Type != protocol.Show && made.Type != protocol.Describe {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids == nil || len(r.ids) >= scanLimit {
		r.ids = map[string]scanned{}
	}
	r.ids[s.QueryID] = scanned{s.ID, made}
}

// Find returns the statement of a session with a query id.
func (r *Results) Find(session int64, id string) (*Plan, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.ids[id]
	return found.made, ok && found.session == session
}

// NewColumn returns a column with its type in Postgres and its value of a row.
func NewColumn[T any](name, postgres string, value func(r *T) any) Column[T] {
	return Column[T]{name, postgres, value}
}
