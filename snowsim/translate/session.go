package translate

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/plan"
	"github.com/loadstone-db/loadstone/snowsim/translate/catalog"
	"github.com/loadstone-db/loadstone/snowsim/translate/syntax"
)

// alterSession reads ALTER SESSION SET p = v … and UNSET p, ….
func (p *statement) alterSession() *plan.Plan {
	p.Expect("ALTER", "SESSION")
	made := p.Done("Statement executed successfully.")
	made.Type = plan.AlterSession
	if p.Accept("UNSET") {
		made.Effect.Unset = append(made.Effect.Unset, p.Identifier())
		for p.AcceptSymbol(",") {
			made.Effect.Unset = append(made.Effect.Unset, p.Identifier())
		}
		return made
	}
	p.Expect("SET")
	made.Effect.Set = map[string]string{}
	for p.Peek().Kind == syntax.Word {
		key := p.Identifier()
		p.ExpectSymbol("=")
		value := p.OptionValue()
		if key == "QUERY_TAG" && len(value) > 2000 {
			p.Fail(&plan.Error{Code: "001006", State: "22023", Message: "SQL compilation error:\ninvalid value for parameter " +
				"'QUERY_TAG': longer than 2000 characters."})
		}
		if booleans[key] {
			switch value = strings.ToUpper(value); value {
			case "TRUE", "FALSE":
				value = strings.ToLower(value)
			default:
				p.Fail(plan.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", value, key))
			}
		}
		made.Effect.Set[key] = value
		p.AcceptSymbol(",")
	}
	if len(made.Effect.Set) == 0 {
		p.Unexpected()
	}
	return made
}

// booleans are the session parameters that are TRUE or FALSE.
var booleans = syntax.Words("USE_CACHED_RESULT AUTOCOMMIT ABORT_DETACHED_QUERY QUOTED_IDENTIFIERS_IGNORE_CASE " +
	"READ_LATEST_WRITES " +
	"TRANSACTION_ABORT_ON_ERROR CLIENT_SESSION_KEEP_ALIVE TIMESTAMP_DAY_IS_ALWAYS_24H ERROR_ON_NONDETERMINISTIC_MERGE")

// use reads USE ….
func (p *statement) use() *plan.Plan {
	p.Expect("USE")
	made := p.Done("Statement executed successfully.")
	made.Type = plan.Use
	missing := func(object string) {
		p.Fail(&plan.Error{Code: "002043", State: "02000",
			Message: "SQL compilation error:\nObject does not exist, or operation cannot be performed: " +
				catalog.Display(object) +
				"."})
	}
	p.Volatile = true
	switch {
	case p.Is("WAREHOUSE") && p.PeekAt(1).Kind != syntax.End:
		p.Next()
		w := p.Parts()[0]
		if _, ok := p.Account.Host.Warehouses().Get(w); !ok || !p.Account.MayUse(p.Session, w) {
			missing(w)
		}
		made.Effect.Warehouse = &w
	case p.Is("ROLE") && p.PeekAt(1).Kind != syntax.End:
		p.Next()
		role := p.Parts()[0]
		if !p.Account.RoleExists(role) {
			p.Fail(plan.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.",
				catalog.Display(role)))
		}
		made.Effect.Role = &role
	case p.Accept("SECONDARY", "ROLES"):
		made.Effect.Set = map[string]string{catalog.SecondaryRoles: p.secondaryRoles()}
	case p.Is("SCHEMA") && p.PeekAt(1).Kind != syntax.End:
		p.Next()
		n := p.Schema()
		p.checkSchema(n, missing)
		made.Effect.Database, made.Effect.Schema = &n.Database, &n.Schema
	default:
		p.Accept("DATABASE")
		parts := p.Parts()
		if len(parts) == 2 {
			n := catalog.Name{Database: parts[0], Schema: parts[1]}
			p.checkSchema(n, missing)
			made.Effect.Database, made.Effect.Schema = &n.Database, &n.Schema
			break
		}
		n := catalog.Name{Database: parts[0]}
		p.checkSchema(n, missing)
		public := "PUBLIC"
		made.Effect.Database, made.Effect.Schema = &n.Database, &public
	}
	return made
}

// secondaryRoles reads ALL, NONE, or roles that are granted to the user.
func (p *statement) secondaryRoles() string {
	if p.IsAny("ALL", "NONE") {
		return p.Next().Text
	}
	granted := p.Account.Grants.GrantedTo(p.Session.User)
	var roles []string
	for len(roles) == 0 || p.AcceptSymbol(",") {
		role := p.Identifier()
		if !slices.Contains(granted, role) {
			p.Fail(catalog.NoRole(role))
		}
		roles = append(roles, role)
	}
	return strings.Join(roles, "\x00")
}

func (p *statement) checkSchema(n catalog.Name, missing func(string)) {
	ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema)
	if err != nil {
		p.Fail(err)
	}
	if !ok {
		missing(n.String())
	}
}

// set reads SET v = constant and UNSET v; a variable is a session parameter
// whose name begins with a dollar.
func (p *statement) set() *plan.Plan {
	made := p.Done("Statement executed successfully.")
	made.Type = plan.AlterSession
	p.Volatile = true
	if p.Accept("UNSET") {
		made.Effect.Unset = []string{"$" + p.Identifier()}
		return made
	}
	p.Expect("SET")
	key := p.Identifier()
	p.ExpectSymbol("=")
	made.Effect.Set = map[string]string{"$" + key: p.OptionValue()}
	return made
}

// transaction reads BEGIN, COMMIT and ROLLBACK.
func (p *statement) transaction() *plan.Plan {
	made := p.Done("Statement executed successfully.")
	made.Type = plan.TransactionType
	switch p.Next().Text {
	case "COMMIT":
		made.Transaction = plan.Commit
		p.Accept("WORK")
		return made
	case "ROLLBACK":
		made.Transaction = plan.Rollback
		p.Accept("WORK")
		return made
	}
	made.Transaction = plan.Begin
	_ = p.Accept("WORK") || p.Accept("TRANSACTION")
	if p.Accept("NAME") {
		p.Identifier()
	}
	return made
}
