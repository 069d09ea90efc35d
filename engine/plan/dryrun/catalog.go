package dryrun

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// maxColumns bounds what a catalog lists.
const maxColumns = 5_000

// catalogQuery is the SQL standard's: what it lists is what the user may see.
const catalogQuery = `SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
WHERE upper(table_schema) NOT IN ('INFORMATION_SCHEMA', 'PG_CATALOG') ORDER BY table_schema, table_name, ordinal_position LIMIT 5001`

// RelationCatalog is the tables and views that a connection's user sees.
type RelationCatalog struct {
	Relations []CatalogRelation `json:"relations"`
	// Truncated: there are more.
	Truncated bool `json:"truncated"`
}

// CatalogRelation is a table or a view.
type CatalogRelation struct {
	Schema  string          `json:"schema"`
	Name    string          `json:"name"`
	Columns []CatalogColumn `json:"columns"`
}

// CatalogColumn is a column of it.
type CatalogColumn struct {
	Name string `json:"name"`
	// Type is as the database writes it, in lower case: numeric(10,2), integer[]; of a domain the type under it.
	Type string `json:"type"`
	// Values are all that a column of an enumeration can hold.
	Values []string `json:"values,omitempty"`
	// Generated is "always" where only the database makes values, "default" where it makes those that are left out.
	Generated string `json:"generated,omitempty"`
	// Key: it is the primary key of its table by itself.
	Key bool `json:"key,omitempty"`
}

// Catalog lists what a connection's user sees.
func (b *Runner) Catalog(ctx context.Context, ref engine.ConnectionRef) (RelationCatalog, error) {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	out := RelationCatalog{Relations: []CatalogRelation{}}
	name, dsn, err := b.Deps.Connections.OpenDSN(ctx, ref)
	if err != nil {
		return out, err
	}
	driver := b.Deps.Drivers[name]
	if driver == nil {
		return out, engine.InvalidField("connection", fmt.Sprintf("there is no driver %q", name), "")
	}
	database, err := driver.Open(target.Config{DSN: dsn, ApplicationName: "loadstone catalog"})
	if err != nil {
		return out, err
	}
	defer func() { _ = database.Close() }()
	if _, err := database.Check(ctx); err != nil {
		return out, err // it says what is wrong with the connection
	}
	columns, err := columnsOf(ctx, database)
	if err != nil {
		said := database.Classify(err)
		return out, &engine.Error{Code: engine.CodeTarget, Message: "The tables could not be listed: " + said.Message,
			Cause: err}
	}
	for i, c := range columns {
		if out.Truncated = i == maxColumns; out.Truncated {
			break
		}
		last := len(out.Relations) - 1
		if last < 0 || out.Relations[last].Schema != c.Schema || out.Relations[last].Name != c.Relation {
			out.Relations = append(out.Relations,
				CatalogRelation{Schema: c.Schema, Name: c.Relation, Columns: []CatalogColumn{}})
			last++
		}
		out.Relations[last].Columns = append(out.Relations[last].Columns, CatalogColumn{Name: c.Name,
			Type: strings.ToLower(c.Type.Name), Values: c.Type.Values, Generated: c.Generated, Key: c.Key})
	}
	return out, nil
}

// columnsOf lists the columns, one more than are shown where there are more. A database that does not
// describe itself, or cannot, is asked as the standard has it.
func columnsOf(ctx context.Context, database target.Database) ([]target.DescribedColumn, error) {
	if d, ok := database.(target.Describer); ok {
		if list, err := d.Columns(ctx, maxColumns+1); err == nil || ctx.Err() != nil {
			return list, err
		}
	}
	rs, err := target.Read(ctx, database, catalogQuery, statementTimeout)
	if err != nil {
		return nil, fmt.Errorf("listing columns: %w", err)
	}
	list := make([]target.DescribedColumn, 0, len(rs.Rows))
	for _, row := range rs.Rows {
		cells := make([]string, len(row))
		for k, v := range row {
			if text := textOf(v); text != nil {
				cells[k] = *text
			}
		}
		if len(cells) != 4 {
			continue
		}
		list = append(list, target.DescribedColumn{Schema: cells[0], Relation: cells[1], Name: cells[2],
			Type: target.DescribedType{Name: cells[3]}})
	}
	return list, nil
}
