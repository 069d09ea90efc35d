package auth

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine/store"
)

// markKey finds the mark of a request, which says whether a handler has noted what it did.
type markKey struct{}

type mark struct {
	noted atomic.Bool
	// stated: a line has the statement that was executed, also where it failed. read: what was executed has only read,
	// and has had enough lines.
	stated, read atomic.Bool
}

// Watcher notes what handlers do not note by themselves: whatever changes something, or tries to, and every download.
type Watcher struct {
	Trail *AuditLog
	// Operation names what an address is for, "start-run", and the id in it; "" for an address that is none.
	Operation func(method, path string) (operation, object string)
	// Reads tells addresses that change nothing although they are posted to.
	Reads func(path string) bool

	// refusals bounds the lines of who is refused again and again, failures those of what is asked for wrongly, breaks
	// those of what fails here: a flood of one leaves room for the others.
	refusals, failures, breaks *Limiter
}

// NewWatcher returns a watcher.
func NewWatcher(
	t *AuditLog,
	operation func(method, path string) (string, string),
	reads func(path string) bool,
) *Watcher {
	return &Watcher{Trail: t, Operation: operation, Reads: reads, refusals: NewLimiter(60, 2*time.Second),
		failures: NewLimiter(60, 2*time.Second), breaks: NewLimiter(60, 2*time.Second)}
}

// Handle is a middleware. It stands before the guard, whose refusals of known callers are noted too; strangers are
// noted where they try to sign in, and nowhere else.
func (w *Watcher) Handle(c *fiber.Ctx) error {
	m := &mark{}
	c.SetUserContext(context.WithValue(c.UserContext(), markKey{}, m))
	// A handler that panics has done who knows what; who answers for it stands before this one.
	defer func() {
		if v := recover(); v != nil {
			w.note(c, m, http.StatusInternalServerError)
			panic(v)
		}
	}()
	err := c.Next()
	w.note(c, m, c.Response().StatusCode())
	return err
}

// note writes the line of a request, where it is to have one.
func (w *Watcher) note(c *fiber.Ctx, m *mark, status int) {
	ctx, method, path := c.UserContext(), c.Method(), c.Path()
	id, known := IdentityOf(ctx)
	safe := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
	download := strings.HasPrefix(string(c.Response().Header.Peek(fiber.HeaderContentDisposition)), "attachment")
	if !known || !download && (safe || w.Reads(path)) || m.noted.Load() && status < http.StatusBadRequest ||
		m.stated.Load() || m.read.Load() && !download && status < http.StatusBadRequest {
		return
	}
	operation, object := w.Operation(method, path)
	if operation == "" {
		return
	}
	e := store.AuditEntry{Action: Action(operation), Object: object, Outcome: outcome(status)}
	if e.Outcome != store.OutcomeDone {
		e.Detail = http.StatusText(status)
		bucket := w.failures
		switch {
		case e.Outcome == store.OutcomeRefused:
			bucket = w.refusals
		case status >= http.StatusInternalServerError:
			bucket = w.breaks
		}
		if bucket.Wait(id.User.UserID) > 0 {
			return // the first of a flood say enough, and the log is not its to fill
		}
		bucket.RecordFailure(id.User.UserID)
	}
	w.Trail.write(ctx, e)
}

func outcome(status int) string {
	switch {
	case status < http.StatusBadRequest:
		return store.OutcomeDone
	case status == http.StatusForbidden, status == http.StatusUnauthorized, status == http.StatusTooManyRequests:
		return store.OutcomeRefused
	}
	return store.OutcomeFailed
}

// Action is an operation as the log names it, the noun first: "start-run" is run.start.
func Action(operation string) string {
	operation = strings.TrimPrefix(operation, "tests-")
	switch operation {
	case "test-dsn":
		return "connection.test"
	case "run-executions":
		return "run.download"
	case "set-password":
		return "user.password"
	case "create-run-from-template":
		return "run.create"
	}
	verb, noun, ok := strings.Cut(operation, "-")
	if !ok {
		return operation
	}
	return noun + "." + verb
}
