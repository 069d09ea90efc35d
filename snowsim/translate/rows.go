package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rowColumn is a column of a history, with its Postgres type and its value
// of an execution or an interval.
type rowColumn[T any] struct {
	name, postgres string
	value          func(r *T) any
}

// named returns the columns of a history that the statement names: it reads the
// tokens, since the list of a SELECT stands before its FROM.
func named[T any](p *Parser, all []rowColumn[T]) []rowColumn[T] {
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
	var used []rowColumn[T]
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
func FromRows[T any](p *Parser, what string, all []rowColumn[T],
	rows func(ctx context.Context, conn *pgx.Conn) ([]T, error)) string {
	p.Volatile = true
	used := named(p, all)
	table := p.Fresh(what)
	definitions, names := make([]string, len(used)), make([]string, len(used))
	for i, c := range used {
		definitions[i], names[i] = Quote(c.name)+" "+c.postgres, c.name
	}
	p.Before = append(p.Before, func(ctx context.Context, conn *pgx.Conn) error {
		made, err := rows(ctx, conn)
		if err != nil {
			return err
		}
		if err := ExecAll(ctx, conn, "CREATE TEMPORARY TABLE "+Quote(table)+" ("+
			strings.Join(definitions, ", ")+
			") ON COMMIT DROP"); err != nil {
			return err
		}
		_, err = conn.CopyFrom(ctx, pgx.Identifier{"pg_temp", table}, names, pgx.CopyFromSlice(len(made), func(row int) ([]any, error) {
			values := make([]any, len(used))
			for i, c := range used {
				values[i] = c.value(&made[row])
			}
			return values, nil
		}))
		return err
	})
	return "pg_temp." + Quote(table)
}

// OrNull is a text, nil when it is empty.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
