// Package pgtable is what the adapter plugins for Postgres tables share: it
// inspects tables, writes their DDL and the SQL of statements, and sorts
// SQLSTATEs into error classes.
package pgtable

import (
	"errors"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// Adapter serves an adapter plugin for Postgres tables.
type Adapter struct {
	// Described is the plugin's manifest; driver, dialect and parameters are filled in.
	Described sdk.Manifest
	// Families: the instance is of a compute family, which a parameter names; those whose processors burst save credits.
	Families bool
}

const dialect = "postgres"

// What the queries read besides the run's tables, and call.
const (
	catalogs = "pg_catalog.pg_class pg_catalog.pg_namespace pg_catalog.pg_attribute pg_catalog.pg_type " +
		"pg_catalog.pg_index " +
		"pg_catalog.pg_constraint pg_catalog.pg_settings pg_catalog.pg_trigger pg_catalog.pg_policy " +
		"pg_catalog.pg_inherits pg_catalog.pg_depend pg_catalog.pg_rewrite pg_catalog.pg_attrdef pg_catalog.pg_proc " +
		"pg_catalog.pg_operator pg_catalog.pg_partitioned_table"
	functions = "pg_catalog.format_type pg_catalog.has_table_privilege pg_catalog.has_any_column_privilege " +
		"pg_catalog.has_schema_privilege pg_catalog.pg_has_role pg_catalog.pg_table_size pg_catalog.pg_table_is_visible " +
		"pg_catalog.pg_my_temp_schema pg_catalog.pg_get_userbyid pg_catalog.aclexplode pg_catalog.current_setting " +
		"pg_catalog.current_schema pg_catalog.pg_is_in_recovery pg_catalog.isfinite pg_catalog.encode " +
		"pg_catalog.pg_column_is_updatable pg_catalog.pg_get_expr pg_catalog.pg_get_indexdef pg_catalog.pg_get_triggerdef " +
		"pg_catalog.pg_get_partkeydef pg_catalog.pg_partition_tree pg_catalog.pg_partition_root " +
		"pg_catalog.to_jsonb array_to_string substr ceil sum octet_length clock_timestamp " +
		"unnest count min max least greatest row_number floor random generate_series coalesce nullif string_agg " +
		"quote_ident extract md5"
)

// settle has the server check at once what it would check at COMMIT.
const settle = "SET CONSTRAINTS ALL IMMEDIATE"

// Manifest describes the plugin.
func (a Adapter) Manifest() sdk.Manifest {
	m := a.Described
	m.Driver, m.Dialect, m.Observes = "postgres", dialect, true
	m.Sends = &sdk.Sends{
		Query: []string{"SELECT {reads " + catalogs + " " + functions + "}",
			"SELECT {reads " + observedViews + " " + observedFunctions + "}",
			"WITH RECURSIVE {reads base " + catalogs + " " + functions + "}",
			"SELECT 1 FROM {name} WHERE ({names}) IS NOT NULL LIMIT 1", // whether a row of another table refers to one
			"WITH " + leftPattern + " SELECT {reads " + functions + "}",
			"WITH " + leftPattern + ", " + rightPattern + ", " + pairsPattern + " SELECT {reads " + functions + "}"},
		Statements: []string{"SELECT {names} FROM {table} WHERE {reads}", "INSERT INTO {table} ({names}) VALUES ({reads})",
			"INSERT INTO {table} DEFAULT VALUES", "UPDATE {table} SET {reads}", "DELETE FROM {table} WHERE {reads}"},
		DDL: []string{"CREATE TABLE {table} ({*}) {*}", "CREATE INDEX ON {table} ({*})",
			"CREATE INDEX {name} ON {table} ({*})", "CREATE UNIQUE INDEX ON {table} ({*})",
			"CREATE UNIQUE INDEX {name} ON {table} ({*})", "ALTER TABLE {table} ADD PRIMARY KEY ({*})",
			"VACUUM (ANALYZE) {table}",
			"DROP TABLE {table}", "DROP TABLE IF EXISTS {table}", "ALTER TABLE {table} RENAME TO {table}",
			"ALTER TABLE {table} RENAME CONSTRAINT {name} TO {name}"},
		Session: []string{"SET TIME ZONE 'UTC'", settle, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {*}"},
	}
	m.Supports = &sdk.Supports{EnforcedKeys: true, Indexes: true, Transactions: true}
	families := ""
	if a.Families {
		families = `"compute_family":{"title":"Compute family","description":"COMPUTE_FAMILY of the instance: with BURST_… a run is DEGRADED when CPU credits run out.","type":"string","minLength":1,"maxLength":40},`
	}
	m.Parameters = `{"type":"object","additionalProperties":false,"properties":{"key":{"title":"Key columns","description":"Key columns, for views and tables without a primary key or unique index.","type":"array","minItems":1,"maxItems":32,"items":{"type":"string","minLength":1,"maxLength":63}},` +
		families + sdk.KeySampleParameter + `}}`
	return m
}

// Call answers one request.
func (a Adapter) Call(op string, req *jsondoc.Value, w *jsondoc.Writer) error {
	switch op {
	case "inspect":
		return inspect(req, w)
	case "ddl":
		return ddl(req, w)
	case "load":
		return load(req, w)
	case "statements":
		return statements(req, w)
	case "session":
		return session(req, w)
	case "preflight":
		return a.preflight(req, w)
	case "observe":
		return observe(req, w)
	case "classify_error":
		classes(w)
		return nil
	}
	return errors.New("the adapter " + a.Described.Name + " has no operation " + quoted(op))
}

// session answers what runs on every connect.
func session(req *jsondoc.Value, w *jsondoc.Writer) error {
	list := []string{"SET TIME ZONE 'UTC'"}
	level := req.Get("isolation_level").Str()
	switch level {
	case "":
	case "read uncommitted", "read committed", "repeatable read", "serializable":
		list = append(list, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "+level)
	default:
		return errors.New("Postgres has no isolation level " + quoted(level))
	}
	w.Object().Key("session").Strs(list)
	if level != "" {
		w.Key("isolation_level").Str(level)
	}
	w.EndObject()
	return nil
}

// classes maps SQLSTATEs and their prefixes; the longest match wins.
func classes(w *jsondoc.Writer) {
	w.Object().Key("classes").Object()
	for _, c := range [...][2]string{
		{"08", "connection"}, {"57P", "connection"}, {"3D", "connection"}, {"57014", "timeout"}, {"57P05", "timeout"},
		{"25P03", "timeout"}, {"25P04", "timeout"},
		{"28", "auth"}, {"42501", "auth"},
		{"42", "syntax"}, {"26", "syntax"}, {"34", "syntax"}, {"0A", "syntax"}, {"3F", "syntax"},
		{"23", "constraint"}, {"27", "constraint"}, {"44", "constraint"},
		{"40", "serialization"}, {"40002", "constraint"}, {"40P01", "deadlock"},
		{"55", "lock"}, {"53", "resource"}, {"53300", "throttled"}, {"54", "resource"}, {"58", "resource"},
		{"22", "data"}, {"21", "data"}, {"57", "cancelled"},
	} {
		w.Key(c[0]).Str(c[1])
	}
	w.EndObject().EndObject()
}
