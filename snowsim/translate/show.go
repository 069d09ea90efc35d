package translate

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// showScope is what follows SHOW …: which objects, and how many.
type showScope struct {
	like    string
	in      objectName // empty parts do not restrict
	hasLike bool
	limit   int64 // 0 is 10 000
}

// listings are what SHOW lists from the catalog: the SQL without a condition,
// and the order of its rows.
var listings = map[string]struct{ sql, order string }{
	"DATABASES": {
		`SELECT min(created_on) AS created_on, database AS name, 'N'::text AS is_default, 'N'::text AS is_current, ''::text AS origin, min(owner) AS owner, ''::text AS comment, ''::text AS options,
		'1'::text AS retention_time, 'STANDARD'::text AS kind, NULL::text AS budget, 'ROLE'::text AS owner_role_type FROM snowsim.schemas GROUP BY database`,
		"name",
	},
	"TABLES": {
		`SELECT created_on, table_name AS name, database_name, schema_name, CASE WHEN temporary = '' THEN 'TABLE' ELSE temporary END AS kind, comment, cluster_by,
		snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes, owner, '1'::text AS retention_time,
		CASE WHEN cluster_by = '' THEN 'OFF' ELSE 'ON' END AS automatic_clustering, 'OFF'::text AS change_tracking, CASE WHEN entry ->> 'searched' = 'true' THEN 'ON' ELSE 'OFF' END AS search_optimization, NULL::text AS search_optimization_progress,
		NULL::text AS search_optimization_bytes, 'N'::text AS is_external, 'N'::text AS enable_schema_evolution, 'ROLE'::text AS owner_role_type, 'N'::text AS is_event, NULL::text AS budget,
		CASE WHEN kind = 'hybrid' THEN 'Y' ELSE 'N' END AS is_hybrid, 'N'::text AS is_iceberg, 'N'::text AS is_dynamic, 'N'::text AS is_immutable,
		CASE WHEN kind = 'interactive' THEN 'Y' ELSE 'N' END AS is_interactive FROM snowsim.tables WHERE kind <> 'view'`,
		"name",
	},
	"VIEWS": {
		`SELECT created_on, table_name AS name, ''::text AS reserved, database_name, schema_name, owner, comment, 'CREATE VIEW ' || table_name || ' AS ' || (entry ->> 'query') AS text,
		'false'::text AS is_secure, 'false'::text AS is_materialized, 'ROLE'::text AS owner_role_type, 'OFF'::text AS change_tracking FROM snowsim.tables WHERE kind = 'view'`,
		"name",
	},
	"OBJECTS": {
		`SELECT created_on, table_name AS name, database_name, schema_name, CASE WHEN kind = 'view' THEN 'VIEW' WHEN temporary = '' THEN 'TABLE' ELSE temporary END AS kind, comment, cluster_by,
		snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes, owner, '1'::text AS retention_time, 'ROLE'::text AS owner_role_type,
		CASE WHEN kind = 'hybrid' THEN 'Y' ELSE 'N' END AS is_hybrid, 'N'::text AS is_dynamic FROM snowsim.tables`,
		"name",
	},
	"PRIMARY KEYS": {
		`SELECT created_on, database_name, schema_name, table_name, c.column_name, c.position::numeric(9,0) AS key_sequence, constraint_name, 'false'::text AS rely, NULL::text AS comment
		FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position) WHERE kind = 'PRIMARY KEY'`,
		"table_name, key_sequence",
	},
	"UNIQUE KEYS": {
		`SELECT created_on, database_name, schema_name, table_name, c.column_name, c.position::numeric(9,0) AS key_sequence, constraint_name, 'false'::text AS rely, NULL::text AS comment
		FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position) WHERE kind = 'UNIQUE'`,
		"table_name, constraint_name, key_sequence",
	},
	"IMPORTED KEYS": {
		`SELECT created_on, coalesce(target ->> 0, database_name) AS pk_database_name, coalesce(target ->> 1, schema_name) AS pk_schema_name, coalesce(target ->> 2, referenced) AS pk_table_name, NULL::text AS pk_column_name,
		database_name AS fk_database_name, schema_name AS fk_schema_name, table_name AS fk_table_name, c.column_name AS fk_column_name, c.position::numeric(9,0) AS key_sequence,
		'NO ACTION'::text AS update_rule, 'NO ACTION'::text AS delete_rule, constraint_name AS fk_name, NULL::text AS pk_name, 'NOT DEFERRABLE'::text AS deferrability, 'false'::text AS rely,
		NULL::text AS comment, database_name, schema_name, table_name FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position)
		WHERE kind = 'FOREIGN KEY'`,
		"fk_table_name, fk_name, key_sequence",
	},
	"INDEXES": {
		`SELECT created_on, index_name AS name, CASE WHEN is_unique THEN 'Y' ELSE 'N' END AS is_unique, snowsim.bracketed(columns) AS columns, snowsim.bracketed(include) AS included_columns,
		table_name AS "table", database_name, schema_name, owner, 'ROLE'::text AS owner_role_type, 'ACTIVE'::text AS status, table_name AS "table_name~" FROM snowsim.indexes
		UNION ALL SELECT created_on, constraint_name, 'Y', snowsim.bracketed(columns), '[]', table_name, database_name, schema_name, '', 'ROLE', 'ACTIVE', table_name
		FROM snowsim.keys WHERE enforced AND kind <> 'FOREIGN KEY'`,
		`"table", name`,
	},
}

// show reads SHOW ….
func (p *parser) show() *Plan {
	p.volatile = true
	p.expect("SHOW")
	kind := ""
	switch {
	case p.accept("WAREHOUSES"):
		return p.showWarehouses()
	case p.accept("PARAMETERS"):
		return p.showParameters()
	case p.accept("TRANSACTIONS"):
		return p.showTransactions()
	case p.accept("GRANTS"):
		return p.showGrants()
	}
	for _, k := range []string{"DATABASES", "TABLES", "VIEWS", "OBJECTS", "PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS", "INDEXES"} {
		if p.accept(strings.Fields(k)...) {
			kind = k
			break
		}
	}
	if kind == "" {
		p.fail(protocol.NotSimulated("SHOW %s", p.peek().text))
	}
	s := p.showScope()
	return &Plan{Type: protocol.Show, SQL: p.listing(kind, s), Describe: p.account.Describe}
}

// showScope reads LIKE and IN.
func (p *parser) showScope() showScope {
	s := showScope{in: objectName{database: p.session.Database, schema: p.session.Schema}}
	for {
		switch {
		case p.accept("LIKE"):
			s.like, s.hasLike = p.constant(), true
		case p.accept("IN"):
			p.inWhat(&s)
		case p.accept("LIMIT"):
			s.limit = p.integer()
		default:
			return s
		}
	}
}

func (p *parser) inWhat(s *showScope) {
	switch {
	case p.accept("SCHEMA"):
		if p.isIdentifier() {
			s.in = p.schema()
		}
	case p.accept("TABLE"):
		s.in = p.name()
	default:
		p.fail(protocol.NotSimulated("SHOW … IN %s", p.peek().text))
	}
	ok, err := p.account.tables.hasSchema(p.ctx, s.in.database, s.in.schema)
	if err != nil {
		p.fail(err)
	}
	if !ok {
		p.fail(protocol.CompilationError("002043", "02000", "Object does not exist, or operation cannot be performed."))
	}
	if s.in.object != "" {
		p.resolve(s.in, "")
	}
}

// listing writes the SELECT of a SHOW.
func (p *parser) listing(kind string, s showScope) string {
	l := listings[kind]
	var where []string
	column, table := "name", ""
	switch kind {
	case "PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS":
		column, table = "table_name", "table_name"
	case "INDEXES":
		table = `"table_name~"`
	}
	if kind == "DATABASES" {
		s.in = objectName{}
	}
	if s.in.database != "" {
		where = append(where, "database_name = "+literal(s.in.database))
	}
	if s.in.schema != "" {
		where = append(where, "schema_name = "+literal(s.in.schema))
	}
	if s.in.object != "" && table != "" {
		where = append(where, table+" = "+literal(s.in.object))
	}
	if s.hasLike {
		where = append(where, column+" ILIKE "+literal(s.like))
	}
	switch kind {
	case "TABLES", "VIEWS", "OBJECTS":
		if unseen := p.hiddenTables("database_name", "schema_name", "name"); unseen != "" {
			where = append(where, unseen)
		}
	}
	sql := "SELECT * FROM (" + l.sql + ") AS listing"
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	sql += " ORDER BY " + l.order + " LIMIT " + strconv.FormatInt(cmp.Or(s.limit, 10_000), 10)
	names := map[string]string{
		"INDEXES": `created_on, name, is_unique, columns, included_columns, "table", database_name, schema_name, owner, owner_role_type, status`,
		"IMPORTED KEYS": `created_on, pk_database_name, pk_schema_name, pk_table_name, pk_column_name, fk_database_name, fk_schema_name, fk_table_name, fk_column_name, key_sequence,
			update_rule, delete_rule, fk_name, pk_name, deferrability, rely, comment`}[kind]
	if names != "" {
		sql = "SELECT " + names + " FROM (" + sql + ") AS visible"
	}
	return sql
}

// like reports whether a name matches a pattern of SHOW … LIKE: any case, %
// and _, and a backslash takes the next character as it is.
func like(pattern, s string) bool {
	match, r := strings.ToUpper(pattern), []rune(strings.ToUpper(s))
	// possible[i] reports whether the pattern so far matches the first i characters.
	possible := make([]bool, len(r)+1)
	possible[0] = true
	escaped := false
	for _, c := range match {
		next := make([]bool, len(r)+1)
		switch {
		case !escaped && c == '\\':
			escaped = true
			continue
		case !escaped && c == '%':
			reached := false
			for i := range possible {
				reached = reached || possible[i]
				next[i] = reached
			}
		default:
			for i := 0; i < len(r); i++ {
				next[i+1] = possible[i] && (r[i] == c || c == '_' && !escaped)
			}
		}
		escaped = false
		possible = next
	}
	return possible[len(r)]
}

// enterpriseColumns are those of SHOW WAREHOUSES that Standard edition does not have.
var enterpriseColumns = []string{"min_cluster_count", "max_cluster_count", "started_clusters", "scaling_policy",
	"enable_query_acceleration", "query_acceleration_max_scale_factor"}

// warehouseColumns are those of SHOW WAREHOUSES as Snowflake documents them; FALLBACK_WAREHOUSE is a parameter.
var warehouseColumns = []protocol.Column{
	protocol.Text("name"),
	protocol.Text("state"),
	protocol.Text("type"),
	protocol.Text("size"),
	protocol.Number("min_cluster_count"),
	protocol.Number("max_cluster_count"),
	protocol.Number(
		"started_clusters",
	),
	protocol.Number("running"),
	protocol.Number("queued"),
	protocol.Text("is_default"),
	protocol.Text("is_current"),
	protocol.Number("auto_suspend"),
	protocol.Text("auto_resume"),
	protocol.Text("available"),
	protocol.Text("provisioning"),
	protocol.Text("quiescing"),
	protocol.Text("other"),
	protocol.TimestampLTZ("created_on"),
	protocol.TimestampLTZ("resumed_on"),
	protocol.TimestampLTZ("updated_on"),
	protocol.Text("owner"),
	protocol.Text("comment"),
	protocol.Text("enable_query_acceleration"),
	protocol.Number("query_acceleration_max_scale_factor"),
	protocol.Text("resource_monitor"),
	protocol.Text("actives"),
	protocol.Text(
		"pendings",
	),
	protocol.Text("failed"),
	protocol.Text("suspended"),
	protocol.Text("uuid"),
	protocol.Text("scaling_policy"),
	protocol.Text("budget"),
	protocol.Text("owner_role_type"),
	protocol.Text("resource_constraint"),
	protocol.Text("generation"),
	protocol.Text("tables"),
}

// showWarehouses reads SHOW WAREHOUSES [LIKE …].
func (p *parser) showWarehouses() *Plan {
	s := p.showScope()
	current, session := p.session.Warehouse, p.session
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) {
		r := &Result{Columns: warehouseColumns}
		lacks := func(column protocol.Column) bool {
			return p.account.contract.Standard && slices.Contains(enterpriseColumns, column.Name)
		}
		r.Columns = slices.DeleteFunc(slices.Clone(r.Columns), lacks)
		for _, w := range p.account.host.Warehouses().List() {
			if s.hasLike && !like(s.like, w.Name) || !visible(p.account, session, w) {
				continue
			}
			var row []any
			for i, value := range warehouseRow(w, current) {
				if !lacks(warehouseColumns[i]) {
					row = append(row, value)
				}
			}
			r.Rows = append(r.Rows, row)
		}
		return r, nil
	}}
}

// visible reports whether a session may see a warehouse: it has any privilege on it.
func visible(a *Account, s *Session, w warehouse.State) bool {
	o := warehouseObject(w.Name)
	o.owner = w.Owner
	return a.hasPrivilege(s, "", o) && (a.hasPrivilege(s, "MONITOR", o) || a.hasPrivilege(s, "USAGE", o))
}

func warehouseRow(w warehouse.State, current string) []any {
	yes := func(b bool) string {
		if b {
			return "Y"
		}
		return "N"
	}
	var autoSuspend any
	if w.AutoSuspend > 0 {
		autoSuspend = int64(w.AutoSuspend / time.Second)
	}
	percent := func(b bool) string {
		if b {
			return "100"
		}
		return ""
	}
	at := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t.UTC()
	}
	suspended := 0
	if w.Status == warehouse.Suspended {
		suspended = 1
	}
	var tables, generation any
	if w.Type == warehouse.TypeStandard {
		generation = w.Generation
	}
	if w.Type == warehouse.TypeInteractive {
		tables = strings.Join(w.Tables, ", ")
	}
	return []any{w.Name, string(w.Status), w.Type, w.Size, int64(w.MinClusters), int64(w.MaxClusters),
		int64(w.StartedClusters), int64(w.Running), int64(w.Queued), "N", yes(w.Name == current),
		autoSuspend, strconv.FormatBool(w.AutoResume), percent(w.Status == warehouse.Started),
		percent(w.Status == warehouse.Starting || w.Status == warehouse.Resuming),
		percent(w.Status == warehouse.Suspending), "", at(w.CreatedOn), at(w.ResumedOn), at(w.UpdatedOn), w.Owner, w.Comment,
		"false", int64(8), "null",
		strconv.Itoa(w.StartedClusters), "0", "0", strconv.Itoa(suspended), "0", w.ScalingPolicy, nil, "ROLE", nil,
		generation, tables}
}
