package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres/wire"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// stateError is an operation after which the session does not stand where its
// workload has it: what it wrote is not what a reader of its figures takes it for.
type stateError struct{ text string }

func (e *stateError) Error() string { return e.text }

// The states that ReadyForQuery tells.
const (
	stateIdle   = 'I'
	stateInside = 'T'
	stateFailed = 'E'
)

// Transaction implements target.TransactionConn.
func (c *conn) Transaction() target.Transaction {
	if c.broken.Load() {
		return target.TransactionUnknown
	}
	switch c.answer.TxStatus {
	case stateIdle:
		return target.TransactionNone
	case stateInside:
		return target.TransactionOpen
	case stateFailed:
		return target.TransactionFailed
	}
	return target.TransactionUnknown
}

// state checks where the session stands after an operation that succeeded: outside
// of a transaction nothing may be open, and inside of one it still is. A
// statement that opens a transaction would have all that follows rolled back
// when the connection ends, and counted as done. Both ways of reading answers come by here.
func (c *conn) state(op plugin.Op) error {
	want := byte(stateIdle)
	switch op.Statement {
	case plugin.StatementBegin:
		want = stateInside
	case plugin.StatementCommit, plugin.StatementRollback:
	default:
		if c.kept.Inside {
			want = stateInside
		}
	}
	if c.answer.TxStatus == want {
		return nil
	}
	what := "the transaction's end"
	if int(op.Statement) < len(c.statements) {
		what = "the statement " + c.statements[op.Statement].ID
	}
	if want == stateIdle {
		return &stateError{fmt.Sprintf("%s left a transaction open: what it and the operations after it write would be "+
			"rolled back", what)}
	}
	return &stateError{fmt.Sprintf("%s ended the transaction that it stands in", what)}
}

// failedOf looks at an operation's error: a prepared statement whose table was
// altered is prepared again with the next operation, once for each change.
func (c *conn) failedOf(op plugin.Op, err error) {
	var server *pgconn.PgError
	if int(op.Statement) >= len(c.statements) || c.broken.Load() || !errors.As(err, &server) {
		return
	}
	if c.stmts[op.Statement].copied > 0 {
		return // it has no plan
	}
	outdated := server.Code == "0A000" && strings.Contains(server.Message, "cached plan")
	// Types that were fixed when the statement was described may be the old ones.
	outdated = outdated || c.unnamed && (server.Code == "42883" || server.Code == "42804") && !c.renewed[op.Statement]
	// 26000: the session has no such statement; 42P05: it has one.
	if outdated || server.Code == "26000" || server.Code == "42P05" {
		c.renew(op.Statement, server.Code != "26000")
	}
}

// renew has a statement prepared again together with its next operation. Nothing is
// known then of its types, so all values travel as text; waiting for a description would
// hold up the other connections of an event loop. Of an EXECUTE what it names is prepared again too; there says that
// the session has it.
func (c *conn) renew(i uint16, there bool) {
	if c.renewed == nil {
		c.renewed = map[uint16]bool{}
		c.stmts = slices.Clone(c.stmts) // the others' are shared
	}
	c.renewed[i] = true
	name := statementName(int(i))
	if c.unnamed {
		name = ""
	}
	old, sql := c.stmts[i], c.statements[i].SQL
	p := prepared{forms: make([]wire.Form, len(old.forms)), params: make([]uint32, len(old.params)),
		fields: make([]wire.Field, len(old.fields)), order: old.order, pieces: old.pieces}
	if n, ok := c.named(sql); ok {
		sql = executed(sql)
		if there {
			p.parse = append(p.parse, wire.Once("DEALLOCATE "+pgx.Identifier{n.Name}.Sanitize())...)
		}
		p.parse = append(p.parse, wire.Once(n.Setup)...)
	}
	switch {
	case p.pieces != nil:
		name = "" // it is parsed each time
	case c.unnamed:
		p.parse = append(p.parse, wire.ParseMessage(name, sql, nil)...)
	default:
		p.parse = append(append(p.parse, wire.CloseStatement(name)...), wire.ParseMessage(name, sql, nil)...)
	}
	p.head = wire.BindHead(name, len(p.forms))
	// All columns as text, whatever they are now.
	p.tail = append([]byte{0, 0}, wire.ExecuteAndSync...)
	p.keepTail = p.tail
	c.stmts[i] = p
}

// named is what prepares the statement that an EXECUTE names: the text's own, or that of another statement.
func (c *conn) named(sql string) (n sqltext.Named, ok bool) {
	if n, ok = sqltext.Names(sql); ok {
		return n, true
	}
	tokens, err := sqltext.Tokens(sql, sqltext.Postgres)
	if err != nil || len(tokens) < 2 || tokens[0].Upper() != "EXECUTE" {
		return n, false
	}
	name, _ := tokens[1].Identifier()
	for i := range c.statements {
		if n, ok = sqltext.Names(c.statements[i].SQL); ok && n.Name == name {
			return n, true
		}
	}
	return n, false
}

// settled ends a renewal: the statement is there.
func (c *conn) settled(op plugin.Op) {
	if op.Statement < plugin.StatementBegin && c.renewed[op.Statement] && !c.unnamed {
		c.stmts[op.Statement].parse = nil
	}
}
