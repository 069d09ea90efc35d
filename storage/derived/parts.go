package derived

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
)

// startDivision writes down which parts a table is refreshed in, and what it has taken account of when all are in
// place.
func (d *Database) startDivision(ctx context.Context, t refresh.Table, c refresh.Claim, columns []column, ch changeSet,
	parts []part, r refresh.Result, prove func(context.Context) error) (refresh.Result, error) {
	known := ids(ch.runs)
	versions, days := make([]int64, len(known)), make([]string, len(known))
	for i, id := range known {
		versions[i], days[i] = ch.runs[id].version, ch.runs[id].day
	}
	names, conditions := make([]string, len(parts)), make([]string, len(parts))
	for i, p := range parts {
		names[i], conditions[i] = p.name, p.condition
	}
	err := d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue("DELETE FROM staging.plans WHERE dynamic_table = $1", t.Name)
		batch.Queue(
			`INSERT INTO staging.plans (dynamic_table, epoch, definition_version, columns, partition_by, refresh_mode,
				note, keys, run_ids, run_versions, run_days, gone) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			t.Name,
			c.Epoch,
			definitionVersion(t),
			columnNames(columns),
			ch.mode,
			string(r.Mode),
			r.Note,
			ch.keys,
			known,
			versions,
			days,
			append([]string{}, ch.removed...),
		)
		batch.Queue(`INSERT INTO staging.parts (dynamic_table, part, epoch, condition)
			SELECT $1, p.name, $2, p.condition FROM unnest($3::text[], $4::text[]) AS p (name, condition)`, t.Name, c.Epoch,
			names, conditions)
		return tx.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return refresh.Result{}, wrapError("dividing the refresh of a derived table", err)
	}
	// The tables of an earlier division are of no use any more, now that it is forgotten.
	prefix, stage := stageName(c)
	return refresh.Result{Mode: r.Mode, Parts: names, ReplaceParts: true}, d.sweep(ctx, prefix, stage[1])
}

// division is a division that is under way.
type division struct {
	epoch   int64
	edition int64
	columns string
	mode    refresh.Mode
	note    string
	changes changeSet
}

// current reports whether a division is of the table as it is now.
func (p division) current(t refresh.Table, columns []column) bool {
	return p.edition == definitionVersion(t) && p.columns == columnNames(columns)
}

func (d *Database) loadDivision(ctx context.Context, table string) (p division, there bool, err error) {
	var known, days []string
	var versions []int64
	err = d.owner.QueryRow(
		ctx,
		`SELECT epoch, definition_version, columns, partition_by, refresh_mode, note, keys, run_ids,
		run_versions, run_days, gone FROM staging.plans WHERE dynamic_table = $1`,
		table,
	).Scan(
		&p.epoch,
		&p.edition,
		&p.columns,
		&p.changes.mode,
		&p.mode,
		&p.note,
		&p.changes.keys,
		&known,
		&versions,
		&days,
		&p.changes.removed,
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, wrapError("looking for the parts of a derived table", err)
	}
	p.changes.runs = map[string]seenRun{}
	for i, id := range known {
		p.changes.runs[id] = seenRun{versions[i], days[i]}
	}
	return p, true, nil
}

// finishDivision goes on with a division that is under way: all of its parts are put in place in one transaction, or
// those that are missing are named. A division of the table as it was before is left to the next one to forget.
func (d *Database) finishDivision(ctx context.Context, t refresh.Table, c refresh.Claim, columns []column,
	prove func(context.Context) error) (r refresh.Result, there bool, err error) {
	p, there, err := d.loadDivision(ctx, t.Name)
	if !there || err != nil {
		return r, false, err
	}
	if !p.current(t, columns) {
		return r, false, d.deleteDivision(ctx, c, prove)
	}
	rows, err := d.owner.Query(ctx, `SELECT part, coalesce(stage, ''), row_count, byte_count FROM staging.parts
		WHERE dynamic_table = $1 ORDER BY part`, t.Name)
	if err != nil {
		return r, false, wrapError("looking for the parts of a derived table", err)
	}
	var all []stagedRows
	var part string
	var one stagedRows
	var bytes int64
	_, err = pgx.ForEachRow(rows, []any{&part, &one.name, &one.rows, &bytes}, func() error {
		if one.name == "" {
			r.Parts = append(r.Parts, part)
		}
		all = append(all, one)
		r.Rows, r.Bytes = r.Rows+one.rows, r.Bytes+bytes
		return nil
	})
	if err != nil {
		return r, false, wrapError("looking for the parts of a derived table", err)
	}
	if r.Mode = p.mode; len(r.Parts) > 0 {
		return r, true, nil
	}
	r.Note = strings.TrimSpace(fmt.Sprintf("%s It was made in %d parts.", p.note, len(all)))
	err = d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
		return d.replace(ctx, tx, t, columns, p.changes, p.mode, all...)
	})
	if err = wrapError("putting the parts of a derived table in place", dependencyError(err, t.Name)); err != nil {
		if ctx.Err() == nil && !errors.Is(err, store.ErrClaimLost) && !errors.Is(err, store.ErrUnavailable) {
			// What was gathered is of no use: the next claim begins anew.
			err = errors.Join(err, d.deleteDivision(ctx, c, prove))
		}
		return refresh.Result{}, true, err
	}
	for _, one := range all {
		d.unstage(ctx, one)
	}
	return r, true, nil
}

// deleteDivision forgets a division, before what was gathered for it is removed.
func (d *Database) deleteDivision(ctx context.Context, c refresh.Claim, prove func(context.Context) error) error {
	err := d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM staging.plans WHERE dynamic_table = $1", c.Table)
		return err
	})
	return wrapError("forgetting the parts of a derived table", err)
}

// stagePart gathers the rows of a part. They stay until all parts are there.
func (d *Database) stagePart(ctx context.Context, t refresh.Table, c refresh.Claim, columns []column,
	prove func(context.Context) error) (r refresh.Result, err error) {
	// Readers see nothing of it yet.
	r.Unchanged = true
	p, there, err := d.loadDivision(ctx, t.Name)
	if err != nil {
		return r, err
	}
	if r.Mode = p.mode; !there || !p.current(t, columns) {
		r.Gone = true
		return r, nil
	}
	var condition string
	var done bool
	err = d.owner.QueryRow(ctx, `SELECT condition, stage IS NOT NULL, row_count, byte_count FROM staging.parts
		WHERE dynamic_table = $1 AND part = $2 AND epoch = $3`, t.Name, c.Subtask, p.epoch).Scan(&condition, &done, &r.Rows,
		&r.Bytes)
	if errors.Is(err, pgx.ErrNoRows) {
		r.Gone = true
		return r, nil
	}
	// Whoever did it before could not say so any more.
	if err != nil || done {
		return r, wrapError("looking for a part of a derived table", err)
	}
	stage, err := d.stage(ctx, c, columns, wrapDefinition(t.Definition)+"\nWHERE "+condition, &r)
	if err == nil {
		err = d.withFence(ctx, c, prove, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `UPDATE staging.parts SET stage = $4, row_count = $5, byte_count = $6
				WHERE dynamic_table = $1 AND part = $2 AND epoch = $3`, t.Name, c.Subtask, p.epoch, stage.name, r.Rows, r.Bytes)
			if err == nil && tag.RowsAffected() == 0 {
				return claimLostError(c)
			}
			return err
		})
	}
	if err != nil {
		d.unstage(ctx, stage)
		return refresh.Result{}, wrapError("making a part of a derived table", err)
	}
	return r, nil
}
