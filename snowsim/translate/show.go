package translate

import (
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
	like       string
	startsWith string
	limit      int64
	in         Name // empty parts do not restrict
	hasLike    bool
}

// listings are what SHOW lists from the catalog: the SQL without a condition,
// where {name} and {limit} stand for the conditions.
var listings = map[string]struct{ sql, order string }{
	"TABLES": {`SELECT created_on, table_name AS name, database_name, schema_name, CASE WHEN temporary = '' THEN 'TABLE' ELSE temporary END AS kind, comment, cluster_by,
		snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes, owner, '1'::text AS retention_time,
		CASE WHEN cluster_by = '' THEN 'OFF' ELSE 'ON' END AS automatic_clustering, 'OFF'::text AS change_tracking, CASE WHEN entry ->> 'searched' = 'true' THEN 'ON' ELSE 'OFF' END AS search_optimization, NULL::text AS search_optimization_progress,
		NULL::text AS search_optimization_bytes, 'N'::text AS is_external, 'N'::text AS enable_schema_evolution, 'ROLE'::text AS owner_role_type, 'N'::text AS is_event, NULL::text AS budget,
		CASE WHEN kind = 'hybrid' THEN 'Y' ELSE 'N' END AS is_hybrid, 'N'::text AS is_iceberg, 'N'::text AS is_dynamic, 'N'::text AS is_immutable,
		CASE WHEN kind = 'interactive' THEN 'Y' ELSE 'N' END AS is_interactive FROM snowsim.tables WHERE kind <> 'view'`, "name"},
	"VIEWS": {`SELECT created_on, table_name AS name, ''::text AS reserved, database_name, schema_name, owner, comment, 'CREATE VIEW ' || table_name || ' AS ' || (entry ->> 'query') AS text,
		'false'::text AS is_secure, 'false'::text AS is_materialized, 'ROLE'::text AS owner_role_type, 'OFF'::text AS change_tracking FROM snowsim.tables WHERE kind = 'view'`, "name"},
	"HYBRID TABLES": {`SELECT created_on, table_name AS name, database_name, schema_name, owner, snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes,
		comment, 'ROLE'::text AS owner_role_type FROM snowsim.tables WHERE kind = 'hybrid'`, "name"},
	"INTERACTIVE TABLES": {`SELECT created_on, table_name AS name, database_name, schema_name, cluster_by, snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes,
		owner, coalesce(target_lag, '') AS target_lag, coalesce(warehouse, '') AS warehouse, comment, 'ROLE'::text AS owner_role_type FROM snowsim.tables WHERE kind = 'interactive'`, "name"},
	"OBJECTS": {`SELECT created_on, table_name AS name, database_name, schema_name, CASE WHEN kind = 'view' THEN 'VIEW' WHEN temporary = '' THEN 'TABLE' ELSE temporary END AS kind, comment, cluster_by,
		snowsim.row_count(oid)::numeric(38,0) AS rows, pg_total_relation_size(oid)::numeric(38,0) AS bytes, owner, '1'::text AS retention_time, 'ROLE'::text AS owner_role_type,
		CASE WHEN kind = 'hybrid' THEN 'Y' ELSE 'N' END AS is_hybrid, 'N'::text AS is_dynamic FROM snowsim.tables`, "name"},
	"COLUMNS": {`SELECT table_name, schema_name, column_name, snowsim.type_json(type, precision, scale, length, nullable::text) AS data_type, CASE WHEN nullable THEN 'true' ELSE 'NOT_NULL' END AS "null?",
		coalesce(default_value, '') AS "default", 'COLUMN'::text AS kind, ''::text AS expression, comment, database_name,
		CASE WHEN identity THEN format('IDENTITY START %s INCREMENT %s NOORDER', identity_start, identity_increment) ELSE '' END AS autoincrement, NULL::text AS "schema_evolution_record",
		ordinal_position AS "order~" FROM snowsim.columns`, `table_name, "order~"`},
	"PRIMARY KEYS": {`SELECT created_on, database_name, schema_name, table_name, c.column_name, c.position::numeric(9,0) AS key_sequence, constraint_name, 'false'::text AS rely, NULL::text AS comment
		FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position) WHERE kind = 'PRIMARY KEY'`, "table_name, key_sequence"},
	"UNIQUE KEYS": {`SELECT created_on, database_name, schema_name, table_name, c.column_name, c.position::numeric(9,0) AS key_sequence, constraint_name, 'false'::text AS rely, NULL::text AS comment
		FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position) WHERE kind = 'UNIQUE'`, "table_name, constraint_name, key_sequence"},
	"IMPORTED KEYS": {`SELECT created_on, coalesce(target ->> 0, database_name) AS pk_database_name, coalesce(target ->> 1, schema_name) AS pk_schema_name, coalesce(target ->> 2, referenced) AS pk_table_name, NULL::text AS pk_column_name,
		database_name AS fk_database_name, schema_name AS fk_schema_name, table_name AS fk_table_name, c.column_name AS fk_column_name, c.position::numeric(9,0) AS key_sequence,
		'NO ACTION'::text AS update_rule, 'NO ACTION'::text AS delete_rule, constraint_name AS fk_name, NULL::text AS pk_name, 'NOT DEFERRABLE'::text AS deferrability, 'false'::text AS rely,
		NULL::text AS comment, database_name, schema_name, table_name FROM snowsim.keys, LATERAL jsonb_array_elements_text(columns) WITH ORDINALITY AS c(column_name, position)
		WHERE kind = 'FOREIGN KEY'`, "fk_table_name, fk_name, key_sequence"},
	"INDEXES": {`SELECT created_on, index_name AS name, CASE WHEN is_unique THEN 'Y' ELSE 'N' END AS is_unique, snowsim.bracketed(columns) AS columns, snowsim.bracketed(include) AS included_columns,
		table_name AS "table", database_name, schema_name, owner, 'ROLE'::text AS owner_role_type, 'ACTIVE'::text AS status, table_name AS "table_name~" FROM snowsim.indexes
		UNION ALL SELECT created_on, constraint_name, 'Y', snowsim.bracketed(columns), '[]', table_name, database_name, schema_name, '', 'ROLE', 'ACTIVE', table_name
		FROM snowsim.keys WHERE enforced AND kind <> 'FOREIGN KEY'`, `"table", name`},
	"DATABASES": {`SELECT min(created_on) AS created_on, database AS name, 'N'::text AS is_default, 'N'::text AS is_current, ''::text AS origin, min(owner) AS owner, min(comment) AS comment,
		''::text AS options, '1'::text AS retention_time, 'STANDARD'::text AS kind, NULL::text AS budget, 'ROLE'::text AS owner_role_type FROM snowsim.schemas GROUP BY database`, "name"},
	"SCHEMAS": {`SELECT created_on, schema AS name, 'N'::text AS is_default, 'N'::text AS is_current, database AS database_name, owner, comment, ''::text AS options, '1'::text AS retention_time,
		'ROLE'::text AS owner_role_type FROM snowsim.schemas`, "database_name, name"},
}

// show reads SHOW ….
func (p *Parser) show() *Plan {
	p.Volatile = true
	p.Expect("SHOW")
	p.Accept("TERSE")
	kind := ""
	switch {
	case p.Accept("WAREHOUSES"):
		return p.showWarehouses()
	case p.Accept("PARAMETERS"):
		return p.showParameters()
	case p.Accept("ROLES"):
		return p.showRoles()
	case p.Accept("GRANTS"):
		return p.showGrants()
	case p.Accept("VARIABLES"), p.Accept("TRANSACTIONS"), p.Accept("LOCKS"), p.Accept("STAGES"),
		p.Accept("SEQUENCES"):
		p.Skip()
		return p.Shown(&Result{Columns: []protocol.Column{protocol.TimestampLTZ("created_on"), protocol.Text("name")}})
	}
	for _, k := range []string{"HYBRID TABLES", "INTERACTIVE TABLES", "TABLES", "VIEWS", "OBJECTS", "COLUMNS",
		"PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS", "INDEXES", "DATABASES", "SCHEMAS"} {
		if p.Accept(strings.Fields(k)...) {
			kind = k
			break
		}
	}
	if kind == "" {
		p.Fail(protocol.NotSimulated("SHOW %s", p.Peek().Text))
	}
	p.Accept("HISTORY")
	s := p.showScope(kind)
	return &Plan{Type: protocol.Show, SQL: p.listing(kind, s), Describe: p.Account.Describe}
}

// showScope reads LIKE, IN, STARTS WITH and LIMIT.
func (p *Parser) showScope(kind string) showScope {
	s := showScope{limit: 10000}
	if kind != "DATABASES" {
		s.in.Database = p.Session.Database
		if kind != "SCHEMAS" {
			s.in.Schema = p.Session.Schema
		}
	}
	for {
		switch {
		case p.Accept("LIKE"):
			s.like, s.hasLike = p.Constant(), true
		case p.Accept("IN"), p.Accept("FROM"):
			p.inWhat(kind, &s)
		case p.Accept("STARTS", "WITH"):
			s.startsWith = p.Constant()
		case p.Accept("LIMIT"):
			s.limit = p.Integer()
			if p.Accept("FROM") {
				p.Constant()
			}
		default:
			return s
		}
	}
}

func (p *Parser) inWhat(kind string, s *showScope) {
	switch {
	case p.Accept("ACCOUNT"):
		s.in = Name{}
		return
	case p.Accept("DATABASE"):
		s.in = Name{Database: p.Session.Database}
		if p.IsIdentifier() && !p.Is("LIMIT") && !p.Is("STARTS") {
			s.in.Database = p.Identifier()
		}
	case p.Accept("SCHEMA"):
		if p.IsIdentifier() && !p.Is("LIMIT") && !p.Is("STARTS") {
			s.in = p.Schema()
		}
	case p.Accept("TABLE"):
		s.in = p.Name()
	default:
		switch kind {
		case "COLUMNS", "PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS", "INDEXES":
			s.in = p.Name()
		case "SCHEMAS":
			s.in = Name{Database: p.Identifier()}
		default:
			s.in = p.Schema()
		}
	}
	ok, err := p.Account.Tables.HasSchema(p.Context, s.in.Database, s.in.Schema)
	if err != nil {
		p.Fail(err)
	}
	if !ok {
		p.Fail(protocol.CompilationError("002043", "02000", "Object does not exist, or operation cannot be performed."))
	}
	if s.in.Object != "" {
		p.Resolve(s.in, "")
	}
}

// listing writes the SELECT of a SHOW.
func (p *Parser) listing(kind string, s showScope) string {
	l := listings[kind]
	var where []string
	column, table := "name", ""
	switch kind {
	case "COLUMNS":
		column, table = "column_name", "table_name"
	case "PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS":
		column, table = "table_name", "table_name"
	case "INDEXES":
		table = `"table_name~"`
	}
	if s.in.Database != "" && kind != "DATABASES" {
		where = append(where, "database_name = "+Literal(s.in.Database))
	}
	if s.in.Schema != "" && kind != "DATABASES" && kind != "SCHEMAS" {
		where = append(where, "schema_name = "+Literal(s.in.Schema))
	}
	if s.in.Object != "" && table != "" {
		where = append(where, table+" = "+Literal(s.in.Object))
	}
	if s.hasLike {
		where = append(where, column+" ILIKE "+Literal(s.like))
	}
	if s.startsWith != "" {
		where = append(where, "starts_with("+column+", "+Literal(s.startsWith)+")")
	}
	switch kind {
	case "TABLES", "VIEWS", "HYBRID TABLES", "INTERACTIVE TABLES", "OBJECTS":
		if unseen := p.Unseen("database_name", "schema_name", "name"); unseen != "" {
			where = append(where, unseen)
		}
	}
	sql := "SELECT * FROM (" + l.sql + ") AS listing"
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	sql += " ORDER BY " + l.order + " LIMIT " + strconv.FormatInt(s.limit, 10)
	names := map[string]string{
		"COLUMNS": `table_name, schema_name, column_name, data_type, "null?", "default", kind, expression, comment, database_name, autoincrement, "schema_evolution_record"`,
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
	// possible[i] tells whether what has been read of the pattern matches the first i characters.
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

// warehouseColumns are those of SHOW WAREHOUSES.
var warehouseColumns = []protocol.Column{protocol.Text("name"), protocol.Text("state"), protocol.Text("type"), protocol.Text("size"),
	protocol.Number("min_cluster_count"), protocol.Number("max_cluster_count"),
	protocol.Number("started_clusters"), protocol.Number("running"), protocol.Number("queued"), protocol.Text("is_default"),
	protocol.Text("is_current"), protocol.Number("auto_suspend"), protocol.Text("auto_resume"),
	protocol.Text("available"), protocol.Text("provisioning"), protocol.Text("quiescing"), protocol.Text("other"),
	protocol.TimestampLTZ("created_on"), protocol.TimestampLTZ("resumed_on"), protocol.TimestampLTZ("updated_on"),
	protocol.Text("owner"), protocol.Text("comment"), protocol.Text("enable_query_acceleration"),
	protocol.Number("query_acceleration_max_scale_factor"), protocol.Text("resource_monitor"), protocol.Text("actives"),
	protocol.Text("pendings"), protocol.Text("failed"), protocol.Text("suspended"), protocol.Text("uuid"), protocol.Text("scaling_policy"),
	protocol.Text("budget"), protocol.Text("owner_role_type"), protocol.Text("resource_constraint"),
	protocol.Text("generation"), protocol.Text("fallback_warehouse"), protocol.Text("tables")}

// showWarehouses reads SHOW WAREHOUSES [LIKE …].
func (p *Parser) showWarehouses() *Plan {
	s := p.showScope("DATABASES")
	current, session := p.Session.Warehouse, p.Session
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) {
		r := &Result{Columns: warehouseColumns}
		for _, w := range p.Account.Host.Warehouses().List() {
			if s.hasLike && !like(s.like, w.Name) || !strings.HasPrefix(w.Name, s.startsWith) || int64(len(r.Rows)) >= s.limit ||
				!visible(p.Account, session, w) {
				continue
			}
			r.Rows = append(r.Rows, warehouseRow(w, current))
		}
		return r, nil
	}}
}

// visible reports whether a session may see a warehouse: it has any privilege on it.
func visible(a *Account, s *Session, w warehouse.State) bool {
	o := WarehouseObject(w.Name)
	o.Owner = w.Owner
	return a.May(s, "", o) && (a.May(s, "MONITOR", o) || a.May(s, "USAGE", o))
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
	var tables, generation, fallback any
	if w.Type == warehouse.TypeStandard {
		generation = w.Generation
	}
	if w.Fallback != "" {
		fallback = w.Fallback
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
		generation, fallback, tables}
}

func (p *Parser) showRoles() *Plan {
	s := p.showScope("DATABASES")
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) {
		r := &Result{Columns: []protocol.Column{protocol.TimestampLTZ("created_on"), protocol.Text("name"), protocol.Text("is_default"),
			protocol.Text("is_current"), protocol.Text("is_inherited"), protocol.Text("comment")}}
		for _, role := range p.Account.AllRoles() {
			if !s.hasLike || like(s.like, role) {
				current := "N"
				if role == p.Session.Role {
					current = "Y"
				}
				r.Rows = append(r.Rows, []any{nil, role, "N", current, "N", ""})
			}
		}
		return r, nil
	}}
}

// parameters are the session parameters with their defaults.
var parameters = []struct{ key, value, kind, description string }{
	{"ABORT_DETACHED_QUERY", "false", "BOOLEAN", "Abort a query when its session is gone."},
	{"AUTOCOMMIT", "true", "BOOLEAN", "Commit each statement on its own."},
	{"CLIENT_SESSION_KEEP_ALIVE", "false", "BOOLEAN", "Keep the session alive without activity."},
	{"CLIENT_STAGE_ARRAY_BINDING_THRESHOLD", "0", "NUMBER", "Bound values above which a driver stages them; 0 is never."},
	{"HYBRID_TABLE_LOCK_TIMEOUT", "3600", "NUMBER", "Seconds that a statement waits for a row lock of a hybrid table."},
	{"LOCK_TIMEOUT", "43200", "NUMBER", "Seconds that a statement waits for a lock."},
	{"QUERY_TAG", "", "STRING", "Text that the history keeps for each statement."},
	{"QUOTED_IDENTIFIERS_IGNORE_CASE", "false", "BOOLEAN", "Store quoted identifiers in upper case."},
	{"READ_LATEST_WRITES", "false", "BOOLEAN", "Read the latest writes of other sessions."},
	{"ROWS_PER_RESULTSET", "0", "NUMBER", "Rows of a result at most; 0 is no limit."},
	{"STATEMENT_QUEUED_TIMEOUT_IN_SECONDS", "0", "NUMBER", "Seconds that a statement stays queued; 0 is no limit."},
	{"STATEMENT_TIMEOUT_IN_SECONDS", "172800", "NUMBER", "Seconds that a statement runs."},
	{"TIMESTAMP_TYPE_MAPPING", "TIMESTAMP_NTZ", "STRING", "What TIMESTAMP means."},
	{"TIMEZONE", "America/Los_Angeles", "STRING", "Time zone of the session."},
	{"USE_CACHED_RESULT", "true", "BOOLEAN", "Use results of earlier statements."},
}

func (p *Parser) showParameters() *Plan {
	pattern, hasLike := "", false
	for p.Peek().Kind != End && !p.IsSymbol(";") {
		switch {
		case p.Accept("LIKE"):
			pattern, hasLike = p.Constant(), true
		case p.Accept("IN"), p.Accept("FOR"):
			p.Next()
			if p.IsIdentifier() && !p.Is("LIKE") {
				p.Parts()
			}
		default:
			p.Unexpected()
		}
	}
	r := &Result{Columns: []protocol.Column{protocol.Text("key"), protocol.Text("value"), protocol.Text("default"),
		protocol.Text("level"), protocol.Text("description"), protocol.Text("type")}}
	for _, one := range parameters {
		if hasLike && !like(pattern, one.key) {
			continue
		}
		value, level := one.value, ""
		if set, ok := p.Session.Parameters[one.key]; ok {
			value, level = set, "SESSION"
		}
		r.Rows = append(r.Rows, []any{one.key, value, one.value, level, one.description, one.kind})
	}
	return p.Shown(r)
}

// describeStatement reads DESCRIBE TABLE t, and of a view.
func (p *Parser) describeStatement() *Plan {
	p.Next()
	p.Volatile = true
	if p.Accept("WAREHOUSE") {
		n := p.Identifier()
		if _, ok := p.Account.Host.Warehouses().Get(n); !ok {
			p.Fail(protocol.CompilationError("002003", "02000", "Warehouse '%s' does not exist or not authorized.",
				Display(n)))
		}
		w, _ := p.Account.Host.Warehouses().Get(n)
		made := p.Shown(&Result{Columns: []protocol.Column{protocol.TimestampLTZ("created_on"), protocol.Text("name"),
			protocol.Text("kind")}, Rows: [][]any{{w.CreatedOn, w.Name, "WAREHOUSE"}}})
		made.Type = protocol.Describe
		return made
	}
	_ = p.Accept("HYBRID") || p.Accept("INTERACTIVE")
	if !p.Accept("VIEW") {
		p.Expect("TABLE")
	}
	t := p.Resolve(p.Name(), "")
	if p.Accept("TYPE") {
		p.ExpectSymbol("=")
		p.Next()
	}
	r := &Result{}
	for _, c := range []string{"name", "type", "kind", "null?", "default", "primary key", "unique key", "check",
		"expression", "comment", "policy name", "privacy domain"} {
		r.Columns = append(r.Columns, protocol.Text(c))
	}
	yes := map[bool]string{true: "Y", false: "N"}
	for _, c := range t.Columns {
		var byDefault, comment any
		if c.Default != "" {
			byDefault = c.Default
		}
		if c.Identity {
			byDefault = "IDENTITY START " + strconv.FormatInt(c.Start, 10) + " INCREMENT " + strconv.FormatInt(c.Increment, 10) +
				" NOORDER"
		}
		if c.Comment != "" {
			comment = c.Comment
		}
		in := func(kind string) bool {
			return slices.ContainsFunc(t.Keys, func(k KeyMeta) bool {
				return k.Kind == kind &&
					slices.Contains(k.Columns, c.Name)
			})
		}
		r.Rows = append(r.Rows, []any{c.Name, typeName(c), "COLUMN", yes[c.Nullable], byDefault, yes[in("PRIMARY KEY")],
			yes[in("UNIQUE")], nil, nil, comment, nil, nil})
	}
	made := p.Shown(r)
	made.Type = protocol.Describe
	made.Table = t.Name.String()
	return made
}

// typeName is the type as DESCRIBE TABLE writes it.
func typeName(c ColumnMeta) string {
	switch {
	case c.Type == "NUMBER":
		return "NUMBER(" + strconv.Itoa(c.Precision) + "," + strconv.Itoa(c.Scale) + ")"
	case c.Type == "VARCHAR" || c.Type == "BINARY":
		return c.Type + "(" + strconv.Itoa(c.Length) + ")"
	case c.Type == "TIME" || strings.HasPrefix(c.Type, "TIMESTAMP"):
		return c.Type + "(" + strconv.Itoa(c.Scale) + ")"
	}
	return c.Type
}
