package cli

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// TestAdminsListAndRevokeTokensByCommand: a token of each scope and a session of somebody else are listed on a server,
// without their secrets, and are refused there as soon as they are revoked.
func TestAdminsListAndRevokeTokensByCommand(t *testing.T) {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	control := postgrestest.NewControl(t)
	s := serve(t, control, filepath.Join(t.TempDir(), "data"))
	passed := func(args ...string) string {
		t.Helper()
		code, out, errs := s.loadstone(append([]string{"user"}, args...)...)
		if code != terminal.ExitPassed {
			t.Fatalf("user %v: exit %d, %q, %q", args, code, out, errs)
		}
		return out
	}
	// table are the rows of a list, without its head.
	table := func(args ...string) (rows [][]string) {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(passed(append([]string{"tokens"}, args...)...)), "\n")
		if strings.Join(strings.Fields(lines[0]), " ") != "ID USER NAME MAY LAST USED EXPIRES" {
			t.Fatalf("%v begins with %q", args, lines[0])
		}
		for _, line := range lines[1:] {
			rows = append(rows, strings.Fields(line))
		}
		return rows
	}

	link, err := url.Parse(strings.TrimSpace(passed("invite", "Ada", "--role", "operator")))
	if err != nil {
		t.Fatal(err)
	}
	var cookie string
	clitest.Caller{T: t, Base: s.base, Header: [2]string{"Accept", "application/json"}}.Do("POST", "/api/auth/signin",
		map[string]string{"invitation": link.Query().Get("invitation"), "password": "correct horse battery"}, &cookie)
	ada := clitest.Caller{T: t, Base: s.base, Header: [2]string{"Cookie", cookie}}
	type token struct {
		TokenID string `json:"token_id"`
		Secret  string `json:"secret"`
	}
	made := map[string]token{}
	for _, scope := range []string{"read", "run", "metrics", "write"} {
		var one token
		ada.Do("POST", "/api/auth/tokens", map[string]any{"name": "of-" + scope, "scope": scope}, &one)
		made[scope] = one
	}
	if code := s.ask("GET", "/metrics", made["metrics"].Secret, "", nil); code != http.StatusOK {
		t.Fatalf("a token of the scope metrics is answered %d", code)
	}

	rows := table("ADA") // names do not tell A from a
	if len(rows) != len(made) {
		t.Fatalf("listed are %q", rows)
	}
	for _, row := range rows {
		one, scope := made[row[3]], row[3]
		if row[0] != one.TokenID || row[1] != "Ada" || row[2] != "of-"+scope || len(row) != 6 ||
			(row[4] != "never") != (scope == "metrics") {
			t.Errorf("%s: %q", scope, row)
		}
		if text := strings.Join(row, " "); strings.Contains(text, one.Secret[4:]) || strings.Contains(text, "lst_") {
			t.Errorf("the secret of %s is listed: %q", scope, row)
		}
	}
	if others := table(); len(others) < len(rows) {
		t.Errorf("everybody's are %q", others)
	}
	sessions := table("Ada", "--sessions")
	if len(sessions) != 1 || !strings.Contains(strings.Join(sessions[0], " "), " as its user ") {
		t.Fatalf("the sessions are %q", sessions)
	}

	for scope, one := range made {
		path := map[bool]string{true: "/metrics", false: "/api/auth/me"}[scope == "metrics"]
		if code := s.ask("GET", path, one.Secret, "", nil); code != http.StatusOK {
			t.Errorf("%s is answered %d before", scope, code)
		}
		if out := passed("revoke", one.TokenID); out != one.TokenID+" is refused now.\n" {
			t.Errorf("revoking %s says %q", scope, out)
		}
		if code := s.ask("GET", path, one.Secret, "", nil); code != http.StatusUnauthorized {
			t.Errorf("%s is answered %d after it was revoked", scope, code)
		}
	}
	if left := table("Ada"); len(left) != 0 {
		t.Errorf("listed still: %q", left)
	}
	passed("revoke", sessions[0][0])
	if code, err := ada.Try("GET", "/api/auth/me", nil, nil); code != http.StatusUnauthorized {
		t.Errorf("a session that was ended is answered %d: %v", code, err)
	}

	for want, args := range map[string][]string{
		`no user "nobody"`:   {"tokens", "nobody"},
		made["run"].TokenID:  {"revoke", made["run"].TokenID}, // it is gone
		"../users":           {"revoke", "../users"},
		`expected "<id>"`:    {"revoke"},
		"unknown flag --all": {"tokens", "--all"},
	} {
		code, out, errs := s.loadstone(append([]string{"user"}, args...)...)
		if code != terminal.ExitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("user %v: exit %d, %q, %q", args, code, out, errs)
		}
	}
	var log struct {
		Entries []struct {
			Detail string `json:"detail"`
		} `json:"entries"`
	}
	if code := s.ask("GET", "/api/audit?action=token.delete", s.token("auditor", "--scope", "admin"), "",
		&log); code != http.StatusOK || len(log.Entries) != len(made)+1 || log.Entries[0].Detail != "a session of Ada" ||
		!strings.HasSuffix(log.Entries[1].Detail, ", of Ada") {
		t.Errorf("the audit log is answered %d: %+v", code, log)
	}
}
