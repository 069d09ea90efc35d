package useradmin

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/cli/sqlshell"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
)

const tokensBase = "/api/v1/tokens"

// soon is how long before its end a token is said to expire soon.
const soon = 14 * 24 * time.Hour

// Tokens is loadstone user tokens.
type Tokens struct {
	User     string `arg:"" optional:"" help:"The name of the user whose they are; everybody's without it."`
	Sessions bool   `help:"List the sessions of browsers in place of API tokens."`
}

// Run writes the tokens, the newest first.
func (c Tokens) Run(e *command.Env, do sqlshell.Do) error {
	kind := "api"
	if c.Sessions {
		kind = "session"
	}
	var list struct {
		Tokens []struct {
			TokenID    string      `json:"token_id"`
			Name       string      `json:"name"`
			Scope      string      `json:"scope"`
			UserName   string      `json:"user_name"`
			ExpiresAt  engine.Time `json:"expires_at"`
			LastUsedAt engine.Time `json:"last_used_at"`
		} `json:"tokens"`
		Total int `json:"total"`
	}
	if err := do(e.Ctx, http.MethodGet, tokensBase+"?kind="+kind, nil, &list); err != nil {
		return err
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ID\tUSER\tNAME\tMAY\tLAST USED\tEXPIRES")
	for _, t := range list.Tokens {
		if c.User != "" && !strings.EqualFold(c.User, t.UserName) {
			continue
		}
		may := t.Scope
		if c.Sessions {
			may = "as its user"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", t.TokenID, terminal.Shown(t.UserName),
			terminal.Shown(t.Name), may, instant(t.LastUsedAt), expiry(t.ExpiresAt, time.Now()))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if more := list.Total - len(list.Tokens); more > 0 {
		_, _ = fmt.Fprintf(e.Stderr, "%d older ones are not shown.\n", more)
	}
	return nil
}

func instant(t engine.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

// expiry is when a token ends, marked when that is soon.
func expiry(t engine.Time, now time.Time) string {
	said := instant(t)
	if left := t.Sub(now); !t.IsZero() && left < soon {
		said += fmt.Sprintf(" (in %d days)", int(left/(24*time.Hour)))
	}
	return said
}

// Revoke is loadstone user revoke.
type Revoke struct {
	TokenID string `arg:"" name:"id" help:"As loadstone user tokens shows it."`
}

// Run ends the token.
func (c Revoke) Run(e *command.Env, do sqlshell.Do) error {
	if err := do(e.Ctx, http.MethodDelete, tokensBase+"/"+url.PathEscape(c.TokenID), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Stdout, "%s is refused now.\n", terminal.Shown(c.TokenID))
	return err
}
