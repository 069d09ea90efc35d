package translate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// table is a table of the account.
type table struct {
	name name
	kind warehouse.Table
	meta
}

// meta is what is kept in a table's Postgres comment.
type meta struct {
	Database    string       `json:"database"`
	Schema      string       `json:"schema"`
	Table       string       `json:"table"`
	Kind        string       `json:"kind"` // standard, hybrid, interactive
	Temporary   string       `json:"temporary,omitempty"`
	Comment     string       `json:"comment"`
	Owner       string       `json:"owner"`
	ClusterBy   string       `json:"cluster_by,omitempty"` // as written
	ClusterKeys []string     `json:"cluster_keys,omitempty"`
	TargetLag   string       `json:"target_lag,omitempty"`
	Warehouse   string       `json:"warehouse,omitempty"`
	Searched    bool         `json:"searched,omitempty"` // search optimization was added
	Query       string       `json:"query,omitempty"`    // what an interactive table with a lag is refreshed by
	CreatedOn   time.Time    `json:"created_on"`
	Columns     []columnMeta `json:"columns"`
	Keys        []keyMeta    `json:"keys,omitempty"`
	Indexes     []indexMeta  `json:"indexes,omitempty"`
}

// columnMeta is a column as Snowflake declares it.
type columnMeta struct {
	Name       string `json:"name"`
	Postgres   string `json:"postgres"`
	Type       string `json:"type"`
	Precision  int    `json:"precision"`
	Scale      int    `json:"scale"`
	Length     int    `json:"length"`
	Nullable   bool   `json:"nullable"`
	Default    string `json:"default,omitempty"`
	Identity   bool   `json:"identity,omitempty"`
	Start      int64  `json:"start,omitempty"`
	Increment  int64  `json:"increment,omitempty"`
	PrimaryKey bool   `json:"primary_key,omitempty"`
	Unique     bool   `json:"unique,omitempty"`
	Comment    string `json:"comment,omitempty"`
}

// keyMeta is a PRIMARY KEY, UNIQUE or FOREIGN KEY, enforced or not.
type keyMeta struct {
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Columns    []string `json:"columns"`
	Enforced   bool     `json:"enforced"`
	References string   `json:"references,omitempty"`
	// Target is the table that a foreign key refers to: database, schema, table.
	Target []string `json:"target,omitempty"`
}

// indexMeta is a secondary index of a hybrid table.
type indexMeta struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Include []string `json:"include,omitempty"`
	Unique  bool     `json:"unique"`
}

// lookups returns the columns by which a value finds rows without a scan.
func (t *table) lookups() []string {
	var first []string
	for _, k := range t.Keys {
		if k.Enforced && len(k.Columns) > 0 && k.Kind != "FOREIGN KEY" {
			first = append(first, k.Columns[0])
		}
	}
	for _, i := range t.Indexes {
		first = append(first, i.Columns[0])
	}
	if t.kind != warehouse.Hybrid && len(t.ClusterKeys) > 0 {
		first = append(first, t.ClusterKeys[0])
	}
	if t.kind == warehouse.Standard && len(t.ClusterKeys) == 0 { // micro-partitions are pruned by the declared key
		for _, k := range t.Keys {
			if k.Kind == "PRIMARY KEY" {
				first = append(first, k.Columns[0])
			}
		}
	}
	return first
}

// catalog remembers tables and schemas. What Postgres holds is the truth; a
// table that is not remembered is looked up there.
type catalog struct {
	pool *pgxpool.Pool

	mu      sync.RWMutex
	tables  map[name]*table
	schemas map[name]bool
	epoch   int64 // counts changes
}

func newCatalog(pool *pgxpool.Pool) *catalog {
	return &catalog{pool: pool, tables: map[name]*table{}, schemas: map[name]bool{}}
}

// querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// table returns a table, nil when there is none.
func (c *catalog) table(ctx context.Context, n name) (*table, error) {
	c.mu.RLock()
	t, epoch := c.tables[n], c.epoch
	c.mu.RUnlock()
	if t != nil {
		return t, nil
	}
	t, err := readTable(ctx, c.pool, n)
	if err != nil || t == nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch == epoch { // else it may have changed since
		c.tables[n] = t
	}
	return t, nil
}

func (c *catalog) put(t *table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[t.name] = t
	c.epoch++
}

// forget drops what is remembered: a table, a schema (no object) or a database.
func (c *catalog) forget(n name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	for known := range c.tables {
		if known.database == n.database &&
			(n.schema == "" || known.schema == n.schema && (n.object == "" || known.object == n.object)) {
			delete(c.tables, known)
		}
	}
	if n.object == "" {
		for known := range c.schemas {
			if known.database == n.database && (n.schema == "" || known.schema == n.schema) {
				delete(c.schemas, known)
			}
		}
	}
}

// version counts the changes, so that what was translated before one can be forgotten.
func (c *catalog) version() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.epoch
}

// hasSchema reports whether a schema exists, or a database when no schema is named.
func (c *catalog) hasSchema(ctx context.Context, database, schema string) (bool, error) {
	n := name{database: database, schema: schema}
	c.mu.RLock()
	known := c.schemas[n]
	c.mu.RUnlock()
	if known {
		return true, nil
	}
	var exists bool
	err := c.pool.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM snowsim.schemas WHERE database = $1 AND ($2 = '' OR "+
		"schema = $2))", database, schema).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("looking up a schema: %w", err)
	}
	if exists {
		c.mu.Lock()
		c.schemas[n] = true
		c.mu.Unlock()
	}
	return exists, nil
}

// readTable reads a table from Postgres; nil when there is none of that name.
func readTable(ctx context.Context, q querier, n name) (*table, error) {
	var comment string
	err := q.QueryRow(ctx, `SELECT obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind = 'r' AND obj_description(c.oid, 'pg_class') IS NOT NULL`,
		schemaName(n.database, n.schema), short(n.object)).Scan(&comment)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	t := &table{name: n}
	if err := json.Unmarshal([]byte(comment), &t.meta); err != nil {
		return nil, fmt.Errorf("reading the catalog's entry of %s: %w", n, err)
	}
	t.kind = kindOf(t.Kind)
	return t, nil
}

func kindOf(s string) warehouse.Table {
	for _, k := range []warehouse.Table{warehouse.Standard, warehouse.Hybrid, warehouse.Interactive} {
		if k.String() == s {
			return k
		}
	}
	return warehouse.Standard
}

// writeTable puts a table's entry into its Postgres comment, in the transaction of conn.
func writeTable(ctx context.Context, conn *pgx.Conn, t *table) error {
	entry, err := json.Marshal(t.meta)
	if err != nil {
		return fmt.Errorf("writing a catalog entry: %w", err)
	}
	if _, err := conn.Exec(ctx, "COMMENT ON TABLE "+t.name.postgres()+" IS "+literal(string(entry))); err != nil {
		return fmt.Errorf("writing a catalog entry: %w", err)
	}
	return nil
}

// fillColumns completes the entry with the columns that Postgres knows: all of
// them after CREATE TABLE … AS SELECT.
func (t *table) fillColumns(ctx context.Context, conn *pgx.Conn, display func(string) string) error {
	rows, err := conn.Query(ctx, `SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull FROM pg_attribute a
		WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, t.name.postgres())
	if err != nil {
		return fmt.Errorf("reading the columns of %s: %w", t.name, err)
	}
	defer rows.Close()
	declared := map[string]columnMeta{}
	for _, c := range t.Columns {
		declared[c.Postgres] = c
	}
	t.Columns = t.Columns[:0]
	for rows.Next() {
		var column, format string
		var notNull bool
		if err := rows.Scan(&column, &format, &notNull); err != nil {
			return fmt.Errorf("reading the columns of %s: %w", t.name, err)
		}
		c, ok := declared[column]
		if !ok {
			c = columnOf(format)
			c.Name, c.Postgres = display(column), column
		}
		c.Nullable = !notNull
		t.Columns = append(t.Columns, c)
	}
	return rows.Err()
}

// columnOf returns the Snowflake type of a column of Postgres by format_type.
func columnOf(format string) columnMeta {
	base, sizes, _ := strings.Cut(format, "(")
	var first, second int
	_, _ = fmt.Sscanf(sizes, "%d,%d", &first, &second)
	switch {
	case base == "numeric" && sizes != "":
		return columnMeta{Type: "NUMBER", Precision: first, Scale: second}
	case base == "numeric":
		return columnMeta{Type: "NUMBER", Precision: 38, Scale: 6}
	case base == "bigint" || base == "integer" || base == "smallint":
		return columnMeta{Type: "NUMBER", Precision: 38}
	case base == "double precision" || base == "real":
		return columnMeta{Type: "FLOAT"}
	case base == "boolean":
		return columnMeta{Type: "BOOLEAN"}
	case base == "date":
		return columnMeta{Type: "DATE"}
	case strings.HasPrefix(base, "time") && !strings.HasPrefix(base, "timestamp"):
		return columnMeta{Type: "TIME", Scale: 9}
	case strings.HasPrefix(base, "timestamp") && strings.HasSuffix(format, "with time zone"):
		return columnMeta{Type: "TIMESTAMP_LTZ", Scale: 9}
	case strings.HasPrefix(base, "timestamp"):
		return columnMeta{Type: "TIMESTAMP_NTZ", Scale: 9}
	case base == "snowsim.timestamp_tz":
		return columnMeta{Type: "TIMESTAMP_TZ", Scale: 9}
	case base == "jsonb" || base == "json" || base == "snowsim.variant":
		return columnMeta{Type: "VARIANT"}
	case base == "snowsim.object":
		return columnMeta{Type: "OBJECT"}
	case base == "snowsim.array":
		return columnMeta{Type: "ARRAY"}
	case base == "bytea":
		return columnMeta{Type: "BINARY", Length: 8388608}
	case base == "character varying" && first > 0:
		return columnMeta{Type: "VARCHAR", Length: first}
	}
	return columnMeta{Type: "VARCHAR", Length: maxText}
}

// maxText is the length of a VARCHAR that declares none.
const maxText = 16777216

// execAll runs statements one after the other.
func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return Error(err)
		}
	}
	return nil
}

// insufficient is 003001.
func insufficient(kind, object string) *plan.Error {
	return &plan.Error{Code: "003001", State: "42501",
		Message: fmt.Sprintf("SQL access control error:\nInsufficient privileges to operate on %s '%s'.", kind, object)}
}
