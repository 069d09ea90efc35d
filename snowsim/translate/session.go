package translate

import (
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// alterSession reads ALTER SESSION SET p = v … and UNSET p, ….
func (p *Parser) alterSession() *Plan {
	p.Expect("ALTER", "SESSION")
	made := p.Done("Statement executed successfully.")
	made.Type = protocol.AlterSession
	if p.Accept("UNSET") {
		made.Effect.Unset = append(made.Effect.Unset, p.Identifier())
		for p.AcceptSymbol(",") {
			made.Effect.Unset = append(made.Effect.Unset, p.Identifier())
		}
		return made
	}
	p.Expect("SET")
	made.Effect.Set = map[string]string{}
	for p.Peek().Kind == Word {
		key := p.Identifier()
		p.ExpectSymbol("=")
		value := p.OptionValue()
		if key == "QUERY_TAG" && len(value) > 2000 {
			p.Fail(&protocol.Error{Code: "001006", State: "22023", Message: "SQL compilation error:\ninvalid value for parameter " +
				"'QUERY_TAG': longer than 2000 characters."})
		}
		if booleans[key] {
			switch value = strings.ToUpper(value); value {
			case "TRUE", "FALSE":
				value = strings.ToLower(value)
			default:
				p.Fail(protocol.CompilationError("001008", "22023", "invalid value [%s] for parameter '%s'", value, key))
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
var booleans = Words("USE_CACHED_RESULT AUTOCOMMIT ABORT_DETACHED_QUERY QUOTED_IDENTIFIERS_IGNORE_CASE " +
	"READ_LATEST_WRITES " +
	"TRANSACTION_ABORT_ON_ERROR CLIENT_SESSION_KEEP_ALIVE TIMESTAMP_DAY_IS_ALWAYS_24H ERROR_ON_NONDETERMINISTIC_MERGE")

// use reads USE ….
func (p *Parser) use() *Plan {
	p.Expect("USE")
	made := p.Done("Statement executed successfully.")
	made.Type = protocol.Use
	missing := func(object string) {
		p.Fail(&protocol.Error{Code: "002043", State: "02000",
			Message: "SQL compilation error:\nObject does not exist, or operation cannot be performed: " +
				Display(object) +
				"."})
	}
	p.Volatile = true
	switch {
	case p.Is("WAREHOUSE") && p.PeekAt(1).Kind != End:
		p.Next()
		w := p.Parts()[0]
		if _, ok := p.Account.Host.Warehouses().Get(w); !ok || !p.Account.MayUse(p.Session, w) {
			missing(w)
		}
		made.Effect.Warehouse = &w
	case p.Is("ROLE") && p.PeekAt(1).Kind != End:
		p.Next()
		role := p.Parts()[0]
		if !p.Account.RoleExists(role) {
			p.Fail(protocol.CompilationError("002003", "02000", "Role '%s' does not exist or not authorized.",
				Display(role)))
		}
		made.Effect.Role = &role
	case p.Accept("SECONDARY", "ROLES"):
		made.Effect.Set = map[string]string{SecondaryRoles: p.secondaryRoles()}
	case p.Is("SCHEMA") && p.PeekAt(1).Kind != End:
		p.Next()
		n := p.Schema()
		p.checkSchema(n, missing)
		made.Effect.Database, made.Effect.Schema = &n.Database, &n.Schema
	default:
		p.Accept("DATABASE")
		parts := p.Parts()
		n := Name{Database: parts[0]}
		p.checkSchema(n, missing)
		public := "PUBLIC"
		made.Effect.Database, made.Effect.Schema = &n.Database, &public
	}
	return made
}

// secondaryRoles reads ALL, NONE, or roles that are granted to the user.
func (p *Parser) secondaryRoles() string {
	if p.IsAny("ALL", "NONE") {
		return p.Next().Text
	}
	granted := p.Account.Grants.GrantedTo(p.Session.User)
	var roles []string
	for len(roles) == 0 || p.AcceptSymbol(",") {
		role := p.Identifier()
		if !slices.Contains(granted, role) {
			p.Fail(NoRole(role))
		}
		roles = append(roles, role)
	}
	return strings.Join(roles, "\x00")
}

func (p *Parser) checkSchema(n Name, missing func(string)) {
	ok, err := p.Account.Tables.HasSchema(p.Context, n.Database, n.Schema)
	if err != nil {
		p.Fail(err)
	}
	if !ok {
		missing(n.String())
	}
}

// transaction reads BEGIN, COMMIT and ROLLBACK.
func (p *Parser) transaction() *Plan {
	made := p.Done("Statement executed successfully.")
	made.Type = protocol.TransactionType
	switch p.Next().Text {
	case "COMMIT":
		made.Transaction = Commit
		return made
	case "ROLLBACK":
		made.Transaction = Rollback
		return made
	}
	made.Transaction = Begin
	p.Accept("TRANSACTION")
	return made
}
