// Package snowflake is what the adapter plugins for Snowflake's table types
// share. A plugin is a thin main over one TableType.
//
// Names follow Snowflake: what is not quoted is upper case. SQL is written with
// quoted identifiers and ? for parameters; values never become part of its text,
// except as literals of SHOW commands, which take no parameters.
package snowflake

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/plugins/adapters/snowflake/dialect"
	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// TableType is a type of Snowflake table.
type TableType int

// The types of table. Snowflake Postgres is Postgres, and has its own adapter.
const (
	Standard TableType = iota
	Hybrid
	Interactive
)

// String is the type in words: "hybrid".
func (t TableType) String() string {
	return [...]string{"standard", "hybrid", "interactive"}[t]
}

// Adapter serves the adapter plugin of one type of table.
type Adapter struct{ tableType TableType }

// New returns the adapter of a type of table.
func New(t TableType) Adapter { return Adapter{tableType: t} }

// Manifest describes the plugin.
func (a Adapter) Manifest() sdk.Manifest {
	m := sdk.Manifest{
		Name:       "snowflake_" + a.tableType.String(),
		Version:    "1.0.0",
		Author:     "Loadstone",
		Driver:     "snowflake",
		Dialect:    dialect.Key,
		Parameters: schemas[a.tableType],
	}
	m.Sends = &sdk.Sends{
		Query: []string{
			"SELECT {reads *.information_schema.tables *.information_schema.columns " +
				"snowflake.account_usage.aggregate_query_history " +
				"count min max sum row_number iff table *.information_schema.query_history_by_user " +
				"to_timestamp_ltz to_timestamp_ntz " +
				"contains date_part to_varchar to_json " +
				"current_database current_schema current_warehouse current_role current_user current_region " +
				"current_secondary_roles current_timestamp is_role_in_session}",
			"SHOW {name} KEYS IN TABLE {table}",
			"SHOW IMPORTED KEYS IN SCHEMA {name}",
			"SHOW INDEXES IN TABLE {table}",
			"SHOW TABLES LIKE {value} IN SCHEMA {name}",
			"SHOW OBJECTS LIKE {value} IN SCHEMA {name}",
			"SHOW DATABASES LIKE {value}",
			"SHOW DATABASES LIMIT 50",
			"SHOW WAREHOUSES LIKE {value}",
			"SHOW PARAMETERS IN WAREHOUSE {name}",
			"SHOW GRANTS ON {name} {name}",
			"SHOW PARAMETERS LIKE 'FEATURE_RBAC_INHERITED_GRANTS' IN ACCOUNT",
		},
		Statements: []string{"SELECT {names} FROM {table} WHERE {reads}", "INSERT INTO {table} ({names}) VALUES ({reads})",
			"INSERT INTO {table} ({names}) SELECT {reads parse_json}",
			"UPDATE {table} SET {reads parse_json}", "DELETE FROM {table} WHERE {reads}"},
		DDL: []string{"CREATE TABLE {table} {*}", "CREATE {name} TABLE {table} {*}",
			"CREATE OR REPLACE TRANSIENT TABLE {table} {*}", "CREATE OR REPLACE INTERACTIVE TABLE {table} {*}",
			"CREATE INDEX {name} ON {table} {*}", "INSERT INTO {table} {*}",
			"ALTER TABLE {table} {*}", "DROP TABLE {table}", "DROP TABLE IF EXISTS {table}", "USE WAREHOUSE {name}",
			"ALTER WAREHOUSE {name} ADD TABLES ({*})"},
	}
	m.Supports = &sdk.Supports{Transactions: true, GeneratesRows: true}
	switch a.tableType {
	case Standard:
		m.Supports.Clustering = true
		m.Title = "Snowflake standard table"
		m.Description = "Ordinary tables of Snowflake, and views. Columnar, made for scans; a write rewrites " +
			"micro-partitions and locks the table against other writes. Keys are declared and not enforced."
	case Hybrid:
		m.Supports.EnforcedKeys, m.Supports.Indexes = true, true
		m.Title = "Snowflake hybrid table"
		m.Description = "Row-wise tables of Snowflake, made for many short reads and writes. The primary key is enforced, " +
			"rows are locked one by one, and there are secondary indexes."
	case Interactive:
		m.Title = "Snowflake interactive table"
		m.Description = "Tables of Snowflake for short selective queries at high concurrency, best on an interactive " +
			"warehouse. Under load they are read only."
		m.Supports.Clustering, m.Supports.Transactions, m.Supports.ReadOnly = true, false, true
		m.Supports.Reason = "an interactive table takes no INSERT, UPDATE or DELETE of single rows; INSERT OVERWRITE, " +
			"which replaces all rows, is the DML that it has"
		m.Supports.Instead = "let the workload only read, or choose the adapter snowflake_hybrid or snowflake_standard"
		m.Kinds = []string{sdk.PointLookup, sdk.RangeScan, sdk.GenericSQL}
	}
	return m
}

// Call answers one request.
func (a Adapter) Call(op string, req *jsondoc.Value, w *jsondoc.Writer) error {
	switch op {
	case "inspect":
		return a.inspect(req, w)
	case "ddl":
		return a.ddl(req, w)
	case "load":
		return a.load(req, w)
	case "statements":
		return a.statements(req, w)
	case "session":
		return a.session(req, w)
	case "enrich":
		return a.enrich(req, w)
	case "poll":
		return a.poll(req, w)
	case "preflight":
		return a.preflight(req, w)
	case "classify_error":
		classes(w)
		return nil
	}
	return errors.New("the adapter snowflake_" + a.tableType.String() + " has no operation " + strconv.Quote(op))
}
