package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// markText is the comment of a table that Loadstone made. It ends with the table's
// OID: CREATE TABLE … (LIKE … INCLUDING ALL), a dump or another table of the name carry
// the comment, and not the OID.
const markText = "Made by Loadstone: runs write to it without asking. loadstone:oid="

// footprintTimeout bounds finding out what statements write to.
const footprintTimeout = 30 * time.Second

// Mark implements target.TableMarker.
func (d *database) Mark(ctx context.Context, table string) error {
	text, err := d.MarkSQL(ctx, table)
	if err != nil {
		return err
	}
	if err := d.Exec(ctx, text); err != nil {
		return fmt.Errorf("marking %s: %w", table, err)
	}
	return nil
}

// MarkSQL implements target.TableMarker.
func (d *database) MarkSQL(ctx context.Context, table string) (string, error) {
	rs,
		err := d.Query(ctx, `SELECT c.oid::int8, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r','p')`, table)
	if err == nil {
		err = shaped(rs, 2)
	}
	if err != nil {
		return "", fmt.Errorf("marking %s: %w", table, err)
	}
	if len(rs.Rows) == 0 {
		return "", fmt.Errorf("marking %s: there is no such table", table)
	}
	oid, _ := rs.Rows[0][0].(int64)
	name, _ := rs.Rows[0][1].(string)
	return "COMMENT ON TABLE " + name + " IS '" + markText + strconv.FormatInt(oid, 10) + "'", nil
}

// ownCondition tells of a row c of pg_class whether Loadstone made it.
const ownCondition = `coalesce(pg_catalog.obj_description(c.oid, 'pg_class') = '` + markText +
	`' || c.oid::text, false)`

// Owned implements target.TableMarker.
func (d *database) Owned(ctx context.Context, tables ...string) ([]bool, error) {
	own := make([]bool, len(tables))
	for i, table := range tables {
		rs, err := d.Query(ctx, "SELECT "+ownCondition+" FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass($1)",
			table)
		if err == nil {
			err = shaped(rs, 1)
		}
		if err != nil {
			return nil, fmt.Errorf("asking who made %s: %w", table, err)
		}
		if len(rs.Rows) == 1 {
			own[i], _ = rs.Rows[0][0].(bool)
		}
	}
	return own, nil
}

// Writes implements target.TableMarker. The server's own planner says what a statement
// writes to, behind views, rules and common table expressions too; what it leaves
// open (procedures, and functions that may write) is named as such.
func (d *database) Writes(ctx context.Context, statements []engine.Statement) ([]target.WriteTarget, error) {
	ctx, cancel := context.WithTimeout(ctx, footprintTimeout)
	defer cancel()
	c, err := d.borrow(ctx)
	if err != nil {
		return nil, err
	}
	defer d.give(c)
	// One transaction: behind a pooler nothing else would have one session. Plans that
	// know no values do not depend on those that are given here.
	defer func() {
		if !c.IsClosed() {
			_ = execAll(context.WithoutCancel(ctx), c, "ROLLBACK") // give closes the connection otherwise
		}
	}()
	if err := eachAlone(ctx, c, "BEGIN READ ONLY", "SET LOCAL plan_cache_mode = force_generic_plan",
		"SET LOCAL lock_timeout = 5000"); err != nil {
		return nil, fmt.Errorf("looking for what is written: %w", err)
	}
	f := &footprint{c: c, places: map[string]int{}}
	for i := range statements {
		if err := f.addStatement(ctx, &statements[i]); err != nil {
			return nil, fmt.Errorf("looking for what the statement %s writes: %w", statements[i].ID, err)
		}
	}
	for i := range f.list {
		if err := f.describe(ctx, &f.list[i]); err != nil {
			return nil, fmt.Errorf("looking at what is written: %w", err)
		}
	}
	return f.list, nil
}

// eachAlone executes statements one by one: Pgpool sends a text of several to the primary alone, and what follows, such as
// SAVEPOINT, to its standbys too, which have no transaction then.
func eachAlone(ctx context.Context, c *pgconn.PgConn, statements ...string) error {
	for _, sql := range statements {
		if err := execAll(ctx, c, sql); err != nil {
			return err
		}
	}
	return nil
}

// footprint gathers what statements write to.
type footprint struct {
	c      *pgconn.PgConn
	list   []target.WriteTarget
	places map[string]int
}

func (f *footprint) add(table string, opaque bool, operation, statement string) {
	at, known := f.places[table]
	if !known {
		at = len(f.list)
		f.places[table] = at
		f.list = append(f.list, target.WriteTarget{Table: table, Opaque: opaque, Rows: -1, Cascades: []string{}})
	}
	w := &f.list[at]
	if !slices.Contains(w.Operations, operation) {
		w.Operations = append(w.Operations, operation)
	}
	if !slices.Contains(w.Statements, statement) {
		w.Statements = append(w.Statements, statement)
	}
}

// planned begin the statements that a plan says everything of; what others do, a
// DO block most of all, is not known.
var planned = []string{"SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "SHOW", "EXPLAIN",
	"SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "LOCK", "DECLARE", "FETCH", "MOVE", "CLOSE"}

// addStatement adds what one statement writes to.
func (f *footprint) addStatement(ctx context.Context, s *engine.Statement) error {
	if n, ok := sqltext.Names(s.SQL); ok {
		// The values of the EXECUTE may call functions; what it does is what was prepared.
		tokens, err := sqltext.Tokens(n.Execute, sqltext.Postgres)
		if err == nil {
			err = f.functions(ctx, s.ID, tokens)
		}
		if err != nil {
			return err
		}
		body := *s
		body.SQL = n.Body
		s = &body
	}
	tokens, err := sqltext.Tokens(s.SQL, sqltext.Postgres)
	if err != nil || len(tokens) == 0 {
		return nil //nolint:nilerr // the server will refuse it
	}
	known := len(f.list)
	if err := f.functions(ctx, s.ID, tokens); err != nil {
		return err
	}
	first := slices.IndexFunc(tokens, func(t sqltext.Token) bool { return !t.Is("(") })
	if inner, reads := copied(tokens); reads {
		// COPY … TO STDOUT does what its query does, and reads a table that it names.
		if len(inner) == 0 {
			return nil
		}
		query := *s
		query.SQL = s.SQL[:inner[len(inner)-1].End]
		query.SQL = strings.Repeat(" ", inner[0].At) + query.SQL[inner[0].At:] // tokens keep their places
		s, tokens, first = &query, inner, 0
	}
	_, rows := sqltext.Fields(s.SQL)
	if verb := tokens[max(first, 0)].Upper(); !rows && !slices.Contains(planned, verb) && len(f.list) == known {
		f.add("the statement "+s.ID, true, verb, s.ID)
	}
	if !slices.ContainsFunc(tokens, func(t sqltext.Token) bool {
		return slices.Contains([]string{"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "CREATE", "ALTER", "DROP",
			"REFRESH", "LOCK"}, t.Upper())
	}) {
		return nil
	}
	seen, err := f.plan(ctx, s, tokens)
	if err != nil {
		return err
	}
	// A table of the catalog counts by its name, too, whatever the planner makes of it:
	// its views have rules that do more than a plan shows.
	for _, name := range targets(tokens) {
		rs,
			err := f.query(
			ctx,
			`SELECT n.nspname, c.relname, c.oid::int8 < 16384 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = pg_catalog.to_regclass($1)`,
			3,
			name.sql,
		)
		if err != nil {
			return err
		}
		if rs == nil || len(rs.Rows) != 1 {
			continue
		}
		schema, _ := rs.Rows[0][0].(string)
		table, _ := rs.Rows[0][1].(string)
		if system, _ := rs.Rows[0][2].(bool); system || !seen {
			f.add(quoteName(schema)+"."+quoteName(table), false, name.operation, s.ID)
		}
	}
	return nil
}

// plan adds the tables that the server's plan of a statement modifies; it is false where there is none.
func (f *footprint) plan(ctx context.Context, s *engine.Statement, tokens []sqltext.Token) (bool, error) {
	params := 0
	for _, t := range tokens {
		if n, err := strconv.Atoi(strings.TrimPrefix(t.Text, "$")); t.Kind == sqltext.Param && err == nil {
			params = max(params, n)
		}
	}
	if len(sqltext.Statements(tokens)) != 1 || params > 10_000 {
		return false, nil
	}
	if err := execAll(ctx, f.c, "SAVEPOINT loadstone_plan"); err != nil {
		return false, err
	}
	plans, refused := f.explain(ctx, s.SQL[:tokens[len(tokens)-1].End], params)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err := eachAlone(ctx, f.c, "ROLLBACK TO loadstone_plan", "RELEASE loadstone_plan"); err != nil {
		return false, err
	}
	rs, err := f.query(ctx, "SELECT 1 FROM pg_catalog.pg_prepared_statements WHERE name = 'loadstone_plan'", 1)
	if err == nil && rs != nil && len(rs.Rows) == 1 {
		err = execAll(ctx, f.c, "DEALLOCATE loadstone_plan")
	}
	if err != nil {
		return false, err
	}
	if refused != nil {
		return false, nil //nolint:nilerr // preparing it for the load says why
	}
	var doc []struct {
		Plan planNode `json:"Plan"`
	}
	if err := json.Unmarshal(plans, &doc); err != nil {
		return false, nil //nolint:nilerr // a rule that does nothing has a text instead of a plan
	}
	for i := range doc {
		f.walk(&doc[i].Plan, s.ID)
	}
	return true, nil
}

// explain is the plan of a statement, as JSON. It leaves a prepared statement behind.
func (f *footprint) explain(ctx context.Context, sql string, params int) ([]byte, error) {
	if err := execAll(ctx, f.c, "PREPARE loadstone_plan AS "+strings.TrimRight(sql, "; \n\t\r")); err != nil {
		return nil, err
	}
	args := ""
	if params > 0 {
		args = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", params), ", ") + ")"
	}
	results, err := f.c.Exec(ctx, "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) EXECUTE loadstone_plan"+args).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
		return nil, fmt.Errorf("%d results for one plan", len(results))
	}
	return results[0].Rows[0][0], nil
}

// planNode is a node of EXPLAIN's JSON.
type planNode struct {
	Type      string     `json:"Node Type"`
	Operation string     `json:"Operation"`
	Schema    string     `json:"Schema"`
	Relation  string     `json:"Relation Name"`
	Conflict  string     `json:"Conflict Resolution"`
	Plans     []planNode `json:"Plans"`
}

func (f *footprint) walk(n *planNode, statement string) {
	if n.Type == "ModifyTable" || n.Relation != "" &&
		slices.Contains([]string{"Insert", "Update", "Delete", "Merge"}, n.Operation) {
		table := quoteName(n.Schema) + "." + quoteName(n.Relation)
		f.add(table, false, strings.ToUpper(n.Operation), statement)
		if strings.EqualFold(n.Conflict, "UPDATE") {
			f.add(table, false, "UPDATE", statement)
		}
	}
	for i := range n.Plans {
		f.walk(&n.Plans[i], statement)
	}
}

// quoteName quotes a name where it needs it, nearly as quote_ident does: describe
// brings it to the server's form.
func quoteName(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// written is a table that a statement names as its target.
type written struct{ sql, operation string }

// targets are the tables behind the words that write.
func targets(tokens []sqltext.Token) []written {
	var list []written
	word := func(i int) string {
		if i >= 0 && i < len(tokens) {
			return tokens[i].Upper()
		}
		return ""
	}
	for i := range tokens {
		at, operation := i+1, word(i)
		switch {
		case operation == "LOCK" && i == 0:
			return locked(tokens)
		case operation == "COPY" && i == 0: // FROM STDIN: every other one is opaque, or a query
			operation = "INSERT"
		case (operation == "INSERT" || operation == "MERGE") && word(i+1) == "INTO", operation == "DELETE" &&
			word(i+1) == "FROM", operation == "TRUNCATE" && word(i+1) == "TABLE":
			at++
		case operation == "TRUNCATE", operation == "UPDATE" && word(i-1) != "FOR" && word(i-1) != "KEY" &&
			word(i-1) != "DO" && word(i-1) != "THEN" && word(i-1) != "ON":
		default:
			continue
		}
		if word(at) == "ONLY" {
			at++
		}
		if name, _ := nameAt(tokens, at); name != "" {
			list = append(list, written{name, operation})
		}
	}
	return list
}

// locked are the tables that a LOCK keeps others from writing to, or from reading: all modes but the two that reading
// takes do.
func locked(tokens []sqltext.Token) []written {
	var list []written
	at := 1
	if tokens[min(at, len(tokens)-1)].Upper() == "TABLE" {
		at++
	}
	for at < len(tokens) {
		if tokens[at].Upper() == "ONLY" {
			at++
		}
		name, end := nameAt(tokens, at)
		if name == "" {
			break
		}
		list = append(list, written{name, "LOCK"})
		if at = end; at < len(tokens) && tokens[at].Is("*") {
			at++
		}
		if at >= len(tokens) || !tokens[at].Is(",") {
			break
		}
		at++
	}
	if at+2 < len(tokens) && tokens[at].Upper() == "IN" && tokens[at+2].Upper() == "SHARE" &&
		slices.Contains([]string{"ACCESS", "ROW"}, tokens[at+1].Upper()) &&
		(at+3 >= len(tokens) || tokens[at+3].Upper() == "MODE") {
		return nil // ACCESS SHARE as SELECT takes it, ROW SHARE as SELECT … FOR UPDATE does
	}
	return list
}

// copied are the tokens of the query of a COPY … TO STDOUT, none where it names a table; reads is false for any other
// statement.
func copied(tokens []sqltext.Token) (query []sqltext.Token, reads bool) {
	if tokens[0].Upper() != "COPY" || len(sqltext.Statements(tokens)) != 1 {
		return nil, false
	}
	depth, end := 0, 0
	for i, t := range tokens {
		switch {
		case t.Is("("):
			depth++
		case t.Is(")"):
			if depth--; depth == 0 && end == 0 {
				end = i
			}
		case depth == 0 && t.Upper() == "TO":
			if i+1 >= len(tokens) || tokens[i+1].Upper() != "STDOUT" {
				return nil, false
			}
			if len(tokens) > 1 && tokens[1].Is("(") {
				query = tokens[2:end]
			}
			return query, true
		}
	}
	return nil, false
}

// nameAt is the name, with its schema, that begins at a token, quoted, and the place behind it.
func nameAt(tokens []sqltext.Token, at int) (string, int) {
	var parts []string
	for at < len(tokens) {
		name, ok := tokens[at].Identifier()
		if !ok {
			return "", at
		}
		parts = append(parts, quoteName(name))
		at++
		if at >= len(tokens) || !tokens[at].Is(".") {
			break
		}
		at++
	}
	return strings.Join(parts, "."), at
}

// effects are the server's own functions, by the beginnings of their names, that change
// what outlives a statement: sequences, large objects, sessions of others, settings, files
// and slots of the server; or that execute a text, here or on another server.
var effects = []string{
	"setval", "nextval", "lo_", "lowrite", "pg_terminate_", "pg_cancel_", "pg_reload_conf", "pg_rotate_", "pg_promote",
	"pg_switch_", "pg_create_", "pg_drop_", "pg_copy_",
	"pg_backup_", "pg_start_backup", "pg_stop_backup", "pg_wal_replay_", "pg_replication_", "pg_logical_", "pg_file_",
	"pg_import_", "pg_stat_reset", "pg_stat_statements_reset",
	"pg_truncate_", "heap_force_", "binary_upgrade_", "query_to_xml", "dblink",
}

// effect says whether a quoted name, perhaps with its schema, may be one of effects.
func effect(name string) bool {
	bare := strings.Trim(name[strings.LastIndex(name, ".")+1:], `"`)
	return bare != "lo_get" && slices.ContainsFunc(effects, func(e string) bool { return strings.HasPrefix(bare, e) })
}

// functions adds the procedures that a statement calls, the functions of users
// that may write: those that are volatile, as functions are unless they are declared otherwise;
// and those of the server and its extensions that do more than read.
func (f *footprint) functions(ctx context.Context, statement string, tokens []sqltext.Token) error {
	for i := 0; i < len(tokens); i++ {
		name, end := nameAt(tokens, i)
		if name == "" || end >= len(tokens) || !tokens[end].Is("(") {
			i = max(i, end-1)
			continue
		}
		at := i
		i = end - 1
		rs,
			err := f.query(
			ctx,
			`SELECT DISTINCT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind <> 'a' AND p.provolatile = 'v' AND ($2 OR n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend e WHERE e.classid = 'pg_catalog.pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'))
 AND CASE WHEN $1 LIKE '%.%' THEN pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(p.proname) = $1 OR $1 = '"' || n.nspname || '"."' || p.proname || '"'
  ELSE $1 = '"' || p.proname || '"' AND pg_catalog.pg_function_is_visible(p.oid) END`,
			1,
			name,
			effect(name),
		)
		if err != nil {
			return err
		}
		if rs == nil {
			continue
		}
		for _, row := range rs.Rows {
			operation := "SELECT"
			if at > 0 && tokens[at-1].Upper() == "CALL" {
				operation = "CALL"
			}
			if called, ok := row[0].(string); ok {
				f.add(called, true, operation, statement)
			}
		}
	}
	return nil
}

// query runs a query of the catalog that has so many columns; nil when the server refuses it.
func (f *footprint) query(ctx context.Context, sql string, columns int, args ...any) (*target.ResultSet, error) {
	if err := execAll(ctx, f.c, "SAVEPOINT loadstone_ask"); err != nil {
		return nil, err
	}
	rs, err := query(ctx, f.c, sql, args)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if end := eachAlone(ctx, f.c, "ROLLBACK TO loadstone_ask", "RELEASE loadstone_ask"); end != nil {
		return nil, end
	}
	if err != nil || shaped(rs, columns) != nil {
		return nil, nil //nolint:nilerr,nilnil // what the catalog does not answer is not known
	}
	return rs, nil
}

// operations are in the order in which people name them.
var operations = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "LOCK", "SELECT", "CALL"}

// describe adds the facts of the catalog about a table.
func (f *footprint) describe(ctx context.Context, w *target.WriteTarget) error {
	slices.SortFunc(w.Operations,
		func(a, b string) int { return slices.Index(operations, a) - slices.Index(operations, b) })
	if w.Opaque {
		return nil
	}
	rs,
		err := f.query(
		ctx,
		`WITH RECURSIVE t AS (SELECT c.*, n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)),
 family(oid) AS (SELECT oid FROM t UNION SELECT i.inhrelid FROM family JOIN pg_catalog.pg_inherits i ON i.inhparent = family.oid),
 hit(oid) AS (SELECT oid FROM family UNION SELECT k.conrelid FROM hit JOIN pg_catalog.pg_constraint k ON k.confrelid = hit.oid AND k.contype = 'f' AND (k.confdeltype IN ('c','n','d') OR k.confupdtype IN ('c','n','d')))
SELECT pg_catalog.quote_ident(c.nspname) || '.' || pg_catalog.quote_ident(c.relname),
 `+ownCondition+`,
 c.oid::int8 < 16384 OR c.nspname IN ('pg_catalog', 'information_schema') OR c.nspname LIKE 'pg\_toast%',
 (SELECT coalesce(sum(p.reltuples) FILTER (WHERE p.reltuples >= 0), 0)::int8 FROM pg_catalog.pg_class p WHERE p.relkind <> 'p' AND (p.oid = c.oid OR p.oid IN (SELECT relid FROM pg_catalog.pg_partition_tree(c.oid)))),
 (SELECT count(*)::int8 FROM pg_catalog.pg_trigger g WHERE g.tgrelid IN (SELECT oid FROM family) AND NOT g.tgisinternal AND g.tgenabled <> 'D' AND coalesce(pg_catalog.to_jsonb(g) ->> 'tgparentid', '0') = '0'),
 c.relrowsecurity,
 (SELECT pg_catalog.string_agg(CASE WHEN m.nspname = c.nspname THEN '' ELSE pg_catalog.quote_ident(m.nspname) || '.' END || pg_catalog.quote_ident(h.relname), E'\n' ORDER BY h.relname)
  FROM hit JOIN pg_catalog.pg_class h ON h.oid = hit.oid JOIN pg_catalog.pg_namespace m ON m.oid = h.relnamespace WHERE h.oid NOT IN (SELECT oid FROM family) AND NOT h.relispartition),
 (SELECT count(*) - 1 FROM family)::int8, c.relkind = 'p',
 (SELECT s.srvname FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = c.oid)::text, c.relkind = 'v'
FROM t c`,
		11,
		w.Table,
	)
	if err != nil || rs == nil || len(rs.Rows) == 0 {
		return err
	}
	row := rs.Rows[0]
	quoted := w.Table
	w.Table, _ = row[0].(string)
	w.Own, _ = row[1].(bool)
	w.System, _ = row[2].(bool)
	w.Rows, _ = row[3].(int64)
	triggers, _ := row[4].(int64)
	w.Triggers = int(triggers)
	w.RowSecurity, _ = row[5].(bool)
	if names, _ := row[6].(string); names != "" {
		w.Cascades = strings.Split(names, "\n")
	}
	children, _ := row[7].(int64)
	if partitioned, _ := row[8].(bool); partitioned {
		w.Partitions = int(children)
	} else {
		w.Children = int(children)
	}
	w.ForeignServer, _ = row[9].(string)
	w.View, _ = row[10].(bool)
	if w.Rows == 0 && !w.System {
		// Never analysed, or empty: a look at the first million is quick.
		w.Rows = -1
		if rs, err := f.query(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+quoted+" LIMIT 1000001) AS s", 1); err != nil {
			return err
		} else if rs != nil && len(rs.Rows) == 1 {
			w.Rows, _ = rs.Rows[0][0].(int64)
		}
	}
	return nil
}
