package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine/results/executions"
	"github.com/loadstone-db/loadstone/engine/store"
)

// maxStatementLength is how much of a statement a line of the audit log has.
const maxStatementLength = 500

// maxRefusedLines is how many statements of a group have a line that was not carried out.
const maxRefusedLines = 20

// Statement is one of a group that is carried out as a whole.
type Statement struct {
	Text string
	// Changes: it does more than read. Done says what it has done, where it was carried out.
	Changes bool
	Done    string
}

// RecordStatement notes a statement of the caller's that reads, and what became of it. Values in it are masked. A
// user who sends many has a line for some, with how many came since the last one.
func (t *AuditLog) RecordStatement(ctx context.Context, action, statement string, status int) {
	more, due := t.noteStatement(ctx, action, status)
	if due {
		t.writeStatement(ctx, action, statementText(statement)+moreText(more, "since the last such line"), status)
	}
}

// RecordStatements notes the statements of a group that was carried out, or of which nothing was. What has changed
// something, or may have, has a line each, however many there are: done is the action of those. All else is noted as
// RecordStatement does it, under action.
func (t *AuditLog) RecordStatements(ctx context.Context, action, done string, group []Statement, status int) {
	changed := status < http.StatusBadRequest || status >= http.StatusInternalServerError
	var rest []Statement
	for _, s := range group {
		if !s.Changes || !changed {
			rest = append(rest, s)
			continue
		}
		text := statementText(s.Text)
		if s.Done != "" {
			text = s.Done + ": " + text
		}
		t.writeStatement(ctx, done, text, status)
	}
	if len(rest) == 0 {
		return
	}
	more, due := t.noteStatement(ctx, action, status)
	if !due {
		return
	}
	for i, s := range rest[:min(len(rest), maxRefusedLines)] {
		text := statementText(s.Text)
		if i == maxRefusedLines-1 {
			text += moreText(len(rest)-maxRefusedLines, "in this group")
		}
		if i == 0 {
			text += moreText(more, "since the last such line")
		}
		t.writeStatement(ctx, action, text, status)
	}
}

// noteStatement counts statements by user, action and outcome: a flood of one sort leaves room for the others.
func (t *AuditLog) noteStatement(ctx context.Context, action string, status int) (more int, due bool) {
	id, _ := IdentityOf(ctx)
	more, due = t.statements.note(id.User.UserID + "\x00" + action + "\x00" + outcome(status))
	if m, ok := ctx.Value(markKey{}).(*mark); ok && !due {
		m.read.Store(true)
	}
	return more, due
}

func (t *AuditLog) writeStatement(ctx context.Context, action, text string, status int) {
	if m, ok := ctx.Value(markKey{}).(*mark); ok {
		m.stated.Store(true)
	}
	t.write(ctx, store.AuditEntry{Action: action, Detail: text, Outcome: outcome(status)})
}

// statementText is a statement as lines have it.
func statementText(statement string) string {
	text := strings.Join(strings.Fields(executions.MaskSQL(statement)), " ")
	if len(text) > maxStatementLength {
		text = strings.ToValidUTF8(text[:maxStatementLength], "") + "…"
	}
	return text
}

func moreText(more int, where string) string {
	if more <= 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more %s)", more, where)
}

// statementCounter counts the statements that have no line.
type statementCounter struct {
	limiter *Limiter

	mu   sync.Mutex
	left map[string]int // by key
}

// maxCountedKeys bounds the keys whose statements without a line are counted.
const maxCountedKeys = 4000

// note counts a statement; due tells that it has a line, with how many before it had none.
func (c *statementCounter) note(key string) (more int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limiter.Wait(key) > 0 {
		if _, known := c.left[key]; known || len(c.left) < maxCountedKeys {
			c.left[key]++
		}
		return 0, false
	}
	c.limiter.RecordFailure(key)
	more = c.left[key]
	delete(c.left, key)
	return more, true
}
