package translate

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// Parser reads one statement and writes Postgres SQL as it goes. Its methods
// fail as those of the cursor do.
type Parser struct {
	*Cursor
	Context context.Context
	Account *Account
	Results *Results
	Session *Session
	Binds   []protocol.Bind

	Params []protocol.Param
	marks  int  // how many ? have been read
	Inline bool // write binds as constants: Postgres takes no parameters in DDL
	// InDefault is set in a column's DEFAULT, which is evaluated for each row.
	InDefault bool
	Volatile  bool // the plan holds what must not be remembered
	Tables    []*Table
	Before    []step
	equal     map[string]bool // columns that are compared with a value by =
	// Aggregated is set when an aggregate was read that no window makes another function of.
	Aggregated bool
	serial     int // numbers what the translator names itself

	query  *scope   // the SELECT being read
	common []string // the common table expressions in reach
	views  int      // how many views the statement is within
}

// RowMarker stands for the number of the row, from 0, until FROM is known.
const RowMarker = "\x00ROW\x00"

// Identifier reads one identifier and returns it as stored.
func (p *Parser) Identifier() string {
	if !p.IsIdentifier() {
		p.Unexpected()
	}
	return p.AnyIdentifier()
}

// AnyIdentifier is Identifier after AS or a dot, where reserved words are taken too.
func (p *Parser) AnyIdentifier() string {
	t := p.Peek()
	if t.Kind != Quoted && t.Kind != Word {
		p.Unexpected()
	}
	p.Advance(1)
	if err := CheckIdentifier(t.Text); err != nil {
		p.Fail(err)
	}
	p.Account.Remember(t.Text)
	return t.Text
}

// Parts reads a name with up to three parts, or IDENTIFIER('…').
func (p *Parser) Parts() []string {
	if p.Is("IDENTIFIER") && p.PeekAt(1).Kind == Symbol && p.PeekAt(1).Text == "(" {
		p.Advance(2)
		parts, err := ParseName(p.Constant())
		if err != nil {
			p.Fail(err)
		}
		p.ExpectSymbol(")")
		for _, part := range parts {
			p.Account.Remember(part)
		}
		return parts
	}
	parts := []string{p.Identifier()}
	for p.IsSymbol(".") {
		p.Advance(1)
		if p.IsSymbol(".") { // db..table is db.PUBLIC.table
			parts = append(parts, "PUBLIC")
			continue
		}
		parts = append(parts, p.AnyIdentifier())
	}
	return parts
}

// Name reads the name of an object in a schema and completes it from the session.
func (p *Parser) Name() Name { return p.Complete(p.Parts()) }

// Complete fills in what a name leaves out from the session, which fails when that has none.
func (p *Parser) Complete(parts []string) Name {
	n := Name{Database: p.Session.Database, Schema: p.Session.Schema, Object: parts[len(parts)-1]}
	switch len(parts) {
	case 1:
		if n.Database == "" {
			p.Fail(&protocol.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current database. " +
				"Call 'USE DATABASE', or use a qualified name."})
		}
		if n.Schema == "" {
			p.Fail(&protocol.Error{Code: "090106", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current schema. " +
				"Call 'USE SCHEMA', or use a qualified name."})
		}
	case 2:
		n.Schema = parts[0]
		if n.Database == "" {
			p.Fail(&protocol.Error{Code: "090105", State: "22000", Message: "Cannot perform operation. This session does not " +
				"have a current database. " +
				"Call 'USE DATABASE', or use a qualified name."})
		}
	case 3:
		n.Database, n.Schema = parts[0], parts[1]
	default:
		p.Failf("Invalid object name '%s'.", strings.Join(parts, "."))
	}
	return n
}

// Constant reads a string constant or a bound text.
func (p *Parser) Constant() string {
	switch t := p.Next(); t.Kind {
	case Text:
		return t.Text
	case Mark:
		return p.bound()
	}
	p.Advance(-1)
	p.Unexpected()
	return ""
}

// bound returns the value of the bind whose mark was just read, which becomes
// part of the plan.
func (p *Parser) bound() string {
	i := p.marks
	p.marks++
	p.Volatile = true
	if p.Session.DescribeOnly && (i >= len(p.Binds) || p.Binds[i].Value == nil) {
		return "1" // any will do: nothing is executed
	}
	if i >= len(p.Binds) || p.Binds[i].Value == nil {
		p.Failf("Bind variable ? not set.")
	}
	return *p.Binds[i].Value
}

// Integer reads an integer constant, bound or with a sign.
func (p *Parser) Integer() int64 {
	negative := p.AcceptSymbol("-")
	var s string
	if t := p.Next(); t.Kind == Number {
		s = t.Text
	} else if t.Kind == Mark {
		s = p.bound()
	} else {
		p.Advance(-1)
		p.Unexpected()
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		p.Failf("Invalid value [%s], expected an integer.", s)
	}
	if negative {
		n = -n
	}
	return n
}

// Fresh returns a name that no statement can have written unquoted.
func (p *Parser) Fresh(prefix string) string {
	p.serial++
	return fmt.Sprintf("%s~%d", prefix, p.serial)
}

// Schema reads [database.]schema.
func (p *Parser) Schema() Name {
	parts := p.Parts()
	switch len(parts) {
	case 1:
		if p.Session.Database == "" {
			p.Complete(parts)
		}
		return Name{Database: p.Session.Database, Schema: parts[0]}
	case 2:
		return Name{Database: parts[0], Schema: parts[1]}
	}
	p.Failf("Invalid schema name '%s'.", strings.Join(parts, "."))
	return Name{}
}

// OptionValue reads the value of an option or parameter as text.
func (p *Parser) OptionValue() string {
	negative := p.AcceptSymbol("-")
	switch t := p.Next(); t.Kind {
	case Text, Word, Quoted:
		if !negative {
			return t.Text
		}
	case Number:
		if negative {
			return "-" + t.Text
		}
		return t.Text
	case Mark:
		return p.bound()
	}
	p.Advance(-1)
	p.Unexpected()
	return ""
}
