package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// Statements whose values the protocol has no parameters for: EXECUTE has them written into its text, COPY FROM STDIN
// sends them as rows.

// setUp prepares, by SQL, what statements EXECUTE by name.
func (c *conn) setUp(ctx context.Context, pg *pgconn.PgConn) error {
	done := map[string]bool{}
	for i := range c.statements {
		s := &c.statements[i]
		n, ok := sqltext.Names(s.SQL)
		if !ok || done[n.Setup] {
			continue
		}
		if c.unnamed {
			return &engine.Error{Code: engine.CodeTarget,
				Message: fmt.Sprintf("Statement %s cannot be prepared: it stands under the name %s in its session, and the "+
					"sessions here are a pooler's, which may give each transaction another one.", s.ID, n.Name),
				Hint: "connect to the server itself, or to a pooler in session mode"}
		}
		done[n.Setup] = true
		if err := execAll(ctx, pg, n.Setup); err != nil {
			if known := explained(err); known != nil {
				return known
			}
			return &engine.Error{Code: engine.CodeTarget, Cause: err,
				Message: fmt.Sprintf("Statement %s cannot be prepared: %s.", s.ID, sentence(err)), Hint: caretText(n.Setup, err)}
		}
	}
	return nil
}

// executed is what of a text each operation executes: all of it, but the PREPARE before an EXECUTE.
func executed(sql string) string {
	if n, ok := sqltext.Names(sql); ok {
		return n.Execute
	}
	return sql
}

// writtenText takes an EXECUTE with parameters apart: argument order[i] follows piece i. It is nil for every other
// statement.
func writtenText(s engine.Statement) (pieces []string, order []int, err error) {
	tokens, err := sqltext.Tokens(s.SQL, sqltext.Postgres)
	if err != nil || len(tokens) == 0 || tokens[0].Upper() != "EXECUTE" {
		return nil, nil, nil //nolint:nilerr // the server says what is wrong with it
	}
	from := 0
	for _, t := range tokens {
		if t.Kind != sqltext.Param {
			continue
		}
		n, err := strconv.Atoi(t.Text[1:])
		if err != nil || n < 1 || s.BindOrder != nil && n > len(s.BindOrder) {
			return nil, nil, fmt.Errorf("it has no value for %s", t.Text)
		}
		if n--; s.BindOrder != nil {
			n = s.BindOrder[n]
		}
		if n >= len(s.Binds) {
			return nil, nil, fmt.Errorf("it has %d binds, and no value for %s", len(s.Binds), t.Text)
		}
		pieces, order = append(pieces, s.SQL[from:t.At]), append(order, n)
		from = t.End
	}
	if pieces != nil {
		pieces = append(pieces, s.SQL[from:])
	}
	return pieces, order, nil
}

// copiedFields is how many fields the rows of a COPY FROM STDIN have, 0 for a statement that sends none.
func copiedFields(s engine.Statement) (int, error) {
	columns, ok := sqltext.Fields(s.SQL)
	switch {
	case !ok || len(s.Binds) == 0:
		return 0, nil
	case len(columns) == 0 || len(s.Binds)%len(columns) != 0:
		return 0, fmt.Errorf("it has %d binds, and COPY names %d columns for them", len(s.Binds), len(columns))
	}
	return len(columns), nil
}

// sendsRows reports that an operation is a COPY FROM STDIN whose request has the rows.
func (c *conn) sendsRows(op plugin.Op) bool {
	return int(op.Statement) < len(c.stmts) && c.stmts[op.Statement].copied > 0
}

// parseWritten appends the Parse message of an EXECUTE with its values.
func (c *conn) parseWritten(out []byte, p *prepared, b *plugin.Batch, args []plugin.Value) ([]byte, error) {
	at := len(out)
	out = append(out, 'P', 0, 0, 0, 0, 0) // no name
	for i, piece := range p.pieces {
		out = append(out, piece...)
		if i == len(p.order) {
			break
		}
		if p.order[i] >= len(args) {
			return nil, fmt.Errorf("operation has %d arguments, the statement needs more", len(args))
		}
		var err error
		if v := args[p.order[i]]; v.Type != plugin.TypeRef {
			out, err = wire.AppendLiteral(out, b, v)
		} else {
			out, err = c.kept.AppendRefLiteral(out, v)
		}
		if err != nil {
			return nil, err
		}
	}
	out = append(out, 0, 0, 0) // the end of the text, and no types
	binary.BigEndian.PutUint32(out[at+1:], uint32(len(out)-at-1))
	return out, nil
}

// appendRows appends the rows of a COPY FROM STDIN to a request that ends with its Execute and a Sync.
func (c *conn) appendRows(out []byte, p *prepared, b *plugin.Batch, args []plugin.Value) ([]byte, error) {
	if len(args)%p.copied != 0 {
		return nil, fmt.Errorf("operation has %d arguments for rows of %d fields", len(args), p.copied)
	}
	out = out[:len(out)-len(wire.ExecuteAndSync)+len(wire.ExecuteOnly)]
	at := len(out)
	out = append(out, 'd', 0, 0, 0, 0)
	for i, v := range args {
		var err error
		if v.Type != plugin.TypeRef {
			out, err = wire.AppendField(out, b, v)
		} else {
			out, err = c.kept.AppendRefField(out, v)
		}
		if err != nil {
			return nil, err
		}
		if (i+1)%p.copied == 0 {
			out = append(out, '\n')
		} else {
			out = append(out, '\t')
		}
	}
	if len(out)-at > wire.MaxMessage {
		return nil, errors.New("operation is larger than 1 GB")
	}
	binary.BigEndian.PutUint32(out[at+1:], uint32(len(out)-at-1))
	return append(out, wire.DoneAndSync...), nil
}
