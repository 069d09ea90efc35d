package snowflake

import (
	"slices"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// newSuffix ends the name of the table that is built in the place of an existing one
// until it is whole. No table of a user's has it: it is dropped if it is there.
const newSuffix = "__LOADSTONE_NEW"

// stagingTable is that table.
func stagingTable(name dialect.TableName) dialect.TableName { return name.Sibling(newSuffix) }

// swap puts the new table in the place of the old one, in one step of the account, and
// drops the old one. A server that cannot swap gets two steps.
func (m *ddlWriter) swap(cannot bool) []string {
	if cannot {
		return []string{"DROP TABLE " + m.final.SQL(), "ALTER TABLE " + m.name.SQL() + " RENAME TO " + m.final.SQL()}
	}
	return []string{"ALTER TABLE " + m.final.SQL() + " SWAP WITH " + m.name.SQL(), "DROP TABLE " + m.name.SQL()}
}

// dropImpact is what goes with a table that is made again.
type dropImpact struct {
	rows, clusterBy, searched string
	indexes                   int
	grantees                  []string
	// users are tables with foreign keys to it.
	users []string
}

// readDropImpact looks at what recreate would drop; nil while the host is being asked.
// Nothing that is asked needs a warehouse that runs.
func readDropImpact(req *jsondoc.Value, w *jsondoc.Writer, t *table) *dropImpact {
	schema := dialect.Quoted(t.name.Database.Text) + "." + dialect.Quoted(t.name.Schema.Text)
	show := sdk.ResultOf(req, "dropped")
	if !show.Asked {
		queries := []sdk.Query{
			{ID: "dropped", SQL: "SHOW TABLES LIKE " + dialect.Pattern(t.name.Table.Text) + " IN SCHEMA " + schema},
			{ID: "dependents", SQL: "SHOW IMPORTED KEYS IN SCHEMA " + schema},
		}
		if t.of == Hybrid {
			queries = append(queries, sdk.Query{ID: "indexes", SQL: "SHOW INDEXES IN TABLE " + t.name.SQL()})
		}
		if !missesAbility(req, noGrants) {
			queries = append(queries, sdk.Query{ID: "table_grants", SQL: "SHOW GRANTS ON TABLE " + t.name.SQL()})
		}
		sdk.Ask(w, queries...)
		return nil
	}
	d := &dropImpact{rows: "its rows", indexes: sdk.ResultOf(req, "indexes").Rows.Len()}
	for i := range show.Rows.Len() {
		if field(show, i, "name") != t.name.Table.Text {
			continue
		}
		for at, column := range show.Columns {
			if n, ok := show.Rows.At(i).At(at).Int(); ok && strings.EqualFold(column, "rows") {
				d.rows = strconv.FormatInt(n, 10) + " rows"
			}
		}
		d.clusterBy = field(show, i, "cluster_by")
		if strings.EqualFold(field(show, i, "search_optimization"), "ON") {
			d.searched = "its search optimization"
		}
	}
	grants := sdk.ResultOf(req, "table_grants")
	for i := range grants.Rows.Len() {
		if name := grantee(grants, i); !strings.EqualFold(field(grants, i, "privilege"), "OWNERSHIP") && name != "" &&
			!slices.Contains(d.grantees, name) {
			d.grantees = append(d.grantees, name)
		}
	}
	keys := sdk.ResultOf(req, "dependents")
	for i := range keys.Rows.Len() {
		user := field(keys, i, "fk_table_name")
		if field(keys, i, "pk_table_name") == t.name.Table.Text && user != t.name.Table.Text && user != "" &&
			!slices.Contains(d.users, user) {
			d.users = append(d.users, user)
		}
	}
	return d
}

// blockedReason says why a table is not dropped: others refer to it, and their keys cannot be put back.
func (d *dropImpact) blockedReason(name dialect.TableName) error {
	if len(d.users) == 0 {
		return nil
	}
	return &sdk.RefusalError{Field: "target.prepare.if_exists",
		Message: name.SQL() + " is used by foreign keys of " + listed(d.users) + ", so it is not dropped and made again",
		Hint:    "choose another name, or if_exists: use"}
}

// sentence names what is dropped.
func (d *dropImpact) sentence(name dialect.TableName) string {
	text := "With the old " + name.SQL() + " go: " + d.rows
	if d.indexes > 0 {
		text += ", indexes: " + strconv.Itoa(d.indexes)
	}
	if d.clusterBy != "" {
		text += ", its clustering by " + d.clusterBy
	}
	if d.searched != "" {
		text += ", " + d.searched
	}
	if len(d.grantees) > 0 {
		text += ", grants to " + strings.Join(d.grantees, ", ")
	}
	return text + "."
}
