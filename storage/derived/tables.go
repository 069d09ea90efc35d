package derived

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/refresh"
)

// Materialize refreshes an SQL table: the rows of its definition, read by the reader, replace those that are there,
// all or those of the runs that have changed. Whoever reads the table sees the old rows or the new ones.
func (d *Database) Materialize(ctx context.Context, t refresh.Table, c refresh.Claim,
	prove func(context.Context) error) (
	refresh.Result, error) {
	if err := d.Begin(ctx, c); err != nil {
		return refresh.Result{}, err
	}
	columns, err := d.describe(ctx, t.Definition)
	if err != nil {
		return refresh.Result{}, err
	}
	changes, result, err := d.changes(ctx, t, columns)
	if err != nil {
		return refresh.Result{}, err
	}
	if result.Mode == refresh.Incremental && len(changes.gone)+len(changes.runs) == 0 {
		result.Unchanged = true
		return result, nil
	}
	query := whole(t.Definition)
	if result.Mode == refresh.Incremental {
		query += "\nWHERE run_id = ANY(" + literals(changes.ids()) + ")"
	}
	stage, err := d.stage(ctx, c, columns, query, &result)
	if stage != nil {
		defer d.unstage(ctx, stage)
	}
	if err != nil {
		return refresh.Result{}, err
	}
	err = d.fenced(ctx, c, prove, func(tx pgx.Tx) error {
		return d.replace(ctx, tx, t, columns, stage, changes, result.Mode)
	})
	return result, failed("replacing the rows of a derived table", err)
}

// column is one of a derived table.
type column struct{ name, typ string }

func listed(columns []column) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pgx.Identifier{c.name}.Sanitize() + " " + c.typ)
	}
	return b.String()
}

// describe says which columns a definition has, as the reader sees it. Nothing of it is executed.
func (d *Database) describe(ctx context.Context, definition string) ([]column, error) {
	conn, err := d.reader.Acquire(ctx)
	if err != nil {
		return nil, failed("asking the results database", err)
	}
	defer conn.Release()
	// An empty name is that of the unnamed statement: one statement, and gone with the next.
	about, err := conn.Conn().PgConn().Prepare(ctx, "", whole(definition), nil)
	if err != nil {
		return nil, refusedDefinition(err, definition)
	}
	if len(about.ParamOIDs) > 0 {
		return nil, engine.InvalidField("definition", "has parameters", "write values in their place")
	}
	if len(about.Fields) == 0 || len(about.Fields) > maxColumns {
		return nil, engine.InvalidField("definition", fmt.Sprintf("has %d columns", len(about.Fields)),
			fmt.Sprintf("a table has 1 to %d", maxColumns))
	}
	var columns []column
	for _, f := range about.Fields {
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == f.Name }) {
			return nil, engine.InvalidField("definition", fmt.Sprintf("has two columns named %q", f.Name),
				"give one of them another name: … AS name")
		}
		var typ string
		var pseudo bool
		err := conn.QueryRow(ctx, "SELECT format_type($1, $2), typtype = 'p' FROM pg_type WHERE oid = $1", f.DataTypeOID,
			f.TypeModifier).Scan(&typ, &pseudo)
		if err != nil {
			return nil, failed("asking the results database", err)
		}
		if pseudo {
			return nil, engine.InvalidField("definition", fmt.Sprintf("has a column %q of the type %s, which no table can hold",
				f.Name, typ), "leave it out")
		}
		columns = append(columns, column{f.Name, typ})
	}
	return columns, nil
}

// changes are the runs whose partitions a table does not have as they are now.
type changes struct {
	runs map[string]int64 // with their versions
	gone []string
}

func (c changes) ids() []string {
	ids := make([]string, 0, len(c.runs))
	for id := range c.runs {
		ids = append(ids, id)
	}
	return ids
}

// changes decides between all rows and those of changed runs, and says why.
func (d *Database) changes(ctx context.Context, t refresh.Table, columns []column) (c changes, r refresh.Result,
	err error) {
	c.runs = map[string]int64{}
	rows, err := d.owner.Query(ctx, `SELECT coalesce(r.run_id, p.run_id), coalesce(r.version, 0), r.run_id IS NULL,
			r.version IS DISTINCT FROM p.run_version
		FROM rollup.runs r FULL JOIN (SELECT * FROM staging.partitions WHERE dynamic_table = $1) p USING (run_id)`, t.Name)
	if err != nil {
		return c, r, failed("looking which runs have changed", err)
	}
	var id string
	var version int64
	var gone, changed bool
	all := map[string]int64{}
	_, err = pgx.ForEachRow(rows, []any{&id, &version, &gone, &changed}, func() error {
		switch {
		case gone:
			c.gone = append(c.gone, id)
		case changed:
			c.runs[id] = version
		}
		if !gone {
			all[id] = version
		}
		return nil
	})
	if err != nil {
		return c, r, failed("looking which runs have changed", err)
	}
	var known int64
	var shape string
	err = d.owner.QueryRow(ctx, "SELECT definition_version, columns FROM staging.contents WHERE dynamic_table = $1",
		t.Name).Scan(&known, &shape)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return c, r, failed("looking what a derived table holds", err)
	}
	r.Mode = refresh.Incremental
	switch {
	case t.Mode == refresh.Full:
		r.Mode, r.Note = refresh.Full, ""
	case t.PartitionBy != refresh.ByRun:
		r.Mode, r.Note = refresh.Full, "FULL: its rows do not belong to one run each."
	case !slices.ContainsFunc(columns, func(c column) bool { return c.name == "run_id" }):
		r.Mode, r.Note = refresh.Full, "FULL: it has no column run_id."
	case known == 0:
		r.Mode, r.Note = refresh.Full, "FULL: it is made for the first time."
	case known != t.Version || shape != listed(columns):
		r.Mode, r.Note = refresh.Full, "FULL: its definition or the columns that it reads have changed."
	}
	if r.Mode == refresh.Full {
		c.runs, c.gone = all, nil
	}
	return c, r, nil
}

// replace puts what was staged in the place of what is there.
func (d *Database) replace(ctx context.Context, tx pgx.Tx, t refresh.Table, columns []column, stage pgx.Identifier,
	c changes, mode refresh.Mode) error {
	table := pgx.Identifier{"tables", t.Name}.Sanitize()
	var shape string
	err := tx.QueryRow(ctx, "SELECT columns FROM staging.contents WHERE dynamic_table = $1", t.Name).Scan(&shape)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if shape != listed(columns) {
		if _, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE "+table+" ("+listed(columns)+")"); err != nil {
			return err
		}
	}
	// Rows are deleted and inserted, not the table exchanged: no reader waits, and each sees one state.
	if mode == refresh.Full {
		_, err = tx.Exec(ctx, "DELETE FROM "+table)
	} else {
		_, err = tx.Exec(ctx, "DELETE FROM "+table+" WHERE run_id = ANY($1)", append(c.ids(), c.gone...))
	}
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "INSERT INTO "+table+" SELECT * FROM "+stage.Sanitize()); err != nil {
		return err
	}
	var batch pgx.Batch
	batch.Queue(`INSERT INTO staging.contents (dynamic_table, definition_version, columns) VALUES ($1, $2, $3)
		ON CONFLICT (dynamic_table) DO UPDATE SET definition_version = $2, columns = $3`, t.Name, t.Version, listed(columns))
	if mode == refresh.Full {
		batch.Queue("DELETE FROM staging.partitions WHERE dynamic_table = $1", t.Name)
	} else {
		batch.Queue("DELETE FROM staging.partitions WHERE dynamic_table = $1 AND run_id = ANY($2)", t.Name,
			append(c.ids(), c.gone...))
	}
	ids, versions := c.ids(), []int64{}
	for _, id := range ids {
		versions = append(versions, c.runs[id])
	}
	batch.Queue(`INSERT INTO staging.partitions (dynamic_table, run_id, run_version)
		SELECT $1, * FROM unnest($2::text[], $3::bigint[])`, t.Name, ids, versions)
	return tx.SendBatch(ctx, &batch).Close()
}

// Drop removes a derived table.
func (d *Database) Drop(ctx context.Context, name string) error {
	err := pgx.BeginFunc(ctx, d.owner, func(tx pgx.Tx) error {
		var batch pgx.Batch
		// A refresh that is about to commit ends first: afterwards it would make the table anew.
		batch.Queue("SELECT FROM staging.fences WHERE dynamic_table = $1 AND subtask = '' FOR UPDATE", name)
		batch.Queue("DROP TABLE IF EXISTS " + pgx.Identifier{"tables", name}.Sanitize())
		batch.Queue("DELETE FROM staging.contents WHERE dynamic_table = $1", name)
		batch.Queue("DELETE FROM staging.partitions WHERE dynamic_table = $1", name)
		return tx.SendBatch(ctx, &batch).Close()
	})
	return failed("dropping a derived table", err)
}
