package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/auth"
)

// mint makes a token of a scope and returns its secret with its id.
func (b *bench) mint(scope string) (secret, id string) {
	b.t.Helper()
	made := decode[map[string]any](b.t,
		b.do("POST", "/api/auth/tokens", map[string]any{"name": scope, "scope": scope}).want(b.t, 201))
	return made["secret"].(string), made["token_id"].(string)
}

// TestTokensCannotMintOthers holds what each scope may do with tokens and links.
func TestTokensCannotMintOthers(t *testing.T) {
	t.Parallel()
	b := start(t)
	writer, writerID := b.mint(auth.ScopeWrite)
	admin, _ := b.mint(auth.ScopeAdmin)
	other, otherID := b.mint(auth.ScopeRead)
	as := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
	for _, secret := range []string{writer, other} {
		// Nor may what a pipeline has uploaded be approved with the pipeline's token.
		for _, request := range []string{"POST /api/plugins/count/enable", "POST /api/plugins/count/disable",
			"DELETE /api/plugins/count"} {
			method, path, _ := strings.Cut(request, " ")
			b.do(method, path, nil, as(secret)...).problem(t, 403, engine.CodeForbidden)
		}
		b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, as(secret)...).problem(t, 403, engine.CodeForbidden)
		b.do("POST", "/api/auth/signin-links", "{}", as(secret)...).problem(t, 403, engine.CodeForbidden)
	}
	b.do("POST", "/api/plugins/nothing/enable", nil, as(admin)...).problem(t, 404, engine.CodeNotFound)
	b.do("DELETE", "/api/auth/tokens/"+otherID, nil, as(writer)...).problem(t, 403, engine.CodeForbidden)
	b.do("POST", "/api/runs", map[string]any{"scenario": scenario("x")}, as(writer)...).want(t, 201)
	b.do("DELETE", "/api/auth/tokens/"+writerID, nil, as(writer)...).want(t, 204) // itself
	made := decode[map[string]any](t,
		b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, as(admin)...).want(t, 201))
	expires, err := time.Parse(time.RFC3339, made["expires_at"].(string))
	if left := time.Until(expires); err != nil || left < auth.TokenTTL-time.Hour || left > auth.TokenTTL ||
		made["scope"] != auth.ScopeWrite {
		t.Errorf("a token made without words: %v, %v", made, err)
	}
	cookie := b.session()
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, "Authorization", "", "Cookie",
		cookie.Name+"="+cookie.Value).want(t, 201)
}

// TestOneSignInLinkAtATime makes links as the operator does, and holds that only the newest works, for an hour.
func TestOneSignInLinkAtATime(t *testing.T) {
	t.Parallel()
	b := start(t)
	operator := b.srv.Operator()
	link := func() string {
		made := decode[map[string]string](t,
			b.do("POST", "/api/auth/signin-links", "{}", "Authorization", "Bearer "+operator).want(t, 201))
		_, token, _ := strings.Cut(made["url"], "token=")
		expires, err := time.Parse(time.RFC3339, made["expires_at"])
		if err != nil || time.Until(expires) > time.Hour {
			t.Errorf("the link lives until %v, %v", expires, err)
		}
		return token
	}
	first, second := link(), link()
	b.do("POST", "/api/auth/signin", map[string]any{"token": first}, "Authorization", "").problem(t, 401,
		engine.CodeUnauthorized)
	if in, err := b.srv.SignedIn(t.Context()); err != nil || in {
		t.Errorf("somebody has signed in: %v, %v", in, err)
	}
	b.do("POST", "/api/auth/signin", map[string]any{"token": second}, "Authorization", "").want(t, 200)
	if in, err := b.srv.SignedIn(t.Context()); err != nil || !in {
		t.Errorf("nobody has signed in: %v, %v", in, err)
	}
	b.srv.Operator()
	b.do("GET", "/api/auth/me", nil, "Authorization", "Bearer "+operator).problem(t, 401, engine.CodeUnauthorized)
	b.do("GET", "/api/auth/me", nil, "Authorization", "Bearer lso_").problem(t, 401, engine.CodeUnauthorized)
}

// TestRefusalsDoNotFillTheAuditLog lets strangers of many addresses guess.
func TestRefusalsDoNotFillTheAuditLog(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Proxies = loopbackProxy(t) })
	for i := range 300 {
		address := fmt.Sprintf("10.0.%d.%d", i/200, i%200)
		b.do("POST", "/api/auth/signin", map[string]any{"token": "guess"}, "Authorization", "", "X-Forwarded-For", address)
	}
	refused, err := b.store.ListAudit(t.Context(), store.AuditFilter{Outcome: store.OutcomeRefused, Limit: 1000})
	if err != nil || len(refused) != 100 {
		t.Errorf("300 refusals are %d lines, %v", len(refused), err)
	}
}

// TestSocketsEndWithTheirToken revokes, signs out and lets expire what opened a socket.
func TestSocketsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("watched")
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	b.runs.publish(&engine.LiveState{RunID: run.RunID, Status: engine.StatusRunning})
	dial := func(header http.Header) *websocket.Conn {
		t.Helper()
		conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(b.base, "http")+"/ws/runs/"+run.RunID, header)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	closed := func(name string, conn *websocket.Conn) {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		for {
			if _, _, err := conn.ReadMessage(); err != nil {
				if !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
		}
	}
	secret, id := b.mint(auth.ScopeRead)
	conn := dial(http.Header{"Authorization": {"Bearer " + secret}})
	still := dial(http.Header{"Authorization": {"Bearer " + b.token}})
	b.do("DELETE", "/api/auth/tokens/"+id, nil).want(t, 204)
	closed("a revoked token", conn)

	cookie := b.session()
	conn = dial(http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}})
	b.do("POST", "/api/auth/signout", nil, "Authorization", "", "Cookie", cookie.Name+"="+cookie.Value).want(t, 204)
	closed("a session that signed out", conn)

	short, err := b.srv.APIToken(t.Context(), "short", time.Now().Add(700*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	closed("an expired token", dial(http.Header{"Authorization": {"Bearer " + short}}))

	_ = still.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, _, err := still.ReadMessage(); err != nil {
		t.Errorf("a socket of another token: %v", err)
	}
}
