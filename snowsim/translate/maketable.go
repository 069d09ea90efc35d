package translate

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// makeTable creates a table in the transaction of conn.
func makeTable(ctx context.Context, a *Account, conn *pgx.Conn, n objectName, d *tableDDL) error {
	table := &tableEntry{name: n, tableType: tableType(d.Kind), tableMeta: d.tableMeta}
	var statements []string
	if d.replace {
		statements = append(statements, "DROP TABLE IF EXISTS "+n.postgres()+" CASCADE")
	}
	statements = append(statements, d.sequences...)
	if len(d.definitions) > 0 {
		statements = append(statements, "CREATE TABLE "+n.postgres()+" ("+strings.Join(d.definitions, ", ")+")")
	} else {
		statements = append(statements, "CREATE TABLE "+n.postgres()+" AS "+d.query+" WITH NO DATA")
	}
	if err := execAll(ctx, conn, append(statements, d.owned...)...); err != nil {
		return err
	}
	if err := table.fillColumns(ctx, conn, a.displayName); err != nil {
		return Error(err)
	}
	var after []string
	for i, c := range table.Columns {
		if c.Nullable && slices.ContainsFunc(table.Keys, func(k keyMeta) bool {
			return k.Kind == "PRIMARY KEY" &&
				slices.Contains(k.Columns, c.Name)
		}) {
			table.Columns[i].Nullable = false // the one half of a primary key that every table enforces
			after = append(after, "ALTER TABLE "+n.postgres()+" ALTER COLUMN "+quote(c.Postgres)+" SET NOT NULL")
		}
		if d.query != "" && c.Type == "NUMBER" && c.Scale == 0 &&
			c.Precision == 38 { // integers of Postgres become NUMBER(38,0), as bound numbers are
			after = append(after, "ALTER TABLE "+n.postgres()+" ALTER COLUMN "+quote(c.Postgres)+" TYPE numeric(38,0)")
		}
	}
	if d.query != "" {
		after = append(after, "INSERT INTO "+n.postgres()+" "+d.query)
	}
	after = append(after, indexes(table)...)
	if err := execAll(ctx, conn, after...); err != nil {
		return err
	}
	if err := writeTable(ctx, conn, table); err != nil {
		return Error(err)
	}
	a.tables.cache(table)
	return nil
}

// indexes returns the Postgres indexes of a table: those of a hybrid table, and
// for others one that stands for the pruning of micro-partitions.
func indexes(t *tableEntry) []string {
	var all []string
	add := func(name string, unique bool, columns, include []string) {
		sql := "CREATE "
		if unique {
			sql += "UNIQUE "
		}
		sql += "INDEX " + quote(shortName(t.name.object+"~"+name)) + " ON " + t.name.postgres() + " (" +
			quoteAll(columns) + ")"
		if len(include) > 0 {
			sql += " INCLUDE (" + quoteAll(include) + ")"
		}
		all = append(all, sql)
	}
	for _, i := range t.Indexes {
		add(i.Name, i.Unique, i.Columns, i.Include)
	}
	indexable := func(columns []string) bool {
		return len(columns) > 0 && !slices.ContainsFunc(columns, func(name string) bool {
			return !slices.ContainsFunc(t.Columns, func(c columnMeta) bool {
				return c.Name == name && c.Type != "VARIANT" && c.Type != "OBJECT" && c.Type != "ARRAY" && c.Type != "BINARY"
			})
		})
	}
	if indexable(t.ClusterKeys) {
		add("cluster", false, t.ClusterKeys, nil)
	}
	for _, k := range t.Keys {
		if k.Kind == "PRIMARY KEY" && !k.Enforced && indexable(k.Columns) && !slices.Equal(k.Columns, t.ClusterKeys) {
			add("key", false, k.Columns, nil)
		}
	}
	return all
}
