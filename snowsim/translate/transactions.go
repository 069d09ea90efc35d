package translate

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/protocol"
)

// OpenTransaction is one that a session has begun and not ended.
type OpenTransaction struct {
	ID      int64
	User    string
	Session int64
	Name    string
	Started time.Time
}

// transaction reads BEGIN, COMMIT and ROLLBACK.
func (p *parser) transaction() *Plan {
	made := p.statusPlan("Statement executed successfully.")
	made.Type = protocol.TransactionType
	switch p.next().text {
	case "COMMIT":
		made.Transaction = Commit
		return made
	case "ROLLBACK":
		made.Transaction = Rollback
		return made
	}
	made.Transaction = Begin
	if !p.accept("TRANSACTION") {
		p.accept("WORK")
	}
	if p.accept("NAME") {
		made.TransactionName = p.identifier()
	}
	return made
}

// showTransactions lists those of the user, or with IN ACCOUNT everybody's.
func (p *parser) showTransactions() *Plan {
	user := p.session.User
	if p.accept("IN", "ACCOUNT") {
		if p.session.Role != "ACCOUNTADMIN" {
			p.fail(&protocol.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nInsufficient " +
				"privileges to operate on account '" + p.session.Account + "'."})
		}
		user = ""
	}
	return &Plan{Type: protocol.Show, Local: func(context.Context) (*Result, error) {
		r := &Result{Columns: []protocol.Column{protocol.Number("id"), protocol.Text("user"), protocol.Number("session"),
			protocol.Text("name"), protocol.TimestampLTZ("started_on"), protocol.Text("state"), protocol.Text("scope")}}
		for _, t := range p.account.host.Transactions() {
			if user == "" || t.User == user {
				r.Rows = append(r.Rows, []any{t.ID, t.User, t.Session, t.Name, t.Started, "running", "0"})
			}
		}
		return r, nil
	}}
}

// abortTransaction reads SELECT SYSTEM$ABORT_TRANSACTION(id): of a transaction of the user's, or of anybody's for
// ACCOUNTADMIN.
func (p *parser) abortTransaction() *Plan {
	var id int64
	p.inParentheses(func() { id = p.integer() })
	session := p.session
	return &Plan{Type: protocol.Select, Local: func(ctx context.Context) (*Result, error) {
		r := &Result{Columns: []protocol.Column{protocol.Text("SYSTEM$ABORT_TRANSACTION(" + fmt.Sprint(id) + ")")}}
		for _, t := range p.account.host.Transactions() {
			if t.ID != id {
				continue
			}
			if t.User != session.User && session.Role != "ACCOUNTADMIN" {
				return nil, &protocol.Error{Code: "003001", State: "42501", Message: "SQL access control error:\nInsufficient " +
					"privileges to abort the transaction."}
			}
			if err := p.account.host.AbortTransaction(ctx, id, session.ID); err != nil {
				return nil, err
			}
			r.Rows = [][]any{{"Aborted transaction id: " + fmt.Sprint(id)}}
			return r, nil
		}
		r.Rows = [][]any{{"Transaction id: " + fmt.Sprint(id) + " is not running"}}
		return r, nil
	}}
}
