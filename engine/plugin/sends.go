package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// Sends is the SQL that an adapter may send, as patterns. It is what a user
// approves when the plugin is enabled: an answer beyond it ends the run.
//
// A pattern is SQL, compared word by word, in any case, with places in it:
//
//	{name}   a name, with its schema
//	{table}  a name that is one of the run's tables, or that has loadstone_ in it
//	{value}  a constant or a parameter
//	{*}      anything but the end of the statement, in whole parentheses
//	{reads a b.c *.d}  the same, as far as its relations are the run's tables or listed, and its functions listed
//	{names}  names with commas between them
type Sends struct {
	// Query are what OpInspect, OpPreflight and the like ask; beyond the patterns, a query only reads.
	Query []string `json:"query,omitempty"`
	// Statements are those of the workload, where the adapter writes their SQL. What the
	// workload brings is the workload's, word for word. None means those of DefaultSends.
	Statements []string `json:"statements,omitempty"`
	// DDL are ddl, after_load, swap and generate.
	DDL []string `json:"ddl,omitempty"`
	// Session are what runs on every connect; beyond the patterns, only settings that are listed are set.
	Session []string `json:"session,omitempty"`
}

// DefaultSends is what an adapter may send that declares nothing: it reads, and makes the run's tables.
var DefaultSends = Sends{
	Query: []string{"SELECT {*}", "({*}) {*}", "WITH {*}", "SHOW {*}", "VALUES {*}", "EXPLAIN {*}", "TABLE {name}"},
	Statements: []string{"SELECT {reads}", "INSERT INTO {table} {reads}", "UPDATE {table} SET {reads}",
		"DELETE FROM {table} {reads}", "MERGE INTO {table} {reads}"},
	DDL: []string{"CREATE TABLE {table} {*}", "CREATE {name} TABLE {table} {*}", "CREATE OR REPLACE TABLE {table} {*}",
		"CREATE OR REPLACE {name} TABLE {table} {*}",
		"CREATE TABLE IF NOT EXISTS {table} {*}", "CREATE INDEX ON {table} {*}", "CREATE INDEX {name} ON {table} {*}",
		"CREATE UNIQUE INDEX ON {table} {*}", "CREATE UNIQUE INDEX {name} ON {table} {*}",
		"ALTER TABLE {table} {*}", "DROP TABLE {table}", "DROP TABLE IF EXISTS {table}", "TRUNCATE TABLE {table}",
		"INSERT INTO {table} {*}", "COMMENT ON TABLE {table} IS {value}",
		"ANALYZE {table}", "VACUUM {table}", "VACUUM ({*}) {table}"},
	Session: []string{"SET {*}", "ALTER SESSION SET {*}"},
}

// Patterns are the patterns that hold for a manifest.
func (m *Manifest) Patterns() Sends {
	if m.Sends == nil {
		return DefaultSends
	}
	declared := *m.Sends
	if len(declared.Statements) == 0 {
		declared.Statements = DefaultSends.Statements
	}
	return declared
}

const (
	maxPatterns = 200
	maxPattern  = 4000
)

// Check refuses patterns that cannot be used, or that allow everything.
func (s *Sends) Check() error {
	for _, list := range [][]string{s.Query, s.Statements, s.DDL, s.Session} {
		if len(list) > maxPatterns {
			return fmt.Errorf("%d patterns are more than the %d allowed", len(list), maxPatterns)
		}
		for _, text := range list {
			if len(text) > maxPattern {
				return fmt.Errorf("a pattern of %d bytes is longer than %d", len(text), maxPattern)
			}
			p, err := compile(text)
			if err != nil {
				return fmt.Errorf("the pattern %q: %w", text, err)
			}
			if p[0].place != "" {
				return fmt.Errorf("the pattern %q does not begin with a word of SQL, and would allow anything", text)
			}
		}
	}
	return nil
}

// part is a token of a pattern, or a place: name, names, table, value, reads or *.
type part struct {
	token sqltext.Token
	place string
	// reads are the relations and functions of a place {reads …}.
	reads []string
}

func compile(text string) ([]part, error) {
	tokens, err := sqltext.Tokens(text, sqltext.Postgres)
	if err != nil {
		return nil, err
	}
	var list []part
	for i := 0; i < len(tokens); i++ {
		if p, taken := placeAt(text, tokens[i:]); taken > 0 {
			if !slices.Contains([]string{"name", "names", "table", "value", "reads", "*"}, p.place) {
				return nil, fmt.Errorf("{%s} is no place; {name}, {names}, {table}, {value}, {reads …} and {*} are", p.place)
			}
			list = append(list, p)
			i += taken - 1
			continue
		}
		list = append(list, part{token: tokens[i]})
	}
	if len(list) == 0 {
		return nil, errors.New("it is empty")
	}
	return list, nil
}

// Allows reports whether a text is one statement that a pattern of the list
// describes. tables are the names of the run's tables, as the user wrote them.
func Allows(patterns []string, sql, dialect string, tables []string) bool {
	return Allowing(patterns, sql, dialect, tables) >= 0
}

// Allowing is the first of the patterns that Allows a text, -1 where none does.
func Allowing(patterns []string, sql, dialect string, tables []string) int {
	tokens, err := sqltext.Tokens(sql, sqltext.DialectOf(dialect))
	if err != nil {
		return -1
	}
	list := sqltext.Statements(tokens)
	if len(list) != 1 {
		return -1
	}
	m := matcher{tokens: list[0], tables: tables}
	return slices.IndexFunc(patterns, func(text string) bool {
		p, err := compile(text)
		return err == nil && m.match(p, 0)
	})
}

type matcher struct {
	tokens []sqltext.Token
	tables []string
}

// match reports whether the tokens from at on are what the pattern says.
func (m *matcher) match(p []part, at int) bool {
	for i, t := range p {
		switch t.place {
		case "name", "table":
			end, last := m.name(at)
			if end == at || t.place == "table" && !m.known(last) {
				return false
			}
			at = end
		case "names":
			if at = m.names(at); at < 0 {
				return false
			}
		case "value":
			if at = m.value(at); at < 0 {
				return false
			}
		case "*", "reads":
			if i == len(p)-1 {
				return t.place == "*" || m.reads(t.reads, at, len(m.tokens), i > 0 && p[i-1].place == "table")
			}
			return m.anything(p[i:], at, i > 0 && p[i-1].place == "table")
		default:
			if at >= len(m.tokens) || !same(t.token, m.tokens[at]) {
				return false
			}
			at++
		}
	}
	return at == len(m.tokens)
}

// names reads names with commas between them, and returns where they end; -1 where there are none.
func (m *matcher) names(at int) int {
	for {
		end, _ := m.name(at)
		if end == at {
			return -1
		}
		if at = end; at >= len(m.tokens) || !m.tokens[at].Is(",") {
			return at
		}
		at++
	}
}

// value reads a value with its sign, and returns where it ends; -1 where there is none.
func (m *matcher) value(at int) int {
	if at < len(m.tokens) && (m.tokens[at].Is("-") || m.tokens[at].Is("+")) {
		at++
	}
	if at >= len(m.tokens) || m.tokens[at].Kind == sqltext.Symbol || m.tokens[at].Kind == sqltext.Name {
		return -1
	}
	return at + 1
}

// anything lets {*} or {reads} take as many tokens as the rest of the pattern leaves, and no
// parenthesis that closes what was opened before it.
func (m *matcher) anything(p []part, at int, joined bool) bool {
	depth := 0
	for from := at; ; at++ {
		if depth == 0 && m.match(p[1:], at) && (p[0].place == "*" || m.reads(p[0].reads, from, at, joined)) {
			return true
		}
		if at >= len(m.tokens) {
			return false
		}
		switch {
		case m.tokens[at].Is("("):
			depth++
		case m.tokens[at].Is(")"):
			if depth--; depth < 0 {
				return false
			}
		}
	}
}

// name reads a name with its schema, and returns where it ends and its last part.
func (m *matcher) name(at int) (end int, last string) {
	for at < len(m.tokens) {
		name, ok := m.tokens[at].Identifier()
		if !ok {
			return at, last
		}
		last = name
		at++
		if at >= len(m.tokens) || !m.tokens[at].Is(".") {
			break
		}
		at++
	}
	return at, last
}

// known reports that a name is one of the run's tables, or of the working tables beside them.
func (m *matcher) known(last string) bool {
	return strings.Contains(strings.ToLower(last), "loadstone_") ||
		slices.ContainsFunc(m.tables, func(t string) bool { return strings.EqualFold(lastPart(t), last) })
}

// lastPart is the table's own name in a name that a user wrote.
func lastPart(name string) string {
	name = strings.TrimSpace(name)
	if inner, quoted := strings.CutSuffix(name, `"`); quoted {
		for at := len(inner) - 1; at >= 0; at-- {
			if inner[at] != '"' {
				continue
			}
			if at > 0 && inner[at-1] == '"' {
				at--
				continue
			}
			return strings.ReplaceAll(inner[at+1:], `""`, `"`)
		}
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

func same(pattern, token sqltext.Token) bool {
	if pattern.Kind == sqltext.Word && token.Kind == sqltext.Word {
		return strings.EqualFold(pattern.Text, token.Text)
	}
	return pattern.Kind == token.Kind && pattern.Text == token.Text
}
