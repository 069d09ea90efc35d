package snowsim

import (
	"context"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/translate"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// plain hands SQL to Postgres as it is: only parameters, sessions and
// transactions are Snowflake's. It is enough for tests of the protocol.
type plain struct{}

// Split implements translator; of quotes it knows the single ones.
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

// Plan implements translator.
func (plain) Plan(_ context.Context, _ *translate.Session, sql string, _ []protocol.Bind) (*translate.Plan, error) {
	words := strings.Fields(sql)
	upper := strings.Fields(strings.ToUpper(sql))
	switch upper[0] {
	case "USE":
		if len(words) != 3 {
			return nil, protocol.SyntaxError("syntax error line 1 at position 0 unexpected 'USE'.")
		}
		database, schema, both := strings.Cut(words[2], ".")
		a, b := canonicalName(database), canonicalName(schema)
		effect := map[string]translate.Effect{"DATABASE": {Database: &a}, "SCHEMA": {Schema: &a}, "ROLE": {Role: &a},
			"WAREHOUSE": {Warehouse: &a}}[upper[1]]
		if both {
			effect = translate.Effect{Database: &a, Schema: &b}
		}
		return &translate.Plan{Type: protocol.Use, Effect: effect}, nil
	case "ALTER":
		if len(words) >= 4 && upper[1] == "SESSION" && upper[2] == "SET" {
			name, value, _ := strings.Cut(strings.Join(words[3:], " "), "=")
			set := map[string]string{strings.ToUpper(strings.TrimSpace(name)): strings.Trim(strings.TrimSpace(value), "'")}
			return &translate.Plan{Type: protocol.AlterSession, Effect: translate.Effect{Set: set}}, nil
		}
	case "BEGIN":
		return &translate.Plan{Type: protocol.TransactionType, Transaction: translate.Begin}, nil
	case "COMMIT":
		return &translate.Plan{Type: protocol.TransactionType, Transaction: translate.Commit}, nil
	case "ROLLBACK":
		return &translate.Plan{Type: protocol.TransactionType, Transaction: translate.Rollback}, nil
	}
	out := &translate.Plan{Type: protocol.DDL, Describe: func(fields []pgconn.FieldDescription) []protocol.Column {
		columns := new(translate.Account).Describe(fields)
		for i := range columns {
			columns[i].Name = strings.ToUpper(columns[i].Name)
		}
		return columns
	}}
	if kind, ok := map[string]protocol.StatementType{"SELECT": protocol.Select, "WITH": protocol.Select, "VALUES": protocol.Select,
		"INSERT": protocol.Insert, "UPDATE": protocol.Update, "DELETE": protocol.Delete}[upper[0]]; ok {
		out.Type = kind
	}
	out.DDL = out.Type == protocol.DDL
	var b strings.Builder
	inText := false
	for _, c := range strings.ReplaceAll(sql, "CURRENT_VERSION()", "'"+Version+"'") {
		if c == '\'' {
			inText = !inText
		}
		if c == '?' && !inText {
			out.Params = append(out.Params, protocol.Param{Bind: len(out.Params)})
			b.WriteString("$" + strconv.Itoa(len(out.Params)))
			continue
		}
		b.WriteRune(c)
	}
	out.SQL = b.String()
	if strings.Contains(strings.ToUpper(sql), " FROM ") || out.Type != protocol.Select && !out.DDL {
		out.Work = warehouse.Work{Table: warehouse.Standard, Op: warehouse.Scan}
	}
	return out, nil
}

// RoleExists implements translator.
func (plain) RoleExists(role string) bool { return role != "NOBODY" }

// MayUse implements translator.
func (plain) MayUse(*translate.Session, string) bool { return true }
