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
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// tableEntry is a table of the account.
type tableEntry struct {
	name      objectName
	tableType warehouse.Table
	tableMeta
}

// kindView is the kind of a view.
const kindView = "view"

// tableMeta is a table's metadata, stored as JSON in its Postgres comment.
type tableMeta struct {
	Database    string   `json:"database"`
	Schema      string   `json:"schema"`
	Table       string   `json:"table"`
	Kind        string   `json:"kind"` // standard, hybrid, interactive, view
	Temporary   string   `json:"temporary,omitempty"`
	Comment     string   `json:"comment"`
	Owner       string   `json:"owner"`
	ClusterBy   string   `json:"cluster_by,omitempty"` // as written
	ClusterKeys []string `json:"cluster_keys,omitempty"`
	Searched    bool     `json:"searched,omitempty"` // search optimization was added
	// Query is the query of a view.
	Query     string       `json:"query,omitempty"`
	CreatedOn time.Time    `json:"created_on"`
	Columns   []columnMeta `json:"columns"`
	Keys      []keyMeta    `json:"keys,omitempty"`
	Indexes   []indexMeta  `json:"indexes,omitempty"`
}

// columnMeta is a column as Snowflake declares it.
type columnMeta struct {
	Name      string `json:"name"`
	Postgres  string `json:"postgres"`
	Type      string `json:"type"`
	Precision int    `json:"precision"`
	Scale     int    `json:"scale"`
	Length    int    `json:"length"`
	Nullable  bool   `json:"nullable"`
	Identity  bool   `json:"identity,omitempty"`
	Start     int64  `json:"start,omitempty"`
	Increment int64  `json:"increment,omitempty"`
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

// lookupColumns returns the columns by which a value finds rows without a scan.
func (t *tableEntry) lookupColumns() []string {
	var first []string
	for _, k := range t.Keys {
		if k.Enforced && len(k.Columns) > 0 && k.Kind != "FOREIGN KEY" {
			first = append(first, k.Columns[0])
		}
	}
	for _, i := range t.Indexes {
		first = append(first, i.Columns[0])
	}
	if t.tableType != warehouse.Hybrid && len(t.ClusterKeys) > 0 {
		first = append(first, t.ClusterKeys[0])
	}
	if t.tableType == warehouse.Standard && len(t.ClusterKeys) == 0 { // micro-partitions are pruned by the declared key
		for _, k := range t.Keys {
			if k.Kind == "PRIMARY KEY" {
				first = append(first, k.Columns[0])
			}
		}
	}
	return first
}

// tableCache remembers tables and schemas. What Postgres holds is the truth; a
// table that is not cached is looked up there.
type tableCache struct {
	pool *pgxpool.Pool

	mu      sync.RWMutex
	tables  map[objectName]*tableEntry
	schemas map[objectName]bool
	epoch   int64 // counts changes
}

func newCatalog(pool *pgxpool.Pool) *tableCache {
	return &tableCache{pool: pool, tables: map[objectName]*tableEntry{}, schemas: map[objectName]bool{}}
}

// querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// lookup returns a table, nil when there is none.
func (c *tableCache) lookup(ctx context.Context, n objectName) (*tableEntry, error) {
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

// cache remembers a table as it is now.
func (c *tableCache) cache(t *tableEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables[t.name] = t
	c.epoch++
}

// invalidate drops what is remembered: a table, a schema (no object) or a database.
func (c *tableCache) invalidate(n objectName) {
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
func (c *tableCache) version() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.epoch
}

// hasSchema reports whether a schema exists, or a database when no schema is named.
func (c *tableCache) hasSchema(ctx context.Context, database, schema string) (bool, error) {
	n := objectName{database: database, schema: schema}
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
		c.cacheSchema(n)
	}
	return exists, nil
}

// readTable reads a table from Postgres; nil when there is none of that name.
func readTable(ctx context.Context, q querier, n objectName) (*tableEntry, error) {
	var comment string
	err := q.QueryRow(
		ctx,
		`SELECT obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'v') AND obj_description(c.oid, 'pg_class') IS NOT NULL`,
		schemaName(n.database, n.schema),
		shortName(n.object),
	).Scan(
		&comment,
	)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalog: %w", err)
	}
	t := &tableEntry{name: n}
	if err := json.Unmarshal([]byte(comment), &t.tableMeta); err != nil {
		return nil, fmt.Errorf("reading the catalog's entry of %s: %w", n, err)
	}
	t.tableType = tableType(t.Kind)
	return t, nil
}

// tableType is the type of table by its name in Meta.Kind.
func tableType(s string) warehouse.Table {
	for _, k := range []warehouse.Table{warehouse.Standard, warehouse.Hybrid, warehouse.Interactive} {
		if k.String() == s {
			return k
		}
	}
	return warehouse.Standard
}

// writeTable puts a table's entry into its Postgres comment, in the transaction of conn.
func writeTable(ctx context.Context, conn *pgx.Conn, t *tableEntry) error {
	entry, err := json.Marshal(t.tableMeta)
	if err != nil {
		return fmt.Errorf("writing a catalog entry: %w", err)
	}
	of := "TABLE "
	if t.Kind == kindView {
		of = "VIEW "
	}
	if _, err := conn.Exec(ctx, "COMMENT ON "+of+t.name.postgres()+" IS "+literal(string(entry))); err != nil {
		return fmt.Errorf("writing a catalog entry: %w", err)
	}
	return nil
}

// fillColumns completes the entry with the columns that Postgres knows: all of
// them after CREATE TABLE … AS SELECT.
func (t *tableEntry) fillColumns(ctx context.Context, conn *pgx.Conn, display func(string) string) error {
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
	return columnMeta{Type: "VARCHAR", Length: maxVarchar}
}

// maxVarchar is the length of a VARCHAR that declares none.
const maxVarchar = 16777216

// execAll runs statements one after the other.
func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return Error(err)
		}
	}
	return nil
}

// column returns a column by name, the zero value when there is none.
func (t *tableEntry) column(name string) columnMeta {
	for _, c := range t.Columns {
		if c.Name == name {
			return c
		}
	}
	return columnMeta{}
}

// cacheSchema notes that a schema, or a database, exists.
func (c *tableCache) cacheSchema(n objectName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schemas[n] = true
}

// rename gives the entry another name.
func (t *tableEntry) rename(n objectName) {
	t.name = n
	t.Database, t.Schema, t.Table = n.database, n.schema, n.object
}

// renameStatements are the statements by which Postgres renames the table, and what is named
// after it: its indexes and sequences.
func (t *tableEntry) renameStatements(from, to objectName) []string {
	statements := []string{"ALTER TABLE " + from.postgres() + " RENAME TO " + quote(shortName(to.object))}
	parts := []string{"cluster", "key"}
	for _, i := range t.Indexes {
		parts = append(parts, i.Name)
	}
	in := quote(schemaName(from.database, from.schema)) + "."
	for _, part := range parts {
		statements = append(statements, "ALTER INDEX IF EXISTS "+in+quote(shortName(from.object+"~"+part))+" RENAME TO "+
			quote(shortName(to.object+"~"+part)))
	}
	for _, c := range t.Columns {
		statements = append(statements, "ALTER SEQUENCE IF EXISTS "+in+quote(shortName(from.object+"~"+c.Name+"~seq"))+
			" RENAME TO "+quote(shortName(to.object+"~"+c.Name+"~seq")))
	}
	return statements
}

// Describe is plan.Plan.Describe: Postgres's types as Snowflake's, and the names
// that Postgres cut short.
func (a *Account) Describe(fields []pgconn.FieldDescription) []protocol.Column {
	columns := make([]protocol.Column, len(fields))
	for i, f := range fields {
		columns[i] = columnOfField(f, a.timestampTZ)
		columns[i].Name = a.displayName(f.Name)
	}
	return columns
}

func columnOfField(f pgconn.FieldDescription, timestampTZ uint32) protocol.Column {
	c := protocol.Column{Nullable: true}
	switch f.DataTypeOID {
	case pgtype.BoolOID:
		c.Type = "boolean"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		c.Type, c.Precision = "fixed", 38
	case pgtype.NumericOID:
		c.Type, c.Precision, c.Scale = "fixed", 38, -1
		if f.TypeModifier >= 4 {
			c.Precision, c.Scale = int((f.TypeModifier-4)>>16), int((f.TypeModifier-4)&0xffff)
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		c.Type = "real"
	case pgtype.DateOID:
		c.Type = "date"
	case pgtype.TimeOID:
		c.Type, c.Scale = "time", scaleOf(f)
	case pgtype.TimestampOID:
		c.Type, c.Scale = "timestamp_ntz", scaleOf(f)
	case pgtype.TimestamptzOID:
		c.Type, c.Scale = "timestamp_ltz", scaleOf(f)
	case timestampTZ:
		c.Type, c.Scale = "timestamp_tz", 9
	case pgtype.JSONOID, pgtype.JSONBOID:
		c.Type = "variant"
	case pgtype.ByteaOID:
		c.Type, c.Length, c.ByteLength = "binary", 8388608, 8388608
	default:
		c.Type, c.Length, c.ByteLength = "text", maxVarchar, maxVarchar
		if f.DataTypeOID == pgtype.VarcharOID && f.TypeModifier > 4 {
			c.Length = int(f.TypeModifier - 4)
			c.ByteLength = min(4*c.Length, maxVarchar)
		}
	}
	return c
}

// scaleOf is the number of decimals of seconds; a column that declares 6 may
// have been declared with up to 9, which Postgres does not have.
func scaleOf(f pgconn.FieldDescription) int {
	if f.TypeModifier >= 0 && f.TypeModifier < 6 {
		return int(f.TypeModifier)
	}
	return 9
}
