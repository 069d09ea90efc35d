package derived

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/ingest"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// changeSet are the runs that a table does not have as they are now, and the partitions that are made anew for it:
// these runs, or the days on which they began.
type changeSet struct {
	mode    string // refresh.ByRun, refresh.ByDay, or "" where rows belong to no partition
	runs    map[string]seenRun
	removed []string
	// keys are the partitions, each run's id or day, "" for runs that have not begun on any.
	keys []string
}

// seenRun is a run as a table has taken account of it.
type seenRun struct {
	version int64
	day     string
}

// condition is true of the rows of the partitions that are made anew.
func (c changeSet) condition() string { return condition(c.mode, c.keys) }

func condition(by string, keys []string) string {
	if by != refresh.ByDay {
		return "run_id = ANY (" + textArray(keys) + ")"
	}
	days := slices.DeleteFunc(slices.Clone(keys), func(day string) bool { return day == "" })
	text := "day = ANY (" + textArray(days) + "::date[])"
	if len(days) < len(keys) {
		text = "(" + text + " OR day IS NULL)"
	}
	return text
}

// changes decides between all rows and those of changed runs or days, and says why.
func (d *Database) changes(ctx context.Context, t refresh.Table, held refresh.Claim, columns []column) (c changeSet,
	r refresh.Result, err error) {
	c.runs = map[string]seenRun{}
	rows, err := d.owner.Query(ctx, `SELECT coalesce(r.run_id, p.run_id), coalesce(r.version, 0), r.run_id IS NULL,
			r.version IS DISTINCT FROM p.run_version,
			coalesce(to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), ''), coalesce(p.day, '')
		FROM (SELECT * FROM rollup.runs WHERE NOT provisional) r FULL JOIN (SELECT * FROM staging.partitions WHERE dynamic_table = $1) p USING (run_id)
		ORDER BY 1`, t.Name)
	if err != nil {
		return c, r, wrapError("looking which runs have changed", err)
	}
	var id, before string
	var run seenRun
	var gone, changed bool
	all, days := map[string]seenRun{}, map[string]bool{}
	_, err = pgx.ForEachRow(rows, []any{&id, &run.version, &gone, &changed, &run.day, &before}, func() error {
		switch {
		case gone:
			c.removed = append(c.removed, id)
			days[before] = true
		case changed:
			c.runs[id] = run
			days[run.day], days[before] = true, true
		}
		if !gone {
			all[id] = run
		}
		return nil
	})
	if err != nil {
		return c, r, wrapError("looking which runs have changed", err)
	}
	r.Mode, r.Note, c.mode, err = d.mode(ctx, t, held, columns)
	if r.Mode == refresh.Full {
		c.runs, c.removed, days = all, nil, map[string]bool{}
		for _, run := range all {
			days[run.day] = true
		}
	}
	switch c.mode {
	case refresh.ByRun:
		c.keys = append(ids(c.runs), c.removed...)
	case refresh.ByDay:
		for day := range days {
			c.keys = append(c.keys, day)
		}
	}
	slices.Sort(c.keys)
	return c, r, err
}

func ids(runs map[string]seenRun) []string {
	ids := make([]string, 0, len(runs))
	for id := range runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// partitionKey says which partitions the rows of a table belong to, or which column is missing for that.
func partitionKey(t refresh.Table, columns []column) (by, lacks string) {
	has := func(name, typ string) bool {
		return slices.ContainsFunc(columns, func(c column) bool { return c.name == name && (typ == "" || c.typ == typ) })
	}
	switch {
	case t.PartitionBy == refresh.ByRun && !has("run_id", ""):
		return "", "no column run_id"
	case t.PartitionBy == refresh.ByDay && !has("day", "date"):
		return "", "no column day of the type date"
	}
	return t.PartitionBy, ""
}

// nonRollupSource is a table that t reads beside the roll-ups, "" where there is none. Which of its rows have changed
// since t was made from them cannot be told from the runs: it may not have had a run yet, or may have another
// definition now.
func nonRollupSource(t refresh.Table) string {
	for _, source := range t.Sources {
		if source != ingest.Table {
			return source
		}
	}
	return ""
}

// definitionVersion tells a definition, and what its rows depend on, from others. A version would not do: a table that
// is dropped and made again, or a control store that was restored, counts anew.
func definitionVersion(t refresh.Table) int64 {
	sum := sha256.Sum256([]byte(t.PartitionBy + "\x00" + t.Definition))
	return int64(binary.BigEndian.Uint64(sum[:8]) | 1)
}

// CheckMode refuses a table that is to be refreshed INCREMENTAL, or in parts, and whose rows belong to no partition:
// AUTO would make all of it anew, and say so with each refresh.
func (d *Database) CheckMode(ctx context.Context, t refresh.Table) error {
	if t.Mode != refresh.Incremental && t.Partitions < 2 {
		return nil
	}
	if other := nonRollupSource(t); other != "" && t.Mode == refresh.Incremental {
		return engine.InvalidField("refresh_mode",
			fmt.Sprintf("is INCREMENTAL, and the definition reads the table %q", other),
			"choose AUTO, which makes all rows anew then, or read the roll-ups in its place")
	}
	columns, err := d.describe(ctx, t.Definition)
	if err != nil {
		return err
	}
	if _, lacks := partitionKey(t, columns); lacks != "" {
		return engine.InvalidField("partition_by", "is "+t.PartitionBy+", and the definition has "+lacks,
			"select that column, or choose AUTO without partitions, which makes all rows anew")
	}
	return nil
}

// mode says how much of a table is made anew, why not less, and which partitions its rows belong to. What is left of
// refreshes that ended midway is removed.
func (d *Database) mode(ctx context.Context, t refresh.Table, c refresh.Claim, columns []column) (m refresh.Mode,
	note, by string, err error) {
	var known int64
	var shape string
	var left bool
	prefix, stage := stageName(c)
	err = d.owner.QueryRow(ctx, `SELECT coalesce(max(definition_version), 0), coalesce(max(columns), ''),
			EXISTS (SELECT FROM pg_class WHERE relname >= $2::text::name AND relname < $3::text::name AND relkind = 'r')
		FROM staging.contents WHERE dynamic_table = $1`, t.Name, prefix, stage[1]).Scan(&known, &shape, &left)
	if err == nil && left {
		err = d.sweep(ctx, prefix, stage[1])
	}
	if err != nil {
		return m, "", "", wrapError("looking what a derived table holds", err)
	}
	by, lacks := partitionKey(t, columns)
	if lacks != "" && t.Mode != refresh.Full {
		note = "FULL: it has " + lacks + "."
	} else if by == "" && t.Mode != refresh.Full {
		note = "FULL: its rows do not belong to one run or day each."
	}
	other := nonRollupSource(t)
	switch {
	case t.Mode == refresh.Full || by == "":
	case other != "":
		note = fmt.Sprintf("FULL: it reads the table %q; which runs have changed is known of the roll-ups alone.", other)
	case known == 0:
		note = "FULL: it is made for the first time."
	case known != definitionVersion(t) || shape != columnNames(columns):
		note = "FULL: its definition or the columns that it reads have changed."
	default:
		return refresh.Incremental, "", by, nil
	}
	return refresh.Full, note, by, nil
}

// stagedRows are rows that are to be put in place, and how many there are: the content of a table, or what COPY wrote.
type stagedRows struct {
	name    string
	content []byte
	rows    int64
}

func (s stagedRows) table() pgx.Identifier { return pgx.Identifier{"staging", s.name} }

// insertInto puts the rows into a table.
func (s stagedRows) insertInto(ctx context.Context, tx pgx.Tx, table string) (pgconn.CommandTag, error) {
	if s.name == "" {
		return tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(s.content), "COPY "+table+" FROM STDIN (FORMAT binary)")
	}
	return tx.Exec(ctx, "INSERT INTO "+table+" SELECT * FROM "+s.table().Sanitize())
}

// replace puts what was staged in the place of what is there.
func (d *Database) replace(ctx context.Context, tx pgx.Tx, t refresh.Table, columns []column, c changeSet,
	mode refresh.Mode, from ...stagedRows) error {
	table := pgx.Identifier{"tables", t.Name}.Sanitize()
	var shape string
	err := tx.QueryRow(ctx, "SELECT columns FROM staging.contents WHERE dynamic_table = $1", t.Name).Scan(&shape)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if shape != columnNames(columns) {
		if _, err := tx.Exec(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "CREATE TABLE "+table+" ("+columnNames(columns)+")"); err != nil {
			return err
		}
	}
	// Rows are deleted and inserted, not the table exchanged: no reader waits, and each sees one state.
	deletion := "DELETE FROM " + table
	if mode == refresh.Incremental {
		deletion += " WHERE " + c.condition()
	}
	if _, err := tx.Exec(ctx, deletion); err != nil {
		return err
	}
	for _, stage := range from {
		tag, err := stage.insertInto(ctx, tx, table)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != stage.rows {
			return fmt.Errorf("%d rows were gathered for %s, and %d are there", stage.rows, t.Name, tag.RowsAffected())
		}
	}
	return d.recordChanges(ctx, tx, t, columns, c, mode)
}

// recordChanges keeps what a table has taken account of.
func (d *Database) recordChanges(ctx context.Context, tx pgx.Tx, t refresh.Table, columns []column, c changeSet,
	mode refresh.Mode) error {
	var batch pgx.Batch
	batch.Queue(`INSERT INTO staging.contents (dynamic_table, definition_version, columns) VALUES ($1, $2, $3)
		ON CONFLICT (dynamic_table) DO UPDATE SET definition_version = $2, columns = $3`, t.Name, definitionVersion(t), columnNames(columns))
	if mode == refresh.Full {
		batch.Queue("DELETE FROM staging.partitions WHERE dynamic_table = $1", t.Name)
	} else {
		batch.Queue("DELETE FROM staging.partitions WHERE dynamic_table = $1 AND run_id = ANY($2)", t.Name,
			append(ids(c.runs), c.removed...))
	}
	known := ids(c.runs)
	versions, days := make([]int64, len(known)), make([]string, len(known))
	for i, id := range known {
		versions[i], days[i] = c.runs[id].version, c.runs[id].day
	}
	batch.Queue(`INSERT INTO staging.partitions (dynamic_table, run_id, run_version, day)
		SELECT $1, * FROM unnest($2::text[], $3::bigint[], $4::text[])`, t.Name, known, versions, days)
	batch.Queue("DELETE FROM staging.plans WHERE dynamic_table = $1", t.Name)
	return tx.SendBatch(ctx, &batch).Close()
}

// maxParts is how many parts a table is divided into at most, unless it names a number itself.
const maxParts = 16

// part is one of the pieces of a table that are refreshed by themselves.
type part struct {
	name      string
	condition string
}

// parts divides the partitions that are made anew into ranges of them: into so many as the table names, or, for 0, as
// are worth it, of at least so many partitions each. Of all of a table the last part has the rows, too, that belong to none.
func (c changeSet) parts(mode refresh.Mode, named, least int) []part {
	n := min(len(c.keys)/least, maxParts)
	if named > 0 {
		n = min(len(c.keys), named)
	}
	if n < 2 || c.mode == "" {
		return nil
	}
	parts := make([]part, n)
	for i := range parts {
		keys := c.keys[len(c.keys)*i/n : len(c.keys)*(i+1)/n]
		parts[i] = part{fmt.Sprintf("part %02d of %02d", i+1, n), condition(c.mode, keys)}
	}
	if mode == refresh.Full {
		last := &parts[n-1]
		last.condition = strings.Join([]string{last.condition, "(" + condition(c.mode, c.keys) + ") IS NOT TRUE"}, " OR ")
	}
	return parts
}
