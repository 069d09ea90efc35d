package server_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// TestIdleSessionsEnd: a session that nobody uses ends, with the reason; a page that refreshes itself is no use, and
// API tokens are not concerned.
func TestIdleSessionsEnd(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.SessionIdle = 12 * time.Hour })
	me := func(session []string, more ...string) answer {
		return b.do("GET", "/api/auth/me", nil, append(more, session...)...)
	}
	conn, err := pgx.Connect(t.Context(), b.store.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	// idle has the sessions of a user not been used for so long.
	idle := func(user store.User, d time.Duration) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `UPDATE api_tokens SET created_at = now() - $2::interval,
			last_used_at = now() - $2::interval WHERE user_id = $1 AND kind = 'session'`, user.UserID, d); err != nil {
			t.Fatal(err)
		}
	}
	// left is since when they were not used; 0 where there is none.
	left := func(user store.User) time.Duration {
		t.Helper()
		var seconds float64
		if err := conn.QueryRow(t.Context(), `SELECT coalesce(extract(epoch FROM now() - max(last_used_at)), 0)::float8
			FROM api_tokens WHERE user_id = $1 AND kind = 'session'`, user.UserID).Scan(&seconds); err != nil {
			t.Fatal(err)
		}
		return time.Duration(seconds * float64(time.Second))
	}
	ada, session := b.join("ada", store.RoleOperator)
	idle(ada, 11*time.Hour)
	me(session, auth.UnattendedHeader, "1").want(t, http.StatusOK)
	if since := left(ada); since < 10*time.Hour {
		t.Errorf("a page that refreshes itself is a use: idle for %s", since)
	}

	eve, session := b.join("eve", store.RoleOperator)
	idle(eve, 11*time.Hour)
	me(session).want(t, http.StatusOK)
	if since := left(eve); since > time.Minute {
		t.Errorf("a request of a user is no use: idle for %s", since)
	}

	bob, session := b.join("bob", store.RoleOperator)
	idle(bob, 13*time.Hour)
	for range 2 { // a page asks several things at once
		p := me(session).problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
		if !strings.Contains(p.Detail, "not used for 12h") || len(p.Errors) != 1 || p.Errors[0].Field != "session" {
			t.Errorf("problem %+v", p)
		}
	}
	if left(bob) != 0 {
		t.Error("the session is still there")
	}
	b.do("GET", "/api/auth/me", nil).want(t, http.StatusOK) // by a token
}
