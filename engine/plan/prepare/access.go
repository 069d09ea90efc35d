package prepare

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/sqltext"
)

// access tells what the run's statements do: the kinds of its operations, and for
// each table the rights that they need. Looking at a table reads it, so SELECT is always among
// them. Statements that the workload does not have on its own tables are left out.
func (r *resolved) access(ctx context.Context, sc engine.Scenario) (kinds []engine.Kind, list []plugin.TableAccess,
	err error) {
	list = make([]plugin.TableAccess, len(r.logical))
	for i := range r.logical {
		list[i] = plugin.TableAccess{Table: r.logical[i].Name, TableName: physical(sc, r.logical, r.logical[i]),
			Rights: []string{"SELECT"}}
	}
	wanted, err := r.workload.Statements(ctx, r.params, r.declaredTables(sc))
	if err != nil {
		// The workload does not go with its own table, and may go with the one that is there.
		return nil, list, ctx.Err()
	}
	dialect := r.adapter.Info().Manifest.Dialect
	for i := range wanted {
		if !slices.Contains(kinds, wanted[i].Kind) {
			kinds = append(kinds, wanted[i].Kind)
		}
		at := slices.IndexFunc(list, func(a plugin.TableAccess) bool { return a.Table == wanted[i].Table })
		if at < 0 && len(list) == 1 && wanted[i].Table == "" {
			at = 0
		}
		if at < 0 {
			continue
		}
		for _, right := range rightsOf(&wanted[i], dialect) {
			if !slices.Contains(list[at].Rights, right) {
				list[at].Rights = append(list[at].Rights, right)
			}
		}
	}
	return kinds, list, nil
}

// declaredTables are the tables as the workload declares them, before anybody has looked at the target.
func (r *resolved) declaredTables(sc engine.Scenario) []engine.Table {
	tables := make([]engine.Table, 0, len(r.logical))
	for i := range r.logical {
		t := declared(sc, &r.logical[i])
		t.Dialect = r.adapter.Info().Manifest.Dialect
		for _, c := range r.logical[i].Columns {
			t.Columns = append(t.Columns, engine.Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
		}
		tables = append(tables, t)
	}
	return tables
}

// verbs find what SQL does to a table. INSERT and TRUNCATE are functions of Snowflake's
// too, and a lock of rows is a right of UPDATE in Postgres only.
var verbs = []struct {
	right, dialect string
	text           *regexp.Regexp
}{
	{right: "INSERT", text: regexp.MustCompile(`(?i)\binsert\s+(?:into|overwrite)\b|\bthen\s+insert\b`)},
	{right: "UPDATE", text: regexp.MustCompile(`(?i)(?:^|[;(])\s*update\b|\b(?:do|then)\s+update\b|\)\s*update\b`)},
	{right: "UPDATE", dialect: "postgres", text: regexp.MustCompile(`(?i)\bfor\s+(?:no\s+key\s+)?update\b`)},
	{right: "DELETE", text: regexp.MustCompile(`(?i)\bdelete\s+from\b|\bthen\s+delete\b`)},
	{right: "TRUNCATE", text: regexp.MustCompile(`(?i)(?:^|;)\s*truncate\b`)},
}

// stripLiterals is a text without its comments and constants, which do nothing; one that
// cannot be read has nothing else.
func stripLiterals(sql, dialect string) string {
	tokens, err := sqltext.Tokens(sql, sqltext.DialectOf(dialect))
	if err != nil {
		return ""
	}
	words := make([]string, 0, len(tokens))
	for _, t := range tokens {
		switch t.Kind {
		case sqltext.Text:
			words = append(words, "''")
		case sqltext.Name:
			words = append(words, `""`)
		default:
			words = append(words, t.Text)
		}
	}
	return strings.Join(words, " ")
}

// rightsOf are the rights that a statement needs on its table, besides reading it.
func rightsOf(s *plugin.Statement, dialect string) []string {
	var rights []string
	if s.Kind.Write() {
		rights = append(rights, s.Kind.String())
	}
	text := stripLiterals(s.SQL[dialect], dialect)
	for _, v := range verbs {
		if (v.dialect == "" || v.dialect == dialect) && v.text.MatchString(text) && !slices.Contains(rights, v.right) {
			rights = append(rights, v.right)
		}
	}
	return rights
}
