package derived

import (
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
	"github.com/loadstone-db/loadstone/engine/refresh"
)

// stageName is the table that a refresh gathers its rows in; each epoch has its own, so that none is another's.
func stageName(c refresh.Claim) (prefix string, name pgx.Identifier) {
	sum := sha256.Sum256([]byte(c.Table))
	prefix = "~" + hex.EncodeToString(sum[:8]) + "~"
	return prefix, pgx.Identifier{"staging", fmt.Sprintf("%s%019d", prefix, c.Epoch)}
}

// stage reads the rows of a query in a session of the reader and puts them into a table of the owner's. What earlier
// epochs of the table have left is removed.
func (d *Database) stage(ctx context.Context, c refresh.Claim, columns []column, query string, result *refresh.Result) (
	pgx.Identifier, error) {
	prefix, stage := stageName(c)
	kind := "UNLOGGED TABLE "
	if c.Subtask != "" {
		// Other parts are gathered, too. All of them outlive a crash of the database, which empties unlogged tables.
		kind = "TABLE "
	} else if err := d.sweep(ctx, prefix, stage[1]); err != nil {
		return stage, err
	}
	if _, err := d.owner.Exec(ctx, "CREATE "+kind+stage.Sanitize()+" ("+listed(columns)+")"); err != nil {
		return stage, failed("making a table for the rows of a refresh", err)
	}
	// The statements come to an end together: when one fails, the other is told by the pipe.
	from, to := io.Pipe()
	bounded := &counted{w: to, most: definitionLimits.Bytes}
	read := make(chan error, 1)
	go func() {
		n, err := d.read(ctx, query, bounded)
		result.Rows = n
		_ = to.CloseWithError(err)
		read <- err
	}()
	writeErr := d.write(ctx, stage, from)
	_ = from.CloseWithError(errStopped)
	readErr := <-read
	result.Bytes = bounded.n
	switch {
	case bounded.n > bounded.most:
		return stage, tooLarge(fmt.Sprintf("more than %d MB", definitionLimits.Bytes>>20))
	case result.Rows > definitionLimits.Rows:
		return stage, tooLarge(fmt.Sprintf("more than %d rows", definitionLimits.Rows))
	case readErr != nil && !errors.Is(readErr, errStopped):
		return stage, refusedSQL(readErr, "")
	}
	return stage, failed("gathering the rows of a refresh", writeErr)
}

var errStopped = errors.New("the rows were not taken")

func tooLarge(what string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: "The SQL returns " + what + ".",
		Hint: "Add up more: derived tables are summaries."}
}

// counted lets so many bytes through at most.
type counted struct {
	w       io.Writer
	n, most int64
}

func (c *counted) Write(p []byte) (int, error) {
	if c.n += int64(len(p)); c.n > c.most {
		return 0, errStopped
	}
	return c.w.Write(p)
}

// read sends the rows of a query, one statement that describe has looked at, as COPY writes them.
func (d *Database) read(ctx context.Context, query string, to io.Writer) (rows int64, err error) {
	err = pgx.BeginTxFunc(ctx, d.reader, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if err := limitDefinition(ctx, tx, definitionLimits.Statement); err != nil {
				return err
			}
			copying := fmt.Sprintf("COPY (%s\nLIMIT %d) TO STDOUT (FORMAT binary)", query, definitionLimits.Rows+1)
			tag, err := tx.Conn().PgConn().CopyTo(ctx, to, copying)
			rows = tag.RowsAffected()
			return err
		})
	return rows, err
}

// limit bounds the statements of a transaction.
func limit(ctx context.Context, tx pgx.Tx, most time.Duration) error {
	_, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d; SET LOCAL work_mem = '32MB'",
		most.Milliseconds()),
		pgx.QueryExecModeSimpleProtocol)
	return err
}

// limitDefinition is limit of a definition, which does not see the seconds of runs that are going on: a table
// would show them as they were at some moment.
func limitDefinition(ctx context.Context, tx pgx.Tx, most time.Duration) error {
	if _, err := tx.Exec(ctx, "SET LOCAL loadstone.live = 'off'", pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return limit(ctx, tx, most)
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
		return failed("looking for what earlier refreshes have left", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(names) == 0 {
		return failed("looking for what earlier refreshes have left", err)
	}
	for i, name := range names {
		names[i] = pgx.Identifier{"staging", name}.Sanitize()
	}
	_, err = d.owner.Exec(ctx, "DROP TABLE IF EXISTS "+strings.Join(names, ", "))
	return failed("removing what earlier refreshes have left", err)
}

// unstage removes the rows of a refresh that is over. What stays behind the next one removes.
func (d *Database) unstage(ctx context.Context, stage pgx.Identifier) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = d.owner.Exec(ctx, "DROP TABLE IF EXISTS "+stage.Sanitize())
}

// literals are texts as an SQL array.
func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = "'" + strings.ReplaceAll(text, "'", "''") + "'"
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]::text[]"
}
