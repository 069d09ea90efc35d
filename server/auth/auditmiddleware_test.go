package auth

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// watched is a server whose only user asks for statuses by their address, or for a panic.
func watched(t *testing.T) (ask func(path string), lines func(outcome string) []store.AuditEntry) {
	t.Helper()
	s, _ := postgrestest.Open(t)
	w := NewWatcher(
		NewAuditLog(t.Context(), s, zerolog.Nop()),
		func(_, path string) (string, string) { return "start-run", path },
		func(string) bool { return false },
	)
	app := fiber.New()
	app.Use(recover.New(), w.Handle, func(c *fiber.Ctx) error {
		c.SetUserContext(WithIdentity(c.UserContext(), Identity{User: store.User{UserID: "1", Name: "ada"}}))
		return c.Next()
	})
	app.Post("/panic", func(*fiber.Ctx) error { panic("no") })
	for path, status := range map[string]int{"/refused": http.StatusForbidden, "/failed": http.StatusNotFound,
		"/done": http.StatusOK} {
		app.Post(path, func(c *fiber.Ctx) error { return c.SendStatus(status) })
	}
	ask = func(path string) {
		t.Helper()
		answer, err := app.Test(httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	lines = func(outcome string) []store.AuditEntry {
		t.Helper()
		found, err := s.ListAudit(t.Context(), store.AuditFilter{Outcome: outcome, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	return ask, lines
}

// TestAPanicLeavesALine: what a handler did before it broke is not known, and who asked is.
func TestAPanicLeavesALine(t *testing.T) {
	t.Parallel()
	ask, lines := watched(t)
	ask("/panic")
	if got := lines(store.OutcomeFailed); len(got) != 1 || got[0].UserName != "ada" || got[0].Object != "/panic" ||
		got[0].Action != "run.start" {
		t.Errorf("lines %+v", got)
	}
}

// TestAFloodOfBadRequestsHidesNoPanic: what breaks here has lines of its own, which are bounded too.
func TestAFloodOfBadRequestsHidesNoPanic(t *testing.T) {
	t.Parallel()
	ask, lines := watched(t)
	for range 100 {
		ask("/failed")
	}
	ask("/panic")
	broke := func() (n int) {
		for _, l := range lines(store.OutcomeFailed) {
			if l.Object == "/panic" {
				n++
			}
		}
		return n
	}
	if broke() != 1 {
		t.Errorf("after a flood of bad requests, a panic has %d lines", broke())
	}
	for range 100 {
		ask("/panic")
	}
	if n := broke(); n < 50 || n > 90 {
		t.Errorf("%d lines of 101 panics", n)
	}
}

// TestAFloodOfFailuresHidesNoRefusal, nor the other way round, and neither fills the log.
func TestAFloodOfFailuresHidesNoRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{{"/failed", "/refused", store.OutcomeRefused},
		{"/refused", "/failed", store.OutcomeFailed}, {"/refused", "/panic", store.OutcomeFailed}} {
		ask, lines := watched(t)
		for range 100 {
			ask(c[0])
		}
		ask(c[1])
		ask("/done")
		if got := lines(c[2]); len(got) != 1 {
			t.Errorf("after a flood of %s, %s has %d lines", c[0], c[1], len(got))
		}
		if all := len(lines("")); all < 50 || all > 90 {
			t.Errorf("%d lines of 102 requests", all)
		}
		if done := lines(store.OutcomeDone); len(done) != 1 {
			t.Errorf("%d lines of what was done", len(done))
		}
	}
}
