package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
	"github.com/loadstone-db/loadstone/server/auth"
)

// TestAdminsEndTheTokensOfOthers lists everybody's tokens and sessions, and ends some.
func TestAdminsEndTheTokensOfOthers(t *testing.T) {
	t.Parallel()
	b := start(t)
	ada, session := b.join("ada", store.RoleOperator)
	_, root := b.join("root", store.RoleAdmin)
	made := decode[api.NewToken](t, b.do("POST", "/api/auth/tokens",
		map[string]any{"name": "ci", "scope": auth.ScopeRun}, session...).want(t, http.StatusCreated))
	program := []string{"Authorization", "Bearer " + made.Secret}
	b.do("GET", "/api/auth/me", nil, program...).want(t, http.StatusOK)
	list := func(query string) api.OwnedTokens {
		t.Helper()
		a := b.do("GET", "/api/v1/tokens"+query, nil, root...).want(t, http.StatusOK)
		if strings.Contains(string(a.body), made.Secret) {
			t.Errorf("a secret is shown: %s", a.body)
		}
		l := decode[api.OwnedTokens](t, a)
		if l.Total != len(l.Tokens) {
			t.Errorf("%d of %d", len(l.Tokens), l.Total)
		}
		return l
	}
	of := func(l api.OwnedTokens, user string) (found []api.OwnedToken) {
		for _, o := range l.Tokens {
			if o.UserName == user {
				found = append(found, o)
			}
		}
		return found
	}
	hers := of(list(""), "ada")
	if len(hers) != 1 || hers[0].Name != "ci" || hers[0].Scope != auth.ScopeRun || hers[0].LastUsedAt.IsZero() ||
		hers[0].ExpiresAt.IsZero() || hers[0].UserRole != store.RoleOperator || hers[0].LockedOut {
		t.Fatalf("tokens of ada: %+v", hers)
	}
	sessions := of(list("?kind=session"), "ada")
	if len(sessions) != 1 || sessions[0].Kind != auth.KindSession {
		t.Fatalf("sessions of ada: %+v", sessions)
	}
	b.do("GET", "/api/v1/tokens?kind=invite", nil, root...).problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
	end := func(id string) answer { return b.do("DELETE", "/api/v1/tokens/"+id, nil, root...) }
	end(made.TokenID).want(t, http.StatusNoContent)
	b.do("GET", "/api/auth/me", nil, program...).problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	end(made.TokenID).problem(t, http.StatusNotFound, engine.CodeNotFound)
	b.do("GET", "/api/auth/me", nil, session...).want(t, http.StatusOK)
	end(sessions[0].TokenID).want(t, http.StatusNoContent)
	b.do("GET", "/api/auth/me", nil, session...).problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	// Who is locked out is said to be, because its tokens come back with it.
	b.signIn("ada", password).want(t, http.StatusOK)
	b.do("PATCH", "/api/users/"+ada.UserID, map[string]any{"disabled": true}, root...).want(t, http.StatusOK)
	if l := of(list("?kind=session"), "ada"); len(l) != 1 || !l[0].LockedOut {
		t.Errorf("locked out: %+v", l)
	}
	if actions := strings.Join(b.store.actions(), " "); !strings.Contains(actions, "token.delete") {
		t.Errorf("the audit log has %v", actions)
	}
}

// TestWhatATokenOfAPipelineMay holds the scopes run and metrics by what they are for, to the end of a run.
func TestWhatATokenOfAPipelineMay(t *testing.T) {
	t.Parallel()
	b := start(t)
	secret, _ := b.mint(auth.ScopeRun)
	ci := []string{"Authorization", "Bearer " + secret}
	run := decode[engine.Run](t, b.do("POST", "/api/runs", map[string]any{"scenario": scenario("ci"), "start": true},
		ci...).want(t, http.StatusCreated))
	b.do("GET", "/api/runs/"+run.RunID, nil, ci...).want(t, http.StatusOK)
	b.do("POST", "/api/v1/runs/"+run.RunID+"/marks", map[string]any{"text": "deployed"}, ci...).
		want(t, http.StatusCreated)
	b.do("POST", "/api/runs/"+run.RunID+"/stop", nil, ci...).want(t, http.StatusOK)
	p := b.do("DELETE", "/api/runs/"+run.RunID, nil, ci...).problem(t, http.StatusForbidden, engine.CodeForbidden)
	if !strings.Contains(p.Hint, "write") {
		t.Errorf("refusal %+v", p)
	}
	secret, _ = b.mint(auth.ScopeMetrics)
	scraper := []string{"Authorization", "Bearer " + secret}
	b.do("GET", "/metrics", nil, scraper...).want(t, http.StatusOK)
	p = b.do("GET", "/api/runs", nil, scraper...).problem(t, http.StatusForbidden, engine.CodeForbidden)
	if !strings.Contains(p.Detail, "metrics") || !strings.Contains(p.Hint, "read") {
		t.Errorf("refusal %+v", p)
	}
	// As a cookie it is nothing.
	b.do("GET", "/metrics", nil, "Authorization", "", "Cookie", auth.CookieName+"="+secret).
		problem(t, http.StatusUnauthorized, engine.CodeUnauthorized)
	_, viewer := b.join("vic", store.RoleViewer)
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x", "scope": auth.ScopeRun}, viewer...).
		problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x", "scope": auth.ScopeMetrics}, viewer...).
		want(t, http.StatusCreated)
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x", "scope": "root"}).
		problem(t, http.StatusUnprocessableEntity, engine.CodeInvalid)
}
