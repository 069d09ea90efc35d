package snowflake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// markText is the comment of a table that Loadstone made. It ends with the moment at
// which the account made that very table: CLONE and LIKE carry a comment, and so may a
// script that makes the table again, but none of them carries CREATED_ON.
const markText = "Made by Loadstone: runs write to it without asking. loadstone:created_on="

var _ target.TableMarker = (*database)(nil)

// markTimeout bounds what Writes asks of the account.
const markTimeout = 30 * time.Second

// errNoIdentity is the error of marking on a server that gives all tables one age.
var errNoIdentity = errors.New("the server does not say when it made the table, so a mark on it would hold for any " +
	"other of the name")

// tableName is a table's complete name, as the account has it.
type tableName struct{ database, schema, table string }

// sql is the name, quoted.
func (p tableName) sql() string {
	return quoteName(p.database) + "." + quoteName(p.schema) + "." + quoteName(p.table)
}

// display is the name as people write it: quoted only where it must be.
func (p tableName) display() string {
	parts := []string{p.database, p.schema, p.table}
	for i, part := range parts {
		if !ordinary(part) {
			parts[i] = quoteName(part)
		}
	}
	return strings.Join(parts, ".")
}

// ordinary reports a name that needs no quotes.
func ordinary(name string) bool {
	for i, c := range name {
		if (c < 'A' || c > 'Z') && c != '_' && (i == 0 || (c < '0' || c > '9') && c != '$') {
			return false
		}
	}
	return name != ""
}

// system reports the account's own views and tables.
func (p tableName) system() bool {
	return p.schema == "INFORMATION_SCHEMA" || p.database == "SNOWFLAKE"
}

// tableRow is what SHOW TABLES says of a table.
type tableRow struct {
	comment, created string
	rows             int64
}

// own reports that Loadstone made the table.
func (s *tableRow) own() bool {
	return s != nil && s.created != "" && s.comment == markText+s.created
}

// likePattern writes a constant for LIKE that matches the name alone, but for its case.
func likePattern(name string) string {
	name = strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(name)
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(name) + "'"
}

// show looks at a table, without a warehouse; nil when there is none that the role sees.
func (d *database) show(ctx context.Context, p tableName) (*tableRow, error) {
	rs, err := d.Query(ctx, "SHOW TABLES LIKE "+likePattern(p.table)+" IN SCHEMA "+quoteName(p.database)+"."+
		quoteName(p.schema))
	if noSuchObject(err) {
		return nil, nil //nolint:nilnil // there is no such schema, and no table in it
	}
	if err != nil {
		return nil, err
	}
	at := func(column string) int {
		return slices.IndexFunc(rs.Columns, func(c string) bool { return strings.EqualFold(c, column) })
	}
	name, comment, created, rows := at("name"), at("comment"), at("created_on"), at("rows")
	if name < 0 || comment < 0 || created < 0 {
		return nil, fmt.Errorf("SHOW TABLES has the columns %s only", strings.Join(rs.Columns, ", "))
	}
	for _, row := range rs.Rows {
		if row[name] != p.table {
			continue // LIKE ignores case
		}
		s := &tableRow{rows: -1}
		s.comment, _ = row[comment].(string)
		if when, ok := row[created].(time.Time); ok && when.Unix() > 0 {
			s.created = when.UTC().Format("2006-01-02T15:04:05.000000Z")
		}
		if rows >= 0 {
			if n, ok := row[rows].(int64); ok {
				s.rows = n
			}
		}
		return s, nil
	}
	return nil, nil //nolint:nilnil // that is an answer
}

// located reads a table's name as an adapter or a user wrote it, and completes it
// with what the session uses; ok is false where that names no table.
func (d *database) located(ctx context.Context, parts []string) (p tableName, ok bool, err error) {
	if len(parts) == 0 || len(parts) > 3 {
		return p, false, nil
	}
	p.table = parts[len(parts)-1]
	if len(parts) > 1 {
		p.schema = parts[len(parts)-2]
	}
	if len(parts) == 3 {
		p.database = parts[0]
		if p.schema == "" { // database..table
			p.schema = "PUBLIC"
		}
		return p, true, nil
	}
	rs, err := d.Query(ctx, "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA()")
	if err != nil {
		return p, false, err
	}
	if len(rs.Rows) == 1 && len(rs.Rows[0]) == 2 {
		p.database, _ = rs.Rows[0][0].(string)
		if p.schema == "" {
			p.schema, _ = rs.Rows[0][1].(string)
		}
	}
	return p, p.database != "" && p.schema != "", nil
}

// named reads the name of one table.
func (d *database) named(ctx context.Context, table string) (tableName, error) {
	tokens, err := sqltext.Tokens(table, sqltext.Snowflake)
	if err != nil {
		return tableName{}, fmt.Errorf("the name %s: %w", table, err)
	}
	parts, end := nameAt(tokens, 0)
	p, ok, err := d.located(ctx, parts)
	if err == nil && (!ok || end != len(tokens)) {
		err = fmt.Errorf("%q names no table", table)
	}
	return p, err
}

// Mark implements target.TableMarker.
func (d *database) Mark(ctx context.Context, table string) error {
	sql, err := d.MarkSQL(ctx, table)
	if err != nil {
		return err
	}
	if err := d.Exec(ctx, sql); err != nil {
		return fmt.Errorf("marking %s: %w", table, err)
	}
	return nil
}

// MarkSQL implements target.TableMarker.
func (d *database) MarkSQL(ctx context.Context, table string) (string, error) {
	p, err := d.named(ctx, table)
	if err != nil {
		return "", fmt.Errorf("marking %s: %w", table, err)
	}
	s, err := d.show(ctx, p)
	switch {
	case err != nil:
	case s == nil:
		err = errors.New("there is no such table")
	case s.created == "":
		err = errNoIdentity
	}
	if err != nil {
		return "", fmt.Errorf("marking %s: %w", table, err)
	}
	return "COMMENT ON TABLE " + p.sql() + " IS '" + markText + s.created + "'", nil
}

// Owned implements target.TableMarker.
func (d *database) Owned(ctx context.Context, tables ...string) ([]bool, error) {
	own := make([]bool, len(tables))
	for i, table := range tables {
		p, err := d.named(ctx, table)
		if err != nil {
			return nil, fmt.Errorf("asking who made %s: %w", table, err)
		}
		s, err := d.show(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("asking who made %s: %w", table, err)
		}
		own[i] = s.own()
	}
	return own, nil
}

// Writes implements target.TableMarker. Snowflake's views take no writes, its functions make
// none, and it has no triggers, rules or cascades: what the words of a statement name is
// all that it writes. What they leave open (procedures, names that are computed) is opaque.
func (d *database) Writes(ctx context.Context, statements []engine.Statement) ([]target.WriteTarget, error) {
	ctx, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	f := &footprint{d: d, places: map[string]int{}}
	for i := range statements {
		if err := f.addStatement(ctx, &statements[i]); err != nil {
			return nil, fmt.Errorf("looking for what the statement %s writes: %w", statements[i].ID, err)
		}
	}
	for i := range f.list {
		slices.SortFunc(f.list[i].Operations,
			func(a, b string) int { return slices.Index(operations, a) - slices.Index(operations, b) })
	}
	return f.list, nil
}

// operations are in the order in which people name them.
var operations = []string{"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "CALL"}

// footprint gathers what statements write to.
type footprint struct {
	d      *database
	list   []target.WriteTarget
	places map[string]int
}

func (f *footprint) add(w target.WriteTarget, operation, statement string) {
	at, known := f.places[w.Table]
	if !known {
		at = len(f.list)
		f.places[w.Table] = at
		w.Cascades = []string{}
		f.list = append(f.list, w)
	}
	have := &f.list[at]
	if !slices.Contains(have.Operations, operation) {
		have.Operations = append(have.Operations, operation)
	}
	if !slices.Contains(have.Statements, statement) {
		have.Statements = append(have.Statements, statement)
	}
}

// plain begin the statements whose words tell all that they write. A CALL, an EXECUTE
// IMMEDIATE or DDL does what nobody can see from here.
var plain = []string{"SELECT", "WITH", "VALUES", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "LIST", "LS", "INSERT",
	"UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY",
	"SET", "UNSET", "USE", "BEGIN", "START", "COMMIT", "ROLLBACK"}

// addStatement adds what one statement writes to.
func (f *footprint) addStatement(ctx context.Context, s *engine.Statement) error {
	tokens, err := sqltext.Tokens(s.SQL, sqltext.Snowflake)
	if err != nil || len(tokens) == 0 {
		return nil //nolint:nilerr // the account will refuse it
	}
	opaque := func(operation string) {
		f.add(target.WriteTarget{Table: "the statement " + s.ID, Opaque: true, Rows: -1}, operation, s.ID)
	}
	first := max(slices.IndexFunc(tokens, func(t sqltext.Token) bool { return !t.Is("(") }), 0)
	if verb := tokens[first].Upper(); !slices.Contains(plain, verb) {
		opaque(verb)
		return nil
	}
	// The pipe between statements lets any of them follow, and WITH … AS PROCEDURE a CALL.
	for i := range tokens {
		if i > first && (tokens[i].Upper() == "CALL" || strings.Contains(s.SQL, "->>") &&
			slices.Contains([]string{"EXECUTE", "CREATE", "ALTER", "DROP", "UNDROP"}, tokens[i].Upper())) {
			opaque(tokens[i].Upper())
			return nil
		}
	}
	for _, w := range targets(tokens) {
		if w.name == nil {
			opaque(w.operation)
			continue
		}
		p, ok, err := f.d.located(ctx, w.name)
		if err != nil {
			return err
		}
		if !ok {
			continue // the account will refuse it
		}
		if p.system() {
			f.add(target.WriteTarget{Table: p.display(), System: true, Rows: -1}, w.operation, s.ID)
			continue
		}
		t, err := f.d.show(ctx, p)
		if err != nil {
			return err
		}
		if t != nil {
			f.add(target.WriteTarget{Table: p.display(), Own: t.own(), Rows: t.rows}, w.operation, s.ID)
		}
	}
	return nil
}

// written is a table that a statement names as its target; its name is nil where it is computed.
type written struct {
	name      []string
	operation string
}

// writeWords finds the words of a statement that write.
type writeWords struct {
	tokens []sqltext.Token
	// several: INSERT ALL … INTO a … INTO b
	several bool
}

func (w *writeWords) word(i int) string {
	if i >= 0 && i < len(w.tokens) {
		return w.tokens[i].Upper()
	}
	return ""
}

func (w *writeWords) is(i int, symbol string) bool {
	return i < len(w.tokens) && w.tokens[i].Is(symbol)
}

// at returns where the name of the table begins that the word at i writes to, and how; ok is false for other words.
func (w *writeWords) at(i int) (at int, operation string, ok bool) {
	at, operation = i+1, w.word(i)
	switch operation {
	case "INSERT":
		if w.word(at) == "OVERWRITE" {
			at++
		}
		w.several = w.several || w.word(at) == "ALL" || w.word(at) == "FIRST"
		return at + 1, operation, w.word(at) == "INTO" && !w.several
	case "INTO":
		return at, "INSERT", w.several
	case "MERGE", "COPY":
		return at + 1, operation, w.word(at) == "INTO" && !w.is(at+1, "@") // a stage
	case "DELETE":
		return at + 1, operation, w.word(at) == "FROM"
	case "TRUNCATE":
		if w.is(at, "(") {
			return at, operation, false // the function of that name
		}
		if w.word(at) == "TABLE" {
			at++
		}
		if w.word(at) == "IF" && w.word(at+1) == "EXISTS" {
			at += 2
		}
		return at, operation, true
	case "UPDATE":
		return at, operation, w.word(i-1) != "FOR" && at < len(w.tokens)
	}
	return at, operation, false
}

// targets are the tables behind the words that write.
func targets(tokens []sqltext.Token) (list []written) {
	w := writeWords{tokens: tokens}
	for i := range tokens {
		if w.word(i-1) == "THEN" && w.word(i) != "INTO" {
			continue // a branch of MERGE
		}
		at, operation, ok := w.at(i)
		if !ok {
			continue
		}
		name, end := nameAt(tokens, at)
		if len(name) == 1 && w.is(end, "(") && (w.word(at) == "IDENTIFIER" || w.word(at) == "TABLE") {
			name = nil
		}
		list = append(list, written{name, operation})
	}
	return list
}

// nameAt reads the name that begins at a token, part by part as the account has them,
// and the place behind it; nil when none does. Two dots leave the schema out.
func nameAt(tokens []sqltext.Token, at int) (parts []string, end int) {
	for at < len(tokens) {
		name, ok := tokens[at].Identifier()
		if !ok {
			return nil, at
		}
		if tokens[at].Kind == sqltext.Word {
			name = strings.ToUpper(tokens[at].Text)
		}
		parts = append(parts, name)
		at++
		if at >= len(tokens) || !tokens[at].Is(".") {
			return parts, at
		}
		at++
		if len(parts) == 1 && at < len(tokens) && tokens[at].Is(".") {
			parts = append(parts, "")
			at++
		}
	}
	return nil, at
}

// Swap implements target.Swapper. Each ALTER TABLE … SWAP WITH is one step of the
// account, and undoes itself: when one fails, those before it are done once more. What
// follows, dropping the old tables, happens when all new ones are in their place.
func (d *database) Swap(ctx context.Context, statements []string) error {
	var swaps, after []string
	for _, sql := range statements {
		if strings.Contains(sql, " SWAP WITH ") {
			swaps = append(swaps, sql)
		} else {
			after = append(after, sql)
		}
	}
	for i, sql := range swaps {
		if err := d.Exec(ctx, sql); err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
			defer cancel()
			for _, done := range slices.Backward(swaps[:i]) {
				err = errors.Join(err, d.Exec(undo, done))
			}
			return err
		}
	}
	return d.Exec(ctx, after...)
}
