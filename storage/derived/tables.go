package derived

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// Materialize refreshes an SQL table: the rows of its definition, read by the reader, replace those that are there,
// all or those of the runs or days that have changed. Whoever reads the table sees the old rows or the new ones. Where
// much is to be made anew, the result names parts, which are refreshed by themselves; the table's next claim puts all
// of them in place.
func (d *Database) Materialize(ctx context.Context, t refresh.Table, c refresh.Claim,
	prove func(context.Context) error) (r refresh.Result, err error) {
	if err := d.Begin(ctx, c); err != nil {
		return r, err
	}
	if _, err := d.readerRights(ctx); engine.HasCode(err, engine.CodeConflict) {
		// Nothing is wrong with the table, and its failures are counted.
		e := *engine.AsError(err)
		e.Code = engine.CodeUnavailable
		return r, &e
	}
	columns, err := d.describe(ctx, t.Definition)
	if err != nil {
		return r, err
	}
	if c.Subtask != "" {
		return d.stagePart(ctx, t, c, columns, prove)
	}
	if r, there, err := d.finishDivision(ctx, t, c, columns, prove); there || err != nil {
		return r, err
	}
	changes, r, err := d.changes(ctx, t, c, columns)
	if err != nil {
		return r, err
	}
	if r.Mode == refresh.Incremental && len(changes.removed)+len(changes.runs) == 0 {
		r.Unchanged = true
		return r, nil
	}
	if parts := changes.parts(r.Mode, t.Partitions, d.Settings.PartitionsPerPart); len(parts) > 1 {
		return d.startDivision(ctx, t, c, columns, changes, parts, r, prove)
	}
	query := wrapDefinition(t.Definition)
	if r.Mode == refresh.Incremental {
		query += "\nWHERE " + changes.condition()
	}
	stage, err := d.stage(ctx, c, columns, query, &r)
	defer func() { d.unstage(ctx, stage) }()
	if err == nil {
		err = d.reachStep(stepRead)
	}
	if err != nil {
		return refresh.Result{}, err
	}
	err = d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
		if err := d.replace(ctx, tx, t, columns, changes, r.Mode, stage); err != nil {
			return err
		}
		return d.reachStep(stepReplaced)
	})
	if err == nil {
		err = d.reachStep(stepReady)
	}
	return r, wrapError("replacing the rows of a derived table", dependencyError(err, t.Name))
}

// column is one of a derived table.
type column struct{ name, typ string }

func columnNames(columns []column) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pgx.Identifier{c.name}.Sanitize() + " " + c.typ)
	}
	return b.String()
}

// systemColumns are those of every table of Postgres, whose names no other column has.
var systemColumns = []string{"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"}

// describe says which columns a definition has, as the reader sees it. Nothing of it is executed.
func (d *Database) describe(ctx context.Context, definition string) ([]column, error) {
	if err := d.checkStatement(ctx, "definition", definition); err != nil {
		return nil, err
	}
	conn, err := d.reader.Acquire(ctx)
	if err != nil {
		return nil, wrapError("asking the results database", err)
	}
	defer conn.Release()
	// An empty name is that of the unnamed statement: one statement, and gone with the next.
	about, err := conn.Conn().PgConn().Prepare(ctx, "", wrapDefinition(definition), nil)
	if err != nil {
		return nil, definitionError(err, definition)
	}
	if len(about.ParamOIDs) > 0 {
		return nil, engine.InvalidField("definition", "has parameters", "write values in their place")
	}
	if len(about.Fields) == 0 || len(about.Fields) > maxColumns {
		return nil, engine.InvalidField("definition", fmt.Sprintf("has %d columns", len(about.Fields)),
			fmt.Sprintf("a table has 1 to %d", maxColumns))
	}
	oids, modifiers := make([]uint32, len(about.Fields)), make([]int32, len(about.Fields))
	for i, f := range about.Fields {
		oids[i], modifiers[i] = f.DataTypeOID, f.TypeModifier
	}
	var types []string
	var pseudo, rows []bool
	// What a type is made of: of domains what they are of, of arrays their elements.
	err = conn.QueryRow(
		ctx,
		`WITH RECURSIVE f AS (SELECT * FROM unnest($1::oid[], $2::integer[]) WITH ORDINALITY AS f (o, m, i)),
			made AS (SELECT i, o FROM f UNION
				SELECT i, CASE typtype WHEN 'd' THEN typbasetype ELSE typelem END FROM made JOIN pg_type t ON t.oid = o
				WHERE typtype = 'd' OR typelem <> 0)
		SELECT array_agg(format_type(t.oid, m) ORDER BY i), array_agg(typtype = 'p' ORDER BY i),
			array_agg(EXISTS (SELECT FROM made JOIN pg_type p ON p.oid = made.o WHERE made.i = f.i AND p.typtype = 'c') ORDER BY i)
		FROM f JOIN pg_type t ON t.oid = f.o`,
		oids,
		modifiers,
	).Scan(
		&types,
		&pseudo,
		&rows,
	)
	if err == nil && len(types) != len(about.Fields) {
		err = errors.New("a type is gone")
	}
	if err != nil {
		return nil, wrapError("asking the results database", err)
	}
	var columns []column
	for i, f := range about.Fields {
		if slices.ContainsFunc(columns, func(c column) bool { return c.name == f.Name }) {
			return nil, engine.InvalidField("definition", fmt.Sprintf("has two columns named %q", f.Name),
				"give one of them another name: … AS name")
		}
		if slices.Contains(systemColumns, f.Name) {
			return nil, engine.InvalidField("definition", fmt.Sprintf("has a column named %q, as each table has one of its own",
				f.Name), "give it another name: … AS name")
		}
		if pseudo[i] {
			return nil, engine.InvalidField("definition", fmt.Sprintf("has a column %q of the type %s, which no table can hold",
				f.Name, types[i]), "leave it out")
		}
		if rows[i] {
			// A table of which other tables have rows in a column can never get other columns.
			return nil, engine.InvalidField("definition", fmt.Sprintf("has a column %q of whole rows (%s)", f.Name, types[i]),
				"name the columns of these rows, or write to_jsonb(…) around them")
		}
		columns = append(columns, column{f.Name, types[i]})
	}
	return columns, nil
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
		batch.Queue("DELETE FROM staging.plans WHERE dynamic_table = $1", name)
		return tx.SendBatch(ctx, &batch).Close()
	})
	return wrapError("dropping a derived table", dependencyError(err, name))
}

// HasTable reports whether there is a derived table of that name.
func (d *Database) HasTable(ctx context.Context, name string) (there bool, err error) {
	err = d.owner.QueryRow(ctx, "SELECT EXISTS (SELECT FROM staging.contents WHERE dynamic_table = $1)", name).Scan(&there)
	return there, wrapError("looking for a derived table", err)
}
