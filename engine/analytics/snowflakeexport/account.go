package snowflakeexport

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// SQLAccount is where the tables are made, and the views over them.
type SQLAccount interface {
	Exec(ctx context.Context, sql ...string) error
	Query(ctx context.Context, sql string, args ...any) (*target.ResultSet, error)
	Classify(err error) engine.ExecutionError
}

// Codes of errors of an account.
const (
	// CodeAccessDenied: the role may not do that, or something of that name is another role's.
	CodeAccessDenied = "003001"
	// CodeNameTaken and CodeOtherKind: something of another kind has the name.
	CodeNameTaken = "001998"
	CodeOtherKind = "003041"
	// codeCancelled: somebody has cancelled the statement, or aborted its transaction.
	codeCancelled = "000604"
)

// Grant is the statement that gives the role of the account's sessions a privilege on their schema.
func Grant(ctx context.Context, a SQLAccount, privilege string) string {
	rs, err := a.Query(ctx, "SELECT CURRENT_DATABASE(), CURRENT_SCHEMA(), CURRENT_ROLE()")
	if err != nil || len(rs.Rows) != 1 {
		return fmt.Sprintf("give the role of the connection %s on its schema", privilege)
	}
	return fmt.Sprintf("GRANT %s ON SCHEMA %s.%s TO ROLE %s", privilege, Quoted(rs.Rows[0][0]), Quoted(rs.Rows[0][1]),
		Quoted(rs.Rows[0][2]))
}

// Sentence is what an account says, in one line that ends as a sentence.
func Sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

var plain = regexp.MustCompile(`^[A-Z_][A-Z0-9_$]*$`)

// Quoted is a name as it stands in SQL.
func Quoted(name any) string {
	text := fmt.Sprint(name)
	if plain.MatchString(text) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}
