package auth

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
)

// maxStatementLength is how much of a statement a line of the audit log has.
const maxStatementLength = 500

// RecordStatement notes a statement that the caller had executed, and what became of it. Values in it are masked. A
// user who sends many has a line for some, with how many came since the last one.
func (t *AuditLog) RecordStatement(ctx context.Context, action, statement string, status int) {
	if m, ok := ctx.Value(markKey{}).(*mark); ok {
		m.stated.Store(true)
	}
	id, _ := IdentityOf(ctx)
	more, due := t.statements.note(id.User.UserID)
	if !due {
		return
	}
	text := strings.Join(strings.Fields(executions.MaskSQL(statement)), " ")
	if len(text) > maxStatementLength {
		text = strings.ToValidUTF8(text[:maxStatementLength], "") + "…"
	}
	if more > 0 {
		text += fmt.Sprintf(" (and %d more since the last such line)", more)
	}
	t.write(ctx, store.AuditEntry{Action: action, Detail: text, Outcome: outcome(status)})
}

// statementCounter counts the statements of users that have no line.
type statementCounter struct {
	limiter *Limiter

	mu   sync.Mutex
	left map[string]int // by user
}

// maxCountedUsers bounds the users that are told apart.
const maxCountedUsers = 1000

// note counts a statement; due tells that it has a line, with how many before it had none.
func (c *statementCounter) note(user string) (more int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limiter.Wait(user) > 0 {
		if _, known := c.left[user]; known || len(c.left) < maxCountedUsers {
			c.left[user]++
		}
		return 0, false
	}
	c.limiter.RecordFailure(user)
	more = c.left[user]
	delete(c.left, user)
	return more, true
}
