package pgtable

import (
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// stagingTable is the table that is built in the place of an existing one, until it is
// whole: the old one is dropped and the new one renamed in one transaction.
func stagingTable(f foundTable) tableName {
	return tableName{schema: f.name.schema, table: "loadstone_new_" + f.oid, exact: true}
}

// shortened leaves room for a suffix in a name.
func shortened(name string) string {
	const room = 40
	if len(name) <= room {
		return name
	}
	cut := room
	for cut > 0 && name[cut]&0xC0 == 0x80 {
		cut--
	}
	return name[:cut]
}

// dropImpact is what goes with a table.
type dropImpact struct {
	rows                        string
	indexes, triggers, policies int64
	grants                      string
}

// dropImpactQueries ask what goes with the table, and what would be broken without it.
func dropImpactQueries(f foundTable) []sdk.Query {
	oid := f.oid + "::oid"
	return []sdk.Query{
		{ID: "dropped", SQL: `SELECT (SELECT count(*)::text FROM (SELECT 1 FROM ` + f.name.sql() + ` LIMIT 1000001) AS s),
 (SELECT count(*)::text FROM pg_catalog.pg_index WHERE indrelid = ` + oid + `),
 (SELECT count(*)::text FROM pg_catalog.pg_trigger WHERE tgrelid = ` + oid + ` AND NOT tgisinternal),
 (SELECT count(*)::text FROM pg_catalog.pg_policy WHERE polrelid = ` + oid + `),
 (SELECT coalesce(string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.pg_get_userbyid(a.grantee)::text END, ', '), '') FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) AS a WHERE c.oid = ` + oid + ` AND a.grantee <> c.relowner),
 (SELECT count(*)::text FROM pg_catalog.pg_inherits WHERE inhparent = ` + oid + ` OR inhrelid = ` + oid + `)`,
			TimeoutMs: countTimeout},
		{
			ID: "dependents",
			SQL: `SELECT 'the foreign key ' || quote_ident(k.conname) || ' of ' || k.conrelid::regclass::text FROM pg_catalog.pg_constraint k WHERE k.confrelid = ` + oid + ` AND k.contype = 'f' AND k.conrelid <> k.confrelid
UNION SELECT CASE v.relkind WHEN 'm' THEN 'the materialized view ' ELSE 'the view ' END || v.oid::regclass::text FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_catalog.pg_rewrite'::regclass
 JOIN pg_catalog.pg_class v ON v.oid = r.ev_class WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = ` + oid + ` AND v.oid <> ` + oid + `
ORDER BY 1 LIMIT 20`,
		},
	}
}

// readDropImpact looks at what recreate would drop; nil while the host is being asked.
// What cannot be put back (partitions, views and foreign keys of others) is refused.
func readDropImpact(req *jsondoc.Value, w *jsondoc.Writer, f foundTable) (*dropImpact, error) {
	const field, keep = "target.prepare.if_exists", "choose another name, or if_exists: use"
	refuse := func(why string) error {
		return &sdk.RefusalError{Field: field, Message: f.name.sql() + " " + why + ", so it is not dropped and made again",
			Hint: keep}
	}
	switch f.kind {
	case "p":
		return nil, refuse("is partitioned")
	case "v", "m", "f":
		return nil, refuse("is not an ordinary table")
	}
	r := sdk.ResultOf(req, "dropped")
	if !r.Asked {
		sdk.Ask(w, dropImpactQueries(f)...)
		return nil, nil
	}
	row := r.Rows.At(0)
	if n, _ := row.At(5).Int(); n > 0 {
		return nil, refuse("is a partition, or inherits")
	}
	var names []string
	others := sdk.ResultOf(req, "dependents").Rows
	for i := 0; i < others.Len(); i++ {
		names = append(names, others.At(i).At(0).Str())
	}
	if len(names) > 0 {
		return nil, refuse("is used by " + strings.Join(names, ", "))
	}
	d := &dropImpact{rows: "its rows", grants: row.At(4).Str()}
	if n, ok := row.At(0).Int(); ok && r.Err == "" {
		d.rows = strconv.FormatInt(n, 10) + " rows"
		if n > 1_000_000 {
			d.rows = "more than 1000000 rows"
		}
	}
	d.indexes, _ = row.At(1).Int()
	d.triggers, _ = row.At(2).Int()
	d.policies, _ = row.At(3).Int()
	return d, nil
}

// sentence names what is dropped.
func (d *dropImpact) sentence(name tableName) string {
	text := "With the old " + name.sql() + " go: " + d.rows
	for _, part := range []struct {
		n    int64
		what string
	}{{d.indexes, "indexes"}, {d.triggers, "triggers"}, {d.policies, "policies"}} {
		if part.n > 0 {
			text += ", " + part.what + ": " + strconv.FormatInt(part.n, 10)
		}
	}
	if d.grants != "" {
		text += ", grants to " + d.grants
	}
	return text + "."
}
