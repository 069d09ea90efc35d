package translate

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
	"github.com/loadstone-db/loadstone/snowsim/translate/ddl"
	"github.com/loadstone-db/loadstone/snowsim/translate/expression"
	"github.com/loadstone-db/loadstone/snowsim/translate/metadata"
	"github.com/loadstone-db/loadstone/snowsim/translate/query"
	"github.com/loadstone-db/loadstone/snowsim/translate/syntax"
)

// Options configure a Translator.
type Options struct {
	// Denied are privileges that a role does not have, whatever was granted.
	Denied []catalog.Denied
	// Contract is what the account's contract and place allow.
	Contract catalog.Contract
}

// Translator is a plan.Translator. It is safe for concurrent use.
type Translator struct {
	*catalog.Account
	plans   memory
	results *expression.Results
}

var _ plan.Translator = (*Translator)(nil)

// New installs what the translator needs into the host's database and returns it.
func New(ctx context.Context, host plan.Host, options ...Options) (*Translator, error) {
	var denied []catalog.Denied
	var contract catalog.Contract
	for _, o := range options {
		denied = append(denied, o.Denied...)
		contract = o.Contract
	}
	a, err := catalog.OpenAccount(ctx, host, denied, contract)
	if err != nil {
		return nil, err
	}
	return &Translator{Account: a, results: &expression.Results{}}, nil
}

// Split splits a text into its statements.
func (t *Translator) Split(sql string) ([]string, error) { return syntax.Split(sql) }

// Plan translates one statement.
func (t *Translator) Plan(ctx context.Context, s *plan.Session, sql string, binds []plan.Bind) (*plan.Plan, error) {
	key := t.plans.key(s, sql, binds, t.Tables.Version()+t.Grants.Version())
	if p := t.plans.get(key); p != nil {
		return p, nil
	}
	at, err := syntax.NewCursor(sql)
	if err != nil {
		return nil, err
	}
	p := &expression.Parser{Cursor: at, Context: ctx, Account: t.Account, Results: t.results,
		Histories: metadata.Histories{},
		Session:   s, Binds: binds}
	var made *plan.Plan
	if err := syntax.Failing(func() { made = (&statement{query.NewReader(p)}).run() }); err != nil {
		return nil, err
	}
	if !p.Volatile && made.SQL != "" && !made.DDL && made.Before == nil && made.After == nil {
		t.plans.put(key, made)
	}
	t.results.Keep(s, made)
	copied := *made
	return &copied, nil
}

// run translates the statement.
func (p *statement) run() *plan.Plan {
	made := p.read()
	p.End()
	made.SQL = strings.ReplaceAll(made.SQL, expression.RowMarker, "0::bigint")
	if len(p.Before) > 0 {
		p.addBefore(made)
	}
	if made.Params == nil {
		made.Params = p.Params
	}
	if len(p.Tables) > 0 && made.Table == "" {
		made.Table = p.Tables[0].Name.String()
	}
	for _, t := range p.Tables {
		made.Tables = append(made.Tables, t.Name.String())
	}
	if made.Describe == nil && made.Columns == nil && made.SQL != "" {
		made.Describe = p.Account.Describe
	}
	return made
}

func (p *statement) addBefore(made *plan.Plan) {
	steps, then := p.Before, made.Before
	made.Before = func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range steps {
			if err := s(ctx, conn); err != nil {
				return catalog.Error(err)
			}
		}
		if then != nil {
			return then(ctx, conn)
		}
		return nil
	}
}

// statement is one statement of a session.
type statement struct{ *query.Reader }

// read reads the statement.
func (p *statement) read() *plan.Plan {
	t := p.Peek()
	if t.Kind == syntax.Symbol && t.Text == "(" {
		return p.Selection()
	}
	if t.Kind != syntax.Word {
		p.Unexpected()
	}
	if made := p.cancelQuery(); made != nil {
		return made
	}
	switch t.Text {
	case "SELECT", "WITH", "VALUES":
		return p.Selection()
	case "INSERT":
		return p.Insert()
	case "UPDATE":
		return p.Update()
	case "DELETE":
		return p.Delete()
	case "MERGE":
		return p.Merge()
	case "TRUNCATE":
		return p.Truncate()
	case "CREATE":
		return ddl.Create(p.Parser)
	case "ALTER":
		if p.Is("ALTER", "SESSION") {
			return p.alterSession()
		}
		return ddl.Alter(p.Parser)
	case "DROP":
		return ddl.Drop(p.Parser)
	case "UNDROP":
		p.Fail(plan.NotSimulated("UNDROP"))
	case "COMMENT":
		return ddl.Comment(p.Parser)
	case "USE":
		return p.use()
	case "SET", "UNSET":
		return p.set()
	case "BEGIN", "START", "COMMIT", "ROLLBACK":
		return p.transaction()
	case "SHOW":
		return metadata.Show(p.Parser)
	case "DESC", "DESCRIBE":
		return metadata.Describe(p.Parser)
	case "GRANT", "REVOKE":
		return ddl.Grant(p.Parser)
	case "EXPLAIN", "CALL", "EXECUTE", "PUT", "GET", "COPY", "LIST", "LS", "REMOVE", "RM":
		p.Fail(plan.NotSimulated("%s", t.Text))
	}
	p.Unexpected()
	return nil
}
