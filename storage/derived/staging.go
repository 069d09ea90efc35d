package derived

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// stageName is the table that a refresh gathers its rows in; each epoch has its own, so that none is another's.
func stageName(c refresh.Claim) (prefix string, name pgx.Identifier) {
	sum := sha256.Sum256([]byte(c.Table))
	prefix = "~" + hex.EncodeToString(sum[:8]) + "~"
	return prefix, pgx.Identifier{"staging", fmt.Sprintf("%s%019d", prefix, c.Epoch)}
}

// rowBuffer are rows on their way from the reader to the owner: in memory as long as they are few, then in a table.
type rowBuffer struct {
	limit  int
	buffer bytes.Buffer
	// spill makes the table and returns where to write to; end waits until all is there.
	spill func() (io.Writer, error)
	to    io.Writer
}

func (g *rowBuffer) Write(p []byte) (int, error) {
	if g.to == nil && g.buffer.Len()+len(p) <= g.limit {
		return g.buffer.Write(p)
	}
	if g.to == nil {
		to, err := g.spill()
		if err != nil {
			return 0, err
		}
		if _, err := to.Write(g.buffer.Bytes()); err != nil {
			return 0, err
		}
		g.to = to
	}
	return g.to.Write(p)
}

// stage reads the rows of a query in a session of the reader and keeps them, or puts them into a table of the owner's
// where they are many, or where a part's are to wait for others.
func (d *Database) stage(ctx context.Context, c refresh.Claim, columns []column, query string, result *refresh.Result) (
	s stagedRows, err error) {
	var pipe *io.PipeWriter
	var written chan error
	rows := &rowBuffer{limit: d.Settings.RowsInMemory, spill: func() (io.Writer, error) {
		if err := d.makeStage(ctx, c, columns, &s); err != nil {
			return nil, err
		}
		// The statements come to an end together: when one fails, the other is told by the pipe.
		var from *io.PipeReader
		from, pipe = io.Pipe()
		written = make(chan error, 1)
		go func() {
			err := d.write(ctx, s.table(), from)
			_ = from.CloseWithError(errStopped)
			written <- err
		}()
		return pipe, nil
	}}
	if c.Subtask != "" {
		rows.limit = 0
	}
	bounded := &byteLimiter{w: rows, limit: d.Settings.Definition.Bytes}
	n, readErr := d.read(ctx, query, bounded)
	var writeErr error
	if pipe != nil {
		_ = pipe.CloseWithError(readErr)
		writeErr = <-written
	} else {
		s.content = rows.buffer.Bytes()
	}
	s.rows, result.Rows, result.Bytes = n, n, bounded.n
	var made *stageError
	switch {
	case bounded.n > bounded.limit:
		return s, tooLarge(fmt.Sprintf("more than %d MB", d.Settings.Definition.Bytes>>20))
	case n > d.Settings.Definition.Rows:
		return s, tooLarge(fmt.Sprintf("more than %d rows", d.Settings.Definition.Rows))
	case errors.As(readErr, &made):
		return s, made.error
	case readErr != nil && !errors.Is(readErr, errStopped):
		return s, queryError(readErr, "")
	}
	return s, wrapError("gathering the rows of a refresh", writeErr)
}

// stageError is that of the owner while rows are read as the reader.
type stageError struct{ error }

func (d *Database) makeStage(ctx context.Context, c refresh.Claim, columns []column, s *stagedRows) error {
	_, stage := stageName(c)
	kind := "UNLOGGED TABLE "
	if c.Subtask != "" {
		// All of the parts that are gathered outlive a crash of the database, which empties unlogged tables.
		kind = "TABLE "
	}
	s.name = stage[1]
	if _, err := d.owner.Exec(ctx, "CREATE "+kind+stage.Sanitize()+" ("+columnNames(columns)+")"); err != nil {
		return &stageError{wrapError("making a table for the rows of a refresh", err)}
	}
	return nil
}

var errStopped = errors.New("the rows were not taken")

func tooLarge(what string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: "The SQL returns " + what + ".",
		Hint: "Add up more: derived tables are summaries."}
}

// byteLimiter lets so many bytes through at most.
type byteLimiter struct {
	w        io.Writer
	n, limit int64
}

func (c *byteLimiter) Write(p []byte) (int, error) {
	if c.n += int64(len(p)); c.n > c.limit {
		return 0, errStopped
	}
	return c.w.Write(p)
}

// read sends the rows of a query, one statement that describe has looked at, as COPY writes them.
func (d *Database) read(ctx context.Context, query string, to io.Writer) (rows int64, err error) {
	err = pgx.BeginTxFunc(ctx, d.reader, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if err := limitDefinition(ctx, tx, d.Settings.Definition); err != nil {
				return err
			}
			copying := fmt.Sprintf("COPY (%s\nLIMIT %d) TO STDOUT (FORMAT binary)", query, d.Settings.Definition.Rows+1)
			tag, err := tx.Conn().PgConn().CopyTo(ctx, to, copying)
			rows = tag.RowsAffected()
			return err
		})
	return rows, err
}

// limitStatements bounds the statements of a transaction.
func limitStatements(ctx context.Context, tx pgx.Tx, l Limits) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL work_mem = '%s'; "+
		"SET LOCAL max_parallel_workers_per_gather = %d", l.Statement.Milliseconds(), l.WorkMemory, l.Parallel),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

// limitDefinition is limit of a definition, which does not see the seconds of runs that are going on: a table
// would show them as they were at some moment.
func limitDefinition(ctx context.Context, tx pgx.Tx, l Limits) error {
	if _, err := tx.Exec(ctx, "SET LOCAL loadstone.live = 'off'", pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return limitStatements(ctx, tx, l)
}

func (d *Database) write(ctx context.Context, stage pgx.Identifier, from io.Reader) error {
	conn, err := d.owner.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	_, err = conn.Conn().PgConn().CopyFrom(ctx, from, "COPY "+stage.Sanitize()+" FROM STDIN (FORMAT binary)")
	return err
}

// sweep removes the tables that earlier epochs have left.
func (d *Database) sweep(ctx context.Context, prefix, upTo string) error {
	rows, err := d.owner.Query(ctx, `SELECT tablename FROM pg_tables WHERE schemaname = 'staging'
		AND starts_with(tablename, $1) AND tablename < $2`, prefix, upTo)
	if err != nil {
		return wrapError("looking for what earlier refreshes have left", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return wrapError("looking for what earlier refreshes have left", err)
	}
	for i, name := range names {
		names[i] = pgx.Identifier{"staging", name}.Sanitize()
	}
	_, err = d.owner.Exec(ctx, "DROP TABLE IF EXISTS "+strings.Join(names, ", "))
	return wrapError("removing what earlier refreshes have left", err)
}

// unstage removes the rows of a refresh that is over. What stays behind the next one removes.
func (d *Database) unstage(ctx context.Context, s stagedRows) {
	if s.name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = d.owner.Exec(ctx, "DROP TABLE IF EXISTS "+s.table().Sanitize())
}

// textArray are texts as an SQL array.
func textArray(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]::text[]"
}
