package tryout

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// mostColumns bounds what a catalog lists.
const mostColumns = 5_000

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
	Type string `json:"type"`
}

// Catalog lists what a connection's user sees.
func (b *Bench) Catalog(ctx context.Context, ref engine.ConnectionRef) (RelationCatalog, error) {
	ctx, cancel := context.WithTimeout(ctx, wholeLimit)
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
	rs, err := target.Read(ctx, database, catalogQuery, statementLimit)
	if err != nil {
		said := database.Classify(err)
		return out, &engine.Error{Code: engine.CodeTarget, Message: "The tables could not be listed: " + said.Message,
			Cause: err}
	}
	for i, row := range rs.Rows {
		if out.Truncated = i == mostColumns; out.Truncated {
			break
		}
		cells := make([]string, len(row))
		for k, v := range row {
			if text := plain(v); text != nil {
				cells[k] = *text
			}
		}
		if len(cells) != 4 {
			continue
		}
		last := len(out.Relations) - 1
		if last < 0 || out.Relations[last].Schema != cells[0] || out.Relations[last].Name != cells[1] {
			out.Relations = append(out.Relations, CatalogRelation{Schema: cells[0], Name: cells[1], Columns: []CatalogColumn{}})
			last++
		}
		out.Relations[last].Columns = append(out.Relations[last].Columns, CatalogColumn{Name: cells[2],
			Type: strings.ToLower(cells[3])})
	}
	return out, nil
}
