package snowsim

import (
	"context"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// plain hands SQL to Postgres as it is: only parameters, sessions and
// transactions are Snowflake's. It is enough for tests of the protocol.
type plain struct{}

// Split implements plan.Translator; of quotes it knows the single ones.
func (plain) Split(sql string) ([]string, error) {
	var out []string
	from, quoted := 0, false
	for i, c := range sql + ";" {
		switch {
		case c == '\'':
			quoted = !quoted
		case c == ';' && !quoted:
			if part := strings.TrimSpace(sql[from:i]); part != "" {
				out = append(out, part)
			}
			from = i + 1
		}
	}
	return out, nil
}

// Plan implements plan.Translator.
func (plain) Plan(_ context.Context, _ *plan.Session, sql string, _ []plan.Bind) (*plan.Plan, error) {
	words := strings.Fields(sql)
	upper := strings.Fields(strings.ToUpper(sql))
	switch upper[0] {
	case "USE":
		if len(words) != 3 {
			return nil, plan.SyntaxError("syntax error line 1 at position 0 unexpected 'USE'.")
		}
		database, schema, both := strings.Cut(words[2], ".")
		a, b := stored(database), stored(schema)
		effect := map[string]plan.Effect{"DATABASE": {Database: &a}, "SCHEMA": {Schema: &a}, "ROLE": {Role: &a},
			"WAREHOUSE": {Warehouse: &a}}[upper[1]]
		if both {
			effect = plan.Effect{Database: &a, Schema: &b}
		}
		return &plan.Plan{Type: plan.Use, Effect: effect}, nil
	case "ALTER":
		if len(words) >= 4 && upper[1] == "SESSION" && upper[2] == "SET" {
			name, value, _ := strings.Cut(strings.Join(words[3:], " "), "=")
			set := map[string]string{strings.ToUpper(strings.TrimSpace(name)): strings.Trim(strings.TrimSpace(value), "'")}
			return &plan.Plan{Type: plan.AlterSession, Effect: plan.Effect{Set: set}}, nil
		}
	case "BEGIN":
		return &plan.Plan{Type: plan.TransactionType, Transaction: plan.Begin}, nil
	case "COMMIT":
		return &plan.Plan{Type: plan.TransactionType, Transaction: plan.Commit}, nil
	case "ROLLBACK":
		return &plan.Plan{Type: plan.TransactionType, Transaction: plan.Rollback}, nil
	}
	out := &plan.Plan{Type: plan.DDL}
	if kind, ok := map[string]plan.StatementType{"SELECT": plan.Select, "WITH": plan.Select, "VALUES": plan.Select,
		"INSERT": plan.Insert, "UPDATE": plan.Update, "DELETE": plan.Delete}[upper[0]]; ok {
		out.Type = kind
	}
	out.DDL = out.Type == plan.DDL
	var b strings.Builder
	inText := false
	for _, c := range strings.ReplaceAll(sql, "CURRENT_VERSION()", "'"+Version+"'") {
		if c == '\'' {
			inText = !inText
		}
		if c == '?' && !inText {
			out.Params = append(out.Params, plan.Param{Bind: len(out.Params)})
			b.WriteString("$" + strconv.Itoa(len(out.Params)))
			continue
		}
		b.WriteRune(c)
	}
	out.SQL = b.String()
	if strings.Contains(strings.ToUpper(sql), " FROM ") || out.Type != plan.Select && !out.DDL {
		out.Work = warehouse.Work{Table: warehouse.Standard, Op: warehouse.Scan}
	}
	return out, nil
}
