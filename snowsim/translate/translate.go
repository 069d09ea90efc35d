package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Options configure a Translator.
type Options struct {
	// Denied are privileges that a role does not have, whatever was granted.
	Denied []Denied
	// Contract is what the account's contract and place allow.
	Contract Contract
}

// Translator turns Snowflake's SQL into plans. It is safe for concurrent use.
type Translator struct {
	*Account
	plans memory
}

// New installs what the translator needs into the host's database and returns it.
func New(ctx context.Context, host Host, o Options) (*Translator, error) {
	a, err := openAccount(ctx, host, o.Denied, o.Contract)
	if err != nil {
		return nil, err
	}
	return &Translator{Account: a}, nil
}

// Split splits a text into its statements, without comments and trailing semicolons; a text
// without a statement gives none.
func (t *Translator) Split(sql string) ([]string, error) { return split(sql) }

// Plan translates one statement. Plans of texts that repeat are remembered. Errors that a
// client should see are *protocol.Error.
func (t *Translator) Plan(ctx context.Context, s *Session, sql string, binds []protocol.Bind) (*Plan, error) {
	key := t.plans.key(s, sql, binds, t.tables.version()+t.grants.version())
	if p := t.plans.get(key); p != nil {
		return p, nil
	}
	at, err := newCursor(sql)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(s.Parameters["QUOTED_IDENTIFIERS_IGNORE_CASE"], "true") {
		for i, token := range at.tokens {
			if token.kind == tokenQuoted {
				at.tokens[i].text = strings.ToUpper(token.text)
			}
		}
	}
	p := &parser{cursor: at, ctx: ctx, account: t.Account,
		session: s, binds: binds}
	var made *Plan
	if err := catchFailure(func() { made = p.run() }); err != nil {
		return nil, err
	}
	if !p.volatile && made.SQL != "" && !made.DDL && made.Before == nil {
		t.plans.put(key, made)
	}
	copied := *made
	return &copied, nil
}

// run translates the statement.
func (p *parser) run() *Plan {
	made := p.read()
	p.end()
	made.SQL = strings.ReplaceAll(made.SQL, rowMarker, "0::bigint")
	if len(p.before) > 0 {
		p.addBefore(made)
	}
	if made.Params == nil {
		made.Params = p.params
	}
	for _, t := range p.tables {
		made.Tables = append(made.Tables, t.name.String())
	}
	if made.Describe == nil && made.Columns == nil && made.SQL != "" {
		made.Describe = p.account.Describe
	}
	return made
}

func (p *parser) addBefore(made *Plan) {
	steps, then := p.before, made.Before
	made.Before = func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range steps {
			if err := s(ctx, conn); err != nil {
				return Error(err)
			}
		}
		if then != nil {
			return then(ctx, conn)
		}
		return nil
	}
}

// read reads the statement.
func (p *parser) read() *Plan {
	t := p.peek()
	if t.kind != tokenWord {
		p.unexpected()
	}
	switch t.text {
	case "SELECT", "WITH":
		if p.accept("SELECT", "SYSTEM$ABORT_TRANSACTION") {
			return p.abortTransaction()
		}
		return p.selectPlan()
	case "INSERT":
		return p.insert()
	case "UPDATE":
		return p.update()
	case "DELETE":
		return p.deleteRows()
	case "MERGE":
		return p.merge()
	case "CREATE":
		return p.create()
	case "ALTER":
		if p.is("ALTER", "SESSION") {
			return p.alterSession()
		}
		return p.alter()
	case "DROP":
		return p.drop()
	case "COMMENT":
		return p.comment()
	case "USE":
		return p.use()
	case "BEGIN", "START", "COMMIT", "ROLLBACK":
		return p.transaction()
	case "SHOW":
		return p.show()
	case "GRANT", "REVOKE":
		return p.grant()
	case "CALL", "COPY", "DESC", "DESCRIBE", "EXECUTE", "EXPLAIN", "GET", "LIST", "LS", "PUT", "REMOVE",
		"RM", "SET", "TRUNCATE", "UNDROP", "UNSET", "VALUES":
		p.fail(protocol.NotSimulated("%s", t.text))
	}
	p.unexpected()
	return nil
}
